"""Batch sizes for a LightningModule: the one that is trained, with a method that makes batches.

In the folder of this file:

playhead oomptimizer --model fit_lightning:Transcriber -b '[[5,40],[10,80]]' -o profile.yaml
"""

from __future__ import annotations

from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.nn import functional


class Transcriber(lightning.LightningModule):
    """A Transformer that listens and writes, on features of 10 ms."""

    # A second has 100 frames of features, so that lengths of inputs are frames.
    sample_rate = 100

    def __init__(self, dim: int = 256, layers: int = 6, tokens: int = 1024) -> None:
        """Make it; `playhead oomptimizer` gives no arguments."""
        super().__init__()
        self.save_hyperparameters()
        self.subsampling = nn.Conv1d(80, dim, 3, stride=4, padding=1)
        self.embedding = nn.Embedding(tokens, dim)
        self.transformer = nn.Transformer(
            dim, 4, num_encoder_layers=layers, num_decoder_layers=layers, batch_first=True
        )
        self.head = nn.Linear(dim, tokens)

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        """Return the loss, as `Trainer.fit` calls it."""
        heard = self.subsampling(batch["features"].transpose(1, 2)).transpose(1, 2)
        given, expected = batch["text"][:, :-1], batch["text"][:, 1:]
        future = nn.Transformer.generate_square_subsequent_mask(given.shape[1], device=self.device)
        written = self.transformer(
            heard, self.embedding(given), tgt_mask=future, tgt_is_causal=True
        )
        loss = functional.cross_entropy(self.head(written).flatten(0, 1), expected.flatten())
        self.log("loss", loss, prog_bar=batch_idx % 100 == 0)
        return loss

    def configure_optimizers(self) -> Any:
        """Make the optimizer, whose state is part of what a step holds."""
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def make_batch(
        self, batch_size: int, input_length: int, output_length: int
    ) -> dict[str, Tensor]:
        """Make a batch of the longest samples of a bucket; it is put on the device by itself."""
        tokens = self.hparams["tokens"]
        return {
            "features": torch.randn(batch_size, input_length, 80),
            # One more: what is written begins with a token that nobody writes.
            "text": torch.randint(0, tokens, (batch_size, output_length + 1)),
        }
