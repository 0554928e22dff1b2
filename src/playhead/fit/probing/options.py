"""How probes are made."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from playhead.errors import ConfigError

__all__ = ["ProbeOptions"]

_DEVICE: Final = re.compile(r"cpu|cuda(:\d+)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeOptions:
    """How probes are made.

    Raises
    ------
    ConfigError
        If there can be no such device, or it is a CPU and nobody says how much memory to take.
    """

    device: str = "cuda"
    """Where: `cpu`, `cuda` or `cuda:N`."""
    memory: int | None = None
    """Memory of the device (bytes); None takes what it has. A CPU must be told."""
    fraction: float = 0.9
    """Share of the memory that the allocator may hold."""
    steps: int = 2
    """Steps of a probe, after a first one that gives the optimizer what it holds."""
    seconds: float = 900.0
    """How long opening the model may take, and then each step, before it is given up."""

    def __post_init__(self) -> None:
        if not _DEVICE.fullmatch(self.device):
            raise ConfigError(
                f"nothing is known of a device called {self.device}",
                fix="Choose cuda, cuda:N, or cpu with --memory",
            )
        if self.device == "cpu" and self.memory is None:
            raise ConfigError(
                "how much memory a CPU gives to a model is for you to say",
                fix="Add --memory, such as --memory 2GiB",
            )
