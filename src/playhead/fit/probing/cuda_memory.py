"""The memory of a CUDA card, as its caching allocator hands it out to one process."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

import torch

from playhead.errors import ConfigError
from playhead.fit.probing.messages import Device
from playhead.fit.probing.neighbours import driver_version, neighbours
from playhead.fit.probing.orphans import ancestors

if TYPE_CHECKING:
    from torch import nn

__all__ = ["CudaMemory", "uuid_of"]

# The driver gives memory back some time after the process that held it has ended.
_WAIT_SECONDS: Final = 30.0
_TICK_SECONDS: Final = 0.2
_GIB: Final = 1 << 30
# The two names under which the allocator has settings.
_SETTINGS: Final = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_HELP: Final = "Run where there is one, or use --device fake --memory 80GiB for an estimate without"


def uuid_of(card: torch.device) -> str:
    """Return the UUID of a card, as the driver writes it (`GPU-…`); empty where torch has none."""
    uuid = getattr(torch.cuda.get_device_properties(card), "uuid", None)
    return "" if uuid is None else f"GPU-{uuid}"


class CudaMemory:
    """The memory of one card.

    Parameters
    ----------
    device
        `cuda` or `cuda:N`.

    Raises
    ------
    ConfigError
        If there is no such card.
    """

    def __init__(self, device: str) -> None:
        if not torch.cuda.is_available():
            why = (
                "this torch is built without CUDA"
                if torch.version.cuda is None and torch.version.hip is None
                else "torch sees no card"
            )
            raise ConfigError(f"there is no {device} here: {why}", fix=_HELP)
        index = torch.device(device).index or 0
        if index >= torch.cuda.device_count():
            raise ConfigError(
                f"there is no {device} here: the last card is cuda:{torch.cuda.device_count() - 1}",
                fix="Choose one with --device",
            )
        self._device = torch.device("cuda", index)

    def device(self) -> Device:
        """Say which card it is, what is free on it and who else uses it."""
        card = torch.cuda.get_device_properties(self._device)
        # Before this process is on the card; whoever started it may be, to predict.
        others = neighbours(uuid_of(self._device))
        own = ancestors()
        self.choose()
        torch.cuda.init()
        free, total = torch.cuda.mem_get_info(self._device)
        versions = {
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda or torch.version.hip,
            "cudnn": str(torch.backends.cudnn.version() or ""),
            "driver": driver_version(),
            # Expandable segments, say: what it holds beside tensors is another thing then.
            "allocator": " ".join(filter(None, map(os.environ.get, _SETTINGS))),
        }
        return Device(
            name=card.name,
            total=total,
            free=free,
            neighbours=tuple(other for other in others if other.pid not in own),
            versions={name: version for name, version in versions.items() if version},
        )

    def choose(self) -> None:
        """Make the card the one that `cuda` means."""
        torch.cuda.set_device(self._device)

    def limit(self, budget: int) -> str | None:
        """Cap the allocator of this process, if the card has so much left for it.

        Without this, others who take memory while a search runs would look like a model that needs
        too much.
        """
        self.choose()
        free, total = torch.cuda.mem_get_info(self._device)
        deadline = time.monotonic() + _WAIT_SECONDS
        while free < budget and time.monotonic() < deadline:
            time.sleep(_TICK_SECONDS)
            free, total = torch.cuda.mem_get_info(self._device)
        if free < budget:
            return (
                f"{free / _GIB:.1f} GiB of {self._device} are free, and {budget / _GIB:.1f} were "
                "when the search began: another process has come"
            )
        torch.cuda.set_per_process_memory_fraction(min(1.0, budget / total), self._device)
        torch.cuda.reset_peak_memory_stats(self._device)
        return None

    def place(self, module: nn.Module) -> None:
        """Move the weights to the card."""
        module.to(self._device)

    def begin_step(self) -> None:
        """Forget what was most."""
        torch.cuda.reset_peak_memory_stats(self._device)

    def wait(self) -> None:
        """Wait for the card, which tells late of what went wrong."""
        torch.cuda.synchronize(self._device)

    def peaks(self) -> tuple[int, int]:
        """Return what was most."""
        return (
            torch.cuda.max_memory_allocated(self._device),
            torch.cuda.max_memory_reserved(self._device),
        )
