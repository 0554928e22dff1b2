"""What Lightning iterates instead of a loader: its length is that of Lightning's epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.loader import Loader

__all__ = ["EpochLoader"]


class EpochLoader:
    """A loader as Lightning sees it in an epoch that may have been begun before a resume.

    Lightning counts the batches of an epoch from its start, and wants the length of all of it. It
    keeps no position here: the callback does. Everything else is the loader's.

    Parameters
    ----------
    loader
        The loader.
    """

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.steps_before = 0
        """Steps of this epoch that were trained on before the loader's state was loaded."""
        self.steps: int | None = None
        """Steps of the pass with which the epoch began; None as long as nobody asked."""
        self.has_ended = False
        """Whether its pass was over in this epoch when its state was saved, and it stands there."""
        self._is_silent = False
        self.begun: dict[str, Any] | None = None
        """The position to which every epoch returns; None where they go on."""

    def __iter__(self) -> Iterator[Any]:
        return self._nothing() if self._is_silent else iter(self.loader)

    def __len__(self) -> int:
        if self.steps is not None and self.steps_before >= self.steps:
            # It has come to its end in this epoch, and begun anew while others went on.
            return self.steps * self.loader.batches_per_step
        return self.steps_before * self.loader.batches_per_step + len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "loader":
            raise AttributeError(name)
        return getattr(self.loader, name)

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: the position is in the state of the callback."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Leave the loader where the callback has put it."""

    def end_pass(self) -> None:
        """Give nothing once: others of the epoch go on, and it may be begun anew beside them."""
        self.has_ended = self._is_silent = True

    def mark_trained(self) -> None:
        """Count a batch as trained on, if this loader gave one of those that were."""
        # One that has come to its end, where others have not, gives nothing.
        if self.loader.batches_ahead:
            self.loader.mark_trained()
            self.has_ended = False

    def measure(self) -> None:
        """Note how long the epoch is, as long as its first pass runs."""
        if self.loader.finite and self.steps is None:
            self.steps = len(self) // self.loader.batches_per_step

    def begin_anew(self) -> None:
        """Count from the start of the next epoch."""
        self.steps_before, self.steps = 0, None
        self.has_ended = self._is_silent = False

    def go_on_from(self, other: EpochLoader) -> None:
        """Stand where another one stands, in the same epoch."""
        self.steps_before, self.steps, self.begun = other.steps_before, other.steps, other.begun
        self.has_ended, self._is_silent = other.has_ended, other.has_ended

    def _nothing(self) -> Iterator[Any]:
        self._is_silent = False
        yield from ()
