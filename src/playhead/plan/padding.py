"""How much of what was trained on is padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.plan.batch_columns import BatchColumns

__all__ = ["Padding"]


@dataclass(frozen=True, slots=True)
class Padding:
    """Lengths of samples, and of these as padded; µs or tokens.

    Examples
    --------
    >>> (Padding(9.0, 10.0) + Padding(1.0, 10.0)).share
    0.5
    """

    real: float = 0.0
    """Sum of the lengths."""
    padded: float = 0.0
    """Sum of the lengths of the longest of their batches."""

    @classmethod
    def of(cls, batches: BatchColumns) -> Padding:
        """Return that of some batches; packed ones are not padded."""
        return cls(float(batches.total.sum()), float(batches.linear.sum()))

    @property
    def share(self) -> float | None:
        """Share of what is padded that is padding; None where nothing was read."""
        return 1 - self.real / self.padded if self.padded else None

    def __add__(self, other: Padding) -> Padding:
        return Padding(self.real + other.real, self.padded + other.padded)

    def __sub__(self, other: Padding) -> Padding:
        return Padding(self.real - other.real, self.padded - other.padded)
