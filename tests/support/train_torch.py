"""A small model in plain PyTorch: it notes what it trains on, and may be killed at any line.

`python train_torch.py SPEC.json` trains as one rank of whoever started it: torchrun, or nobody. A
spec is described at `train`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

import playhead
from playhead.integrations.dcp import LoaderPosition
from playhead.integrations.torchdata import stateful_dataloader
from support.run_loader import digest_of

CLASSES = 10
# Weights that are trained on other ranks differ by the order in which gradients are added up.
TOLERANCE = 1e-9


class Digits(nn.Module):
    """One convolution and one layer in double precision; nothing in it is random or stateful."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 200, 80)
        self.out = nn.Linear(8, CLASSES)
        generator = torch.Generator().manual_seed(0)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.1, generator=generator)
        self.double()

    def forward(self, audio: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Scores, (B, classes)."""
        hidden = self.conv(nn.functional.pad(audio, (0, 200))[:, None].double()).relu()
        frames = 1 + lengths // 80
        own = torch.arange(hidden.shape[2]) < frames[:, None]
        return self.out((hidden * own[:, None]).sum(2) / frames[:, None])


def summed_loss(model: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """The loss of a batch, summed over its samples."""
    classes = torch.tensor([sum(text.encode()) % CLASSES for text in batch["texts"]])
    scores = model(batch["audio"], batch["audio_lens"])
    return nn.functional.cross_entropy(scores, classes, reduction="sum")


class Trainer:
    """A model under training, and how its ranks work together: see `train`."""

    def __init__(self, loader: playhead.Loader, spec: dict[str, Any]) -> None:
        self.loader = loader
        self.batches: Any = loader
        if "torchdata" in spec:
            self.batches = stateful_dataloader(loader, num_workers=spec["torchdata"])
        wrap = spec.get("wrap")
        self.bare = Digits()
        self.model: nn.Module = self.bare
        # A process by itself needs neither.
        self.averages = wrap is not None and dist.is_initialized()
        if self.averages and wrap == "ddp":
            self.model = DistributedDataParallel(self.bare)
        if self.averages and wrap == "fsdp":
            fully_shard(self.bare)
        self.optimizer = torch.optim.Adam(self.bare.parameters(), lr=0.01)
        self.step = 0

    def backward(self, batch: dict[str, Any], *, is_last: bool) -> float:
        """Add the gradient of a batch's summed loss to that of the step; that loss."""
        if isinstance(self.model, FSDPModule):
            self.model.set_requires_gradient_sync(is_last)
        waits = isinstance(self.model, DistributedDataParallel) and not is_last
        with self.model.no_sync() if waits else nullcontext():
            loss = summed_loss(self.model, batch)
            loss.backward()
        return loss.item()

    def update(self, samples: int) -> None:
        """One step of the optimizer, with the gradient of the mean loss of the step's samples."""
        total = torch.tensor(samples)
        if dist.is_initialized():
            dist.all_reduce(total)
        scale = (dist.get_world_size() if self.averages else 1) / total.item()
        for parameter in self.bare.parameters():
            assert parameter.grad is not None
            if dist.is_initialized() and not self.averages:
                dist.all_reduce(parameter.grad)
            parameter.grad *= scale
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1

    def whole_model(self) -> dict[str, torch.Tensor]:
        """The weights, whole on every rank."""
        return {
            name: weight.full_tensor() if isinstance(weight, DTensor) else weight
            for name, weight in self.bare.state_dict().items()
        }


class InOneFile:
    """Checkpoints by rank 0 in one file that is replaced whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, trainer: Trainer) -> None:
        if trainer.loader.rank:
            return
        state = {
            "model": trainer.bare.state_dict(),
            "optimizer": trainer.optimizer.state_dict(),
            "batches": trainer.batches.state_dict(),
            "step": trainer.step,
        }
        temporary = self.path.with_suffix(".tmp")
        torch.save(state, temporary)
        temporary.replace(self.path)

    def load(self, trainer: Trainer) -> None:
        if self.path.exists():
            saved = torch.load(self.path, weights_only=True)
            trainer.bare.load_state_dict(saved["model"])
            trainer.optimizer.load_state_dict(saved["optimizer"])
            trainer.batches.load_state_dict(saved["batches"])
            trainer.step = saved["step"]


class InFolders:
    """Checkpoints of torch.distributed.checkpoint by all ranks, a folder each."""

    def __init__(self, path: Path, *, in_background: bool) -> None:
        self.path = path
        self.in_background = in_background
        # Ranks talk about the checkpoint while they talk about gradients: not in one group.
        self._group = dist.new_group() if in_background and dist.is_initialized() else None
        self._pending: Any = None

    def state_of(self, trainer: Trainer) -> dict[str, Any]:
        model, optimizer = get_state_dict(trainer.bare, trainer.optimizer)
        return {
            "model": model,
            "optimizer": optimizer,
            "loader": LoaderPosition(trainer.loader),
            "step": trainer.step,
        }

    def save(self, trainer: Trainer) -> None:
        folder = str(self.path / f"{trainer.step:08}")
        if not self.in_background:
            dcp.save(self.state_of(trainer), checkpoint_id=folder)
            return
        self.wait()
        state = self.state_of(trainer)
        self._pending = dcp.async_save(state, checkpoint_id=folder, process_group=self._group)

    def wait(self) -> None:
        if self._pending is not None:
            self._pending.result()

    def load(self, trainer: Trainer) -> None:
        whole = sorted(self.path.glob("*/.metadata"))
        if whole:
            state = self.state_of(trainer)
            dcp.load(state, checkpoint_id=str(whole[-1].parent))
            set_state_dict(
                trainer.bare,
                trainer.optimizer,
                model_state_dict=state["model"],
                optim_state_dict=state["optimizer"],
            )
            trainer.step = state["step"]


def checkpoints_of(spec: dict[str, Any]) -> InOneFile | InFolders:
    if spec.get("save", "file") == "file":
        return InOneFile(Path(spec["checkpoint"]))
    return InFolders(Path(spec["checkpoint"]), in_background=spec["save"] == "dcp in background")


def meet(spec: dict[str, Any]) -> None:
    """Join the other ranks, where there are any."""
    timeout = timedelta(seconds=60)
    if "rendezvous" in spec:
        place = {"rank": spec["rank"], "world_size": spec["world_size"]}
        method = f"file://{spec['rendezvous']}"
        dist.init_process_group("gloo", init_method=method, timeout=timeout, **place)
    elif "TORCHELASTIC_RUN_ID" in os.environ:
        dist.init_process_group("gloo", timeout=timeout)


def train(spec: dict[str, Any]) -> None:
    """Train to the end of a pass, or until so many steps were made in all.

    A spec holds: `config`, `overrides`, `steps` (None for the end of the pass), `save_every`,
    `checkpoint` (a file or a folder) and `logs`, the folder in which every process writes a file of
    JSON lines: first where it starts, then a line for each micro-batch that it has trained on. It
    may hold: `save` (`file`, `dcp`, `dcp in background`), `wrap` (`ddp`, `fsdp`), `torchdata` (its
    workers), `weights` (the file for the weights at the end), `pause` (seconds after a step),
    `rendezvous` with `rank` and `world_size`, and `dies`: a rank, a step in which it kills itself,
    and a file that says that it did so once.
    """
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "torch.distributed is disabled")
    meet(spec)
    loader = playhead.dataloader(spec["config"], **spec.get("overrides", {}))
    trainer = Trainer(loader, spec)
    checkpoints = checkpoints_of(spec)
    checkpoints.load(trainer)
    path = Path(spec["logs"]) / f"{time.time_ns()}-{os.getpid()}.jsonl"
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    write(log, pid=os.getpid(), start=trainer.step, rank=loader.rank, of=loader.world_size)
    turn = samples = 0
    for batch in trainer.batches:
        if trainer.step == spec["steps"]:
            break
        turn += 1
        samples += len(batch["ids"])
        loss = trainer.backward(batch, is_last=turn == loader.batches_per_step)
        info = batch["playhead"]
        write(
            log,
            step=trainer.step,
            slot=info.slot,
            ids=batch["ids"],
            repeated=info.repeated,
            sha256=digest_of(batch),
            loss=loss,
        )
        die(spec.get("dies"), loader.rank, trainer.step)
        if turn < loader.batches_per_step:
            continue
        trainer.update(samples)
        turn = samples = 0
        if trainer.step % spec["save_every"] == 0:
            checkpoints.save(trainer)
        time.sleep(spec.get("pause", 0.0))
    if isinstance(checkpoints, InFolders):
        checkpoints.wait()
    weights = trainer.whole_model()
    if spec.get("weights") and loader.rank == 0:
        torch.save(weights, spec["weights"])
    loader.close()
    if dist.is_initialized():
        dist.destroy_process_group()


def die(when: tuple[int, int, str] | None, rank: int, step: int) -> None:
    """Kill this process, if that is asked for and has not been done yet."""
    if when is None:
        return
    dying, at, done = when
    if (rank, step) == (dying, at) and not Path(done).exists():
        Path(done).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def write(log: int, **line: Any) -> None:
    """A line is on disk before training goes on."""
    os.write(log, (json.dumps(line) + "\n").encode())
    os.fsync(log)


if __name__ == "__main__":
    train(json.loads(Path(sys.argv[1]).read_text()))
