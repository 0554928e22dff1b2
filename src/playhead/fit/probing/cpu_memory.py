"""A CPU as a device whose memory is a number: what tensors hold is counted, and held to it."""

from __future__ import annotations

import platform
from itertools import chain
from typing import TYPE_CHECKING

import torch

from playhead.fit.live_tensors import LiveTensors
from playhead.fit.probing.messages import Device

if TYPE_CHECKING:
    from torch import nn

__all__ = ["CpuMemory"]


class CpuMemory:
    """The memory of a CPU; tensors are all that it knows of."""

    def __init__(self) -> None:
        self._tensors = LiveTensors()

    def device(self) -> Device:
        """Say which CPU it is; how much memory it has is for people to say."""
        return Device(name=platform.machine(), versions={"torch": str(torch.__version__)})

    def choose(self) -> None:
        """There is no other."""

    def limit(self, budget: int) -> None:
        """Count all tensors from now on; more than the budget raise what a full card would."""
        self._tensors = LiveTensors(limit=budget)
        # For the rest of the process: it does one task and ends.
        self._tensors.__enter__()

    def place(self, module: nn.Module) -> None:
        """Count the weights."""
        self._tensors.watch(chain(module.parameters(), module.buffers()))

    def begin_step(self) -> None:
        """Forget what was most."""
        self._tensors.reset_peak()

    def wait(self) -> None:
        """Nothing is ever under way."""

    def peaks(self) -> tuple[int, int]:
        """Return what was most, twice: nothing is held in reserve."""
        return self._tensors.peak, self._tensors.peak
