"""A loop with accelerate that may be killed at any line and started again on other ranks.

python examples/train_accelerate.py blend.yaml                                # one process
accelerate launch --num_processes 4 examples/train_accelerate.py blend.yaml   # four
"""

from __future__ import annotations

import argparse
import shutil
from itertools import chain, repeat
from pathlib import Path

import torch
from accelerate import Accelerator

import playhead
from playhead.integrations.huggingface import prepare_loader


def main() -> None:
    """Train until so many optimizer steps were made in all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("blend")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--output", type=Path, default=Path("accelerated"))
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()

    # A step is 8 micro-batches on any number of GPUs that divides 8: the rest is accumulated.
    accelerator = Accelerator(cpu=args.cpu)
    loader = playhead.dataloader(args.blend, micro_batches_per_step=8)
    accelerator.gradient_accumulation_steps = loader.batches_per_step
    model = torch.nn.Conv1d(1, 1, 400, 160)  # yours
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    batches = prepare_loader(accelerator, loader)

    saved = {int(path.name[5:]): path for path in args.output.glob("step-*")}
    step = max(saved, default=0)
    if saved:
        accelerator.load_state(str(saved[step]))
    # Passes follow each other where a blend ends, as one manifest does.
    for batch in chain.from_iterable(repeat(batches)):
        if step >= args.steps:
            break
        with accelerator.accumulate(model):
            loss = model(batch["audio"][:, None]).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        if not accelerator.sync_gradients:
            continue
        step += 1
        if step % args.save_every == 0:
            accelerator.print(f"step {step}: loss {loss.item():.4f}")
            save(accelerator, args.output, step)
    loader.close()
    accelerator.end_training()


def save(accelerator: Accelerator, folder: Path, step: int) -> None:
    """Save under a name that a state has only when it is whole, in place of the one before."""
    accelerator.wait_for_everyone()
    accelerator.save_state(str(folder / "unfinished"))
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        before = list(folder.glob("step-*"))
        (folder / "unfinished").rename(folder / f"step-{step}")
        for path in before:
            shutil.rmtree(path)
    accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
