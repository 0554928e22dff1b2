"""A small model whose memory is plain to compute, as people's own code has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SOURCE", "write_model"]

SOURCE = '''
import os
import torch
from torch import nn


class Tiny(nn.Module):
    """Audio at 1 kHz, framed by 10; activations are most of what it holds."""

    sample_rate = 1000

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(10, 512), nn.Linear(512, 10)

    def make_batch(self, batch_size, input_length, output_length):
        return torch.randn(batch_size, input_length // 10, 10)

    def training_step(self, batch, batch_idx=0):
        return self.down(torch.relu(self.up(batch))).pow(2).mean()


class Broken(Tiny):
    def training_step(self, batch, batch_idx=0):
        return self.no_such_layer(batch)


class NoBatches(nn.Linear):
    def __init__(self):
        super().__init__(1, 1)

    def training_step(self, batch, batch_idx=0):
        return batch


def raises():
    raise KeyError("hidden_size")


def make():
    torch.manual_seed(0)
    return Tiny()
'''


def write_model(folder: Path) -> str:
    """Write the module into a folder, and return its name."""
    (folder / "fit_tiny.py").write_text(SOURCE)
    return "fit_tiny"
