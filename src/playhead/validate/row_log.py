"""Logs of runs: a line a batch, which is whole or not there, whatever ends the run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from playhead.validate.rows import BatchRow

__all__ = ["RowLog"]


class RowLog:
    """A log that is written line by line; what was there before is gone.

    Parameters
    ----------
    path
        The file; its folder is made if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered: a line is on its way once it is written, and none waits to be cut in half.
        self._file = path.open("wb", buffering=0)

    def __enter__(self) -> RowLog:  # noqa: PYI034  (`Self` is new in Python 3.11)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def write(self, row: BatchRow) -> None:
        """Write a batch; times have three decimals."""
        first = row.t_first_batch_ms
        row = replace(
            row,
            t_total_ms=round(row.t_total_ms, 3),
            t_first_batch_ms=None if first is None else round(first, 3),
        )
        line = memoryview(msgspec.json.encode(row) + b"\n")
        while line:
            line = line[self._file.write(line) :]
