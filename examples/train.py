"""A plain training loop that may be killed at any line and started again on other ranks.

python examples/train.py blend.yaml                                        # one process
torchrun --nproc-per-node 4 examples/train.py blend.yaml                   # four
torchrun --nproc-per-node 2 examples/train.py blend.yaml --steps 2000      # go on with two
"""

from __future__ import annotations

import argparse
import os
from itertools import chain, repeat
from pathlib import Path

import torch
import torch.distributed as dist

import playhead


def main() -> None:
    """Train until so many optimizer steps were made in all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("blend")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoint.pt"))
    args = parser.parse_args()
    if "RANK" in os.environ:
        dist.init_process_group("gloo")

    # A step is 8 micro-batches on any number of ranks that divides 8: the rest is accumulated.
    loader = playhead.dataloader(args.blend, micro_batches_per_step=8)
    model = torch.nn.Conv1d(1, 1, 400, 160)  # yours
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    step = 0
    if args.checkpoint.exists():
        saved = torch.load(args.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        step = saved["step"]

    waiting = loader.batches_per_step
    # Passes follow each other where a blend ends, as one manifest does.
    for batch in chain.from_iterable(repeat(loader)):
        if step >= args.steps:
            break
        loss = model(batch["audio"][:, None]).square().mean()
        (loss / loader.micro_batches_per_step).backward()
        waiting -= 1
        if waiting:
            continue
        waiting = loader.batches_per_step
        for parameter in model.parameters():
            if dist.is_initialized():
                dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if loader.rank == 0 and step % args.save_every == 0:
            print(f"step {step}: loss {loss.item():.4f}, waited {loader.waits.share:.0%}")
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "loader": loader.state_dict(),
                "step": step,
            }
            temporary = args.checkpoint.with_suffix(".tmp")
            torch.save(state, temporary)
            temporary.replace(args.checkpoint)
    loader.close()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
