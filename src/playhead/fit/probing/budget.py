"""How much of a device's memory the allocator may hold, and who else holds some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.errors import FitError

if TYPE_CHECKING:
    from playhead.fit.probing.messages import Device
    from playhead.fit.probing.options import ProbeOptions

__all__ = ["RESERVE", "budget_of", "total_of"]

RESERVE: Final = 1 << 30
"""Bytes of a card for what lies outside of the allocator: kernels loaded late, handles, plans.

Contexts are not among it: that of a probe, and that of the process that predicts, are there when
the free memory is read.
"""

_GIB: Final = 1 << 30


def total_of(device: Device, options: ProbeOptions) -> int:
    """Return the memory of a device (bytes), or so much less as is asked for."""
    sizes = [size for size in (device.total, options.memory) if size is not None]
    return min(sizes)


def budget_of(device: Device, options: ProbeOptions) -> tuple[int, tuple[str, ...]]:
    """Return what the allocator may hold, and what people should know of that.

    Parameters
    ----------
    device
        The device as it was found.
    options
        Which share is asked for.

    Returns
    -------
    tuple[int, tuple[str, ...]]
        Bytes: the share, or what is free now if that is less. Lines: who else is on the card.

    Raises
    ------
    FitError
        If nothing is left.
    """
    share = int(options.fraction * total_of(device, options))
    notes = tuple(
        f"another process holds {'memory' if other.held is None else _gib(other.held)} of "
        f"{options.device}: {other.name} ({other.pid})"
        for other in device.neighbours
    )
    if device.free is None or share <= device.free - RESERVE:
        return share, notes
    left = device.free - RESERVE
    said = (
        f"{_gib(device.free)} of {options.device} are free, of which {_gib(RESERVE)} are for what "
        "lies outside of the allocator"
    )
    if left <= 0:
        raise FitError(
            f"no memory is left: {said}",
            where="; ".join(notes) or None,
            fix="End what else runs there, or choose another card with --device",
        )
    return left, (*notes, f"{said}: the budget is {_gib(left)}, not {_gib(share)}")


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"
