"""A model split over tensor-parallel ranks, trained on data-parallel ones, killed and gone on with.

torchrun --nproc-per-node 4 examples/train_mesh.py blend.yaml --tensor-parallel 2   # 2 x 2
torchrun --nproc-per-node 2 examples/train_mesh.py blend.yaml --tensor-parallel 1   # go on: 2 x 1
"""

from __future__ import annotations

import argparse
from itertools import chain, repeat
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

import playhead

WINDOW = 400


def main() -> None:
    """Train until so many optimizer steps were made in all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("blend")
    parser.add_argument("--tensor-parallel", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoint.pt"))
    args = parser.parse_args()
    dist.init_process_group("gloo")
    shape = (dist.get_world_size() // args.tensor_parallel, args.tensor_parallel)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))

    # Both processes of a tensor-parallel pair get the same batches: one reads, and sends them.
    loader = playhead.dataloader(args.blend, mesh=mesh, broadcast=True, micro_batches_per_step=8)
    torch.manual_seed(0)
    model = torch.nn.Sequential(  # yours
        torch.nn.Linear(WINDOW, 64), torch.nn.ReLU(), torch.nn.Linear(64, WINDOW)
    )
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    whole = StateDictOptions(full_state_dict=True)
    step = 0
    if args.checkpoint.exists():
        saved = torch.load(args.checkpoint, weights_only=True)
        set_model_state_dict(model, saved["model"], options=whole)
        loader.load_state_dict(saved["loader"])
        step = saved["step"]

    waiting = loader.batches_per_step
    # Passes follow each other where a blend ends, as one manifest does.
    for batch in chain.from_iterable(repeat(loader)):
        if step >= args.steps:
            break
        frames = batch["audio"].unfold(1, WINDOW, WINDOW)
        loss = (model(frames) - frames).square().mean()
        (loss / loader.micro_batches_per_step).backward()
        waiting -= 1
        if waiting:
            continue
        waiting = loader.batches_per_step
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad.to_local(), group=mesh.get_group("dp"))
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % args.save_every == 0:
            # All ranks give their parts of the parameters; one of them writes.
            state = {
                "model": get_model_state_dict(model, options=whole),
                "loader": loader.state_dict(),
                "step": step,
            }
            if dist.get_rank() == 0:
                print(f"step {step}: loss {loss.item():.4f}, waited {loader.waits.share:.0%}")
                temporary = args.checkpoint.with_suffix(".tmp")
                torch.save(state, temporary)
                temporary.replace(args.checkpoint)
    loader.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
