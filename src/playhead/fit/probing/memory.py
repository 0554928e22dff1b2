"""What a probe asks of the memory of its device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import nn

    from playhead.fit.probing.messages import Device

__all__ = ["Memory"]


class Memory(Protocol):
    """The memory of a device, as one process may use it."""

    def device(self) -> Device:
        """Say what the device is, and how much of its memory is free."""
        ...

    def choose(self) -> None:
        """Make the device the one that is meant where code names none."""
        ...

    def limit(self, budget: int) -> str | None:
        """Let the allocator hold so much (bytes) from now on, and start to count.

        Returns
        -------
        str | None
            Why there is not so much, in one line; None if there is.
        """
        ...

    def place(self, module: nn.Module) -> None:
        """Bring the weights of a model into it."""
        ...

    def begin_step(self) -> None:
        """Forget what was most, for another step."""
        ...

    def wait(self) -> None:
        """Wait until all that was asked of the device is done, and raise what went wrong."""
        ...

    def peaks(self) -> tuple[int, int]:
        """Return what was most in the step.

        Returns
        -------
        tuple[int, int]
            Most that tensors, and that the allocator, held at once (bytes).
        """
        ...
