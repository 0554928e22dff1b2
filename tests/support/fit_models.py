"""Small models, as the search for batch sizes sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from playhead.fit.bucket import LengthRule

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


@dataclass
class Small:
    """A model whose batches are noise of the size of its inputs."""

    module: nn.Module
    name: str = "small"
    rule: LengthRule = field(default_factory=LengthRule)
    width: int = 16
    notes: tuple[str, ...] = ()
    keeps_gradients: bool = False
    batches: list[Any] = field(default_factory=list)

    def make_batch(self, batch_size, input_length, output_length):
        device = next(self.module.parameters()).device
        self.batches.append((batch_size, input_length, output_length))
        return torch.randn(batch_size, input_length, self.width, device=device)

    def loss(self, batch):
        return self.module(batch).float().square().mean()

    def optimizer(self, name):
        trained = [weight for weight in self.module.parameters() if weight.requires_grad]
        return OPTIMIZERS[name](trained, lr=0.1)


def two_layers(width=16, hidden=64):
    """Two layers, one of which is wide."""
    return Small(
        nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)), width=width
    )
