"""The training loop of the demonstration, one process per rank: `python -m playhead.demo.train`.

It is what a user would write, and a log of what was trained on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import playhead
from playhead.demo.model import TinyCtc
from playhead.storage.atomic import atomic_write

__all__ = ["main"]

_COLLECTIVE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Learner:
    """What learns."""

    model: TinyCtc
    """The model."""
    optimizer: torch.optim.Optimizer
    """What moves its parameters."""


def main() -> None:
    """Train until so many steps were made, from the checkpoint if there is one."""
    args = _arguments()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if int(os.environ["WORLD_SIZE"]) > 1:
        dist.init_process_group("gloo", timeout=timedelta(seconds=_COLLECTIVE_SECONDS))
    loader = playhead.dataloader(
        args.blend, micro_batches_per_step=args.micro_batches, num_workers=args.workers
    )
    model = TinyCtc(args.alphabet)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.rate)
    done = {"steps": 0, "passes": 0}
    if args.checkpoint.exists():
        saved = torch.load(args.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        done = saved["done"]
    with args.log.open("a", encoding="utf-8") as log:
        while done["steps"] < args.steps:
            _train_pass(args, loader, Learner(model, optimizer), done, log)
    loader.close()
    if dist.is_initialized():
        dist.destroy_process_group()


def _train_pass(
    args: argparse.Namespace,
    loader: playhead.Loader,
    learner: Learner,
    done: dict[str, int],
    log: Any,
) -> None:
    model, optimizer = learner.model, learner.optimizer
    left = len(loader)
    losses: list[float] = []
    for batch in loader:
        loss = model.loss(batch["audio"], batch["audio_lens"], batch["texts"])
        (loss / loader.micro_batches_per_step).backward()
        losses.append(loss.item())
        left -= 1
        info = batch["playhead"]
        _write(
            log,
            step=info.step,
            slot=info.slot,
            of_pass=done["passes"],
            ids=batch["ids"],
            repeated=info.repeated,
            bytes=_digest(batch),
        )
        if len(losses) < loader.batches_per_step:
            continue
        mean = _add_up(model, sum(losses)) / loader.micro_batches_per_step
        optimizer.step()
        optimizer.zero_grad()
        losses.clear()
        done["steps"] += 1
        done["passes"] += left == 0
        _write(log, step=info.step, loss=mean)
        if loader.rank == 0 and (left == 0 or done["steps"] % args.save_every == 0):
            _save(args.checkpoint, loader, learner, done)
        if done["steps"] == args.steps:
            return
        if args.pause:
            time.sleep(args.pause)


def _add_up(model: TinyCtc, loss: float) -> float:
    """Add gradients and losses up over the ranks."""
    if not dist.is_initialized():
        return loss
    for parameter in model.parameters():
        assert parameter.grad is not None
        dist.all_reduce(parameter.grad)
    total = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()


def _save(path: Path, loader: playhead.Loader, learner: Learner, done: dict[str, int]) -> None:
    with atomic_write(path) as file:
        torch.save(
            {
                "model": learner.model.state_dict(),
                "optimizer": learner.optimizer.state_dict(),
                "loader": loader.state_dict(),
                "done": dict(done),
            },
            file,
        )


def _digest(batch: dict[str, Any]) -> str:
    digest = hashlib.sha256()
    for name in ("audio", "audio_lens"):
        digest.update(batch[name].numpy().tobytes())
    return digest.hexdigest()


def _write(log: Any, **line: Any) -> None:
    """A line is on disk before the next batch: SIGKILL loses none."""
    log.write(json.dumps(line) + "\n")
    log.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blend", type=Path, required=True)
    parser.add_argument("--alphabet", required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--micro-batches", type=int, required=True)
    parser.add_argument("--save-every", type=int, required=True)
    parser.add_argument("--rate", type=float, default=8e-3)
    parser.add_argument("--pause", type=float, default=0.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
