"""A rank of a job that trains a model split over a mesh; run by `run_loader` where a spec says so.

Its spec holds, beside those of `run_loader`: `mesh`, the sizes of its dimensions by name, of which
`tp` splits the model's layers, `pp` puts them on two stages, and all others are data-parallel;
`rank`; `place`: what the loader is told of it; and `checkpoint`, which rank 0 writes after every
step. A place holds arguments of `playhead.dataloader`; without `rank` the mesh is one of them, or
the group of the dimension that `group` names. A spec may hold `timeout` of the process group in
seconds, and `fails`: the dataset raises at the fourth batch that it makes.

What is written down is what was trained on: a line a batch, on disk after the optimizer's step.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

import playhead
from playhead.datasets import SpeechToText
from support.run_loader import line_of, write_atomically

FRAME = 200
WHOLE = StateDictOptions(full_state_dict=True)


class Split:
    """Two layers, split over the `tp` dimension of a mesh and laid out along its `pp` dimension."""

    def __init__(self, mesh: DeviceMesh) -> None:
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(FRAME, 16), torch.nn.Tanh(), torch.nn.Linear(16, FRAME)
        )
        names = mesh.mesh_dim_names
        assert names is not None
        self.data = [mesh.get_group(name) for name in names if name not in {"tp", "pp", "cp"}]
        if "tp" in names:
            plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
            parallelize_module(self.layers, mesh["tp"], plan)
        self.line = mesh["pp"] if "pp" in names and mesh["pp"].size() > 1 else None
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=1e-2)

    def backward(self, frames: torch.Tensor, share: float) -> None:
        if self.line is None:
            loss = (self.layers(frames) - frames).square().mean()
            (loss * share).backward()
            return
        first, last = self.line.mesh.tolist()
        if self.line.get_local_rank() == 0:
            hidden = self.layers[:2](frames)
            dist.send(hidden.detach().contiguous(), last)
            gradient = torch.empty_like(hidden)
            dist.recv(gradient, last)
            hidden.backward(gradient)
        else:
            # The other stage reads the same batch, so that its shape is known here.
            hidden = torch.empty(*frames.shape[:2], 16)
            dist.recv(hidden, first)
            hidden.requires_grad_()
            loss = (self.layers[2](hidden) - frames).square().mean()
            (loss * share).backward()
            assert hidden.grad is not None
            dist.send(hidden.grad, first)

    def step(self) -> None:
        for parameter in self.layers.parameters():
            for group in self.data if parameter.grad is not None else ():
                dist.all_reduce(own_part(parameter.grad), group=group)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def state(self) -> dict[str, torch.Tensor]:
        """All parameters, each from the stage that trains it."""
        whole = get_model_state_dict(self.layers, options=WHOLE)
        if self.line is None:
            return whole
        stages: list[Any] = [None, None]
        dist.all_gather_object(stages, whole, group=self.line.get_group())
        return {name: stages[0 if name.startswith("0.") else 1][name] for name in whole}

    def load(self, state: dict[str, torch.Tensor]) -> None:
        set_model_state_dict(self.layers, state, options=WHOLE)


def own_part(gradient: Any) -> torch.Tensor:
    return gradient.to_local() if isinstance(gradient, DTensor) else gradient


class Failing(SpeechToText):
    """Raises at one batch: the fourth that this process makes."""

    made = 0

    def collate(self, *args: Any, **options: Any) -> dict[str, Any]:
        self.made += 1
        if self.made == 4:
            raise ValueError("this label is unknown")
        return super().collate(*args, **options)


def place_of(spec: dict[str, Any], mesh: DeviceMesh) -> dict[str, Any]:
    place = dict(spec["place"])
    if "group" in place:
        return {"broadcast": mesh[place.pop("group")].get_group()}
    return place if "rank" in place else {"mesh": mesh, **place}


def train(spec: dict[str, Any]) -> None:
    """Train until a number of steps, from the checkpoint if there is one."""
    torch.set_num_threads(1)
    names, sizes = zip(*spec["mesh"].items(), strict=True)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{spec['rendezvous']}",
        timeout=timedelta(seconds=spec.get("timeout", 60)),
        rank=spec["rank"],
        world_size=spec["world_size"],
    )
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=names)
    loader = playhead.dataloader(
        spec["config"],
        dataset=Failing() if spec.get("fails") else None,
        **place_of(spec, mesh),
        **spec.get("overrides", {}),
    )
    model = Split(mesh)
    checkpoint = Path(spec["checkpoint"])
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load(saved["model"])
        loader.load_state_dict(saved["loader"])
    out = os.open(spec["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    lines: list[dict[str, Any]] = []
    workers = 0
    for batch in loader:
        workers = len(multiprocessing.active_children())
        frames = batch["audio"].unfold(1, FRAME, FRAME)
        model.backward(frames, 1 / loader.micro_batches_per_step)
        lines.append(line_of(batch))
        if len(lines) < loader.batches_per_step:
            continue
        model.step()
        os.write(out, "".join(json.dumps(line) + "\n" for line in lines).encode())
        os.fsync(out)
        lines.clear()
        state = loader.state_dict()
        write_atomically(Path(spec["state_out"]), json.dumps(state))
        parameters = model.state()
        if spec["rank"] == 0:
            temporary = checkpoint.with_suffix(".tmp")
            torch.save({"model": parameters, "loader": state}, temporary)
            temporary.replace(checkpoint)
        if state["step"] == spec.get("steps"):
            break
    run = loader.report().run
    summary = {"samples": run.samples, "waits": run.waits.batches, "workers": workers}
    Path(spec["state_out"]).with_suffix(".report").write_text(json.dumps(summary))
    loader.close()
    dist.destroy_process_group()
