"""Leaves of lengths alone, for measurements of the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan import LeafColumns

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["mapped_leaf"]


def mapped_leaf(data: Path, rows: int) -> LeafColumns:
    """A leaf of so many rows whose lengths are mapped from a file, as those of a pack are."""
    lengths = np.load(data / "column.npy", mmap_mode="r")[:rows]
    return LeafColumns(
        key="leaf", name="leaf", weight=1, duration_us=lengths, fingerprint=lambda n: f"{n:016x}"
    )
