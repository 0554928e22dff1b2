"""FSDP2 and torch.distributed.checkpoint: saved by any number of ranks, loaded by any other.

torchrun --nproc-per-node 4 examples/train_dcp.py blend.yaml                  # four processes
torchrun --nproc-per-node 2 examples/train_dcp.py blend.yaml --steps 2000     # go on with two
"""

from __future__ import annotations

import argparse
from itertools import chain, repeat
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

import playhead
from playhead.integrations.dcp import LoaderPosition


def main() -> None:
    """Train until so many optimizer steps were made in all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("blend")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--checkpoints", type=Path, default=Path("checkpoints"))
    args = parser.parse_args()
    dist.init_process_group("gloo")  # nccl where there are GPUs
    for_checkpoints = dist.new_group(backend="gloo")

    loader = playhead.dataloader(args.blend, micro_batches_per_step=8)
    torch.manual_seed(0)
    model = torch.nn.Conv1d(1, 8, 400, 160)  # yours
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0

    def state() -> dict:
        weights, moments = get_state_dict(model, optimizer)
        # One object among sharded ones: a bare loader would be taken apart.
        place = LoaderPosition(loader)
        return {"model": weights, "optimizer": moments, "loader": place, "step": step}

    # A checkpoint has .metadata from the moment on when it is whole.
    whole = sorted(args.checkpoints.glob("*/.metadata"))
    if whole:
        saved = state()
        dcp.load(saved, checkpoint_id=str(whole[-1].parent))
        weights, moments = saved["model"], saved["optimizer"]
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
        step = saved["step"]

    waiting, saving = loader.batches_per_step, None
    # Passes follow each other where a blend ends, as one manifest does.
    for batch in chain.from_iterable(repeat(loader)):
        if step >= args.steps:
            break
        waiting -= 1
        model.set_requires_gradient_sync(not waiting)
        loss = model(batch["audio"][:, None]).square().mean()
        (loss / loader.batches_per_step).backward()
        if waiting:
            continue
        waiting = loader.batches_per_step
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % args.save_every == 0:
            if saving is not None:
                saving.result()
            folder = str(args.checkpoints / f"{step:08}")
            saving = dcp.async_save(state(), checkpoint_id=folder, process_group=for_checkpoints)
            if loader.rank == 0:
                print(f"step {step}: loss {loss.item():.4f}, waited {loader.waits.share:.0%}")
    if saving is not None:
        saving.result()
    loader.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
