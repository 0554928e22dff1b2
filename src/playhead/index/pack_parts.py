"""Where what belongs to the rows of a pack lies in other files."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.index.columns import PART_COLUMNS, Parts

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["PartTable", "part_arrays"]


def part_arrays(column: pa.LargeListArray) -> dict[str, NDArray[Any]]:
    """Return all arrays of the column `parts`: where the parts of rows end, and of each part."""
    values = column.values
    arrays = {name: values.field(name).to_numpy() for name in PART_COLUMNS}
    return {"end": column.offsets.to_numpy(), **arrays}


class PartTable:
    """The column `parts` of a pack.

    Parameters
    ----------
    column
        A large list of structs for each row; None where no row has parts.
    """

    def __init__(self, column: pa.LargeListArray | None) -> None:
        self._column = column

    def of(self, rows: NDArray[np.int64]) -> Parts:
        """Return the parts of rows, row after row.

        Raises
        ------
        ValueError
            If the column is damaged.
        """
        if self._column is None:
            empty = [np.zeros(0, dtype) for dtype in PART_COLUMNS.values()]
            return Parts(np.zeros(len(rows), np.int64), *empty)
        ends, values = self._ends, self._values
        count = ends[rows + 1] - ends[rows]
        first = np.repeat(ends[rows] - (np.cumsum(count) - count), count)
        at = first + np.arange(len(first))
        return Parts(count, *(column[at] for column in values))

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        assert self._column is not None
        ends: NDArray[np.int64] = self._column.offsets.to_numpy()
        if ends[0] != 0 or ends[-1] > len(self._column.values) or (np.diff(ends) < 0).any():
            raise ValueError("the parts of its rows do not add up")
        return ends

    @cached_property
    def _values(self) -> list[NDArray[Any]]:
        assert self._column is not None
        values = self._column.values
        return [values.field(name).to_numpy() for name in PART_COLUMNS]
