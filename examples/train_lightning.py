"""Training with Lightning: checkpoints that hold the position, and go on from it exactly.

python train_lightning.py blend.yaml --steps 100
torchrun --nproc-per-node 2 train_lightning.py blend.yaml --steps 200

Stop it whenever you like, and start it again on 1, 2, 4 or 8 processes: it goes on with the batch
that would have come next.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor, nn

from playhead.integrations.lightning import PlayheadCallback, PlayheadDataModule

# What an optimizer step trains on, on however many processes: a number with many divisors.
MICRO_BATCHES = 8
CHECKPOINTS = Path("checkpoints")


class Listener(nn.Module):
    """Guesses how loud speech is, which is not of much use, from a convolution of it."""

    def __init__(self) -> None:
        super().__init__()
        self.hear = nn.Conv1d(1, 8, 400, stride=160)
        self.say = nn.Linear(8, 1)

    def forward(self, audio: Tensor) -> Tensor:
        """Take waveforms of shape (B, T), and return numbers of shape (B,)."""
        heard = torch.relu(self.hear(nn.functional.pad(audio, (0, 400))[:, None]))
        return self.say(heard.mean(-1))[:, 0]


class Training(LightningModule):
    """What one trains: nothing of Playhead is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Listener()

    def training_step(self, batch: dict[str, Any], batch_idx: int) -> Tensor:  # noqa: ARG002 - as Lightning calls it
        """Return the loss of a batch."""
        loud = batch["audio"].square().mean(-1)
        loss = nn.functional.mse_loss(self.model(batch["audio"]), loud)
        self.log("loss", loss, batch_size=len(loud))
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Make the optimizer."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> None:
    """Train for a number of steps, from the last checkpoint if there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--save-every", type=int, default=10)
    arguments = parser.parse_args()
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    last = CHECKPOINTS / "last.ckpt"
    trainer = Trainer(
        accelerator="auto" if torch.cuda.is_available() else "cpu",
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        strategy="ddp" if processes > 1 else "auto",
        max_steps=arguments.steps,
        accumulate_grad_batches=MICRO_BATCHES // processes,
        callbacks=[
            PlayheadCallback(),
            ModelCheckpoint(
                CHECKPOINTS,
                every_n_train_steps=arguments.save_every,
                save_last=True,
                enable_version_counter=False,
            ),
        ],
        logger=False,
        enable_progress_bar=False,
    )
    data = PlayheadDataModule(arguments.config, overrides={"micro_batches_per_step": MICRO_BATCHES})
    trainer.fit(Training(), datamodule=data, ckpt_path=last if last.exists() else None)
    if trainer.is_global_zero:
        print(f"step {trainer.global_step}: loss {trainer.callback_metrics['loss'].item():.4f}")


if __name__ == "__main__":
    main()
