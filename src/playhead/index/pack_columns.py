"""The columns of an open pack: mapped at once, and checked when they are first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from playhead.index.pack_checks import Files, check_audio, check_column, check_layout, check_parts
from playhead.index.pack_parts import PartTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from playhead.index.pack_damage import FileTable
    from playhead.index.pack_table import LeafEntry

__all__ = ["PackColumns"]

_AUDIO = ("audio_offset", "audio_size")


class PackColumns:
    """What a pack holds of the rows of all its leaves, end to end.

    Damage to a column is noticed before a number of it is used; a column that nobody asks for
    costs nothing.

    Parameters
    ----------
    batch
        The pack's only record batch.
    leaves
        Whose rows they are.
    files
        Their files.

    Raises
    ------
    ValueError
        If it is not the batch of a pack.
    """

    def __init__(
        self,
        batch: pa.RecordBatch,
        leaves: Sequence[LeafEntry],
        files: FileTable,
    ) -> None:
        check_layout(batch, leaves)
        self._batch = batch
        self._leaves = leaves
        self._files = files
        self._checked: dict[str, NDArray[Any]] = {}

    def unchecked(self, name: str) -> NDArray[Any]:
        """Return a column as it lies in the file, for what only compares it; shape (N,)."""
        return self._batch.column(name).to_numpy()

    def column(self, name: str) -> NDArray[Any]:
        """Return a column, shape (N,).

        Raises
        ------
        ValueError, ArrowException
            If it is damaged.
        """
        found = self._checked.get(name)
        if found is None:
            if name in _AUDIO:
                self._check_audio()
            else:
                column = self.unchecked(name)
                check_column(name, column, self._leaves)
                self._checked[name] = column
            found = self._checked[name]
        return found

    @cached_property
    def rows(self) -> pa.LargeBinaryArray | None:
        """The rows' bytes; None where the pack holds none.

        Raises
        ------
        ArrowException
            If they are damaged.
        """
        if "row" not in self._batch.schema.names:
            return None
        column = self._batch.column("row")
        # Arrow trusts where variable-length values end, also beyond the end of the file.
        column.validate(full=True)
        return column

    @cached_property
    def parts(self) -> PartTable:
        """What belongs to rows and lies elsewhere.

        Raises
        ------
        ValueError, ArrowException
            If it is damaged.
        """
        if "parts" not in self._batch.schema.names:
            return PartTable(None)
        column = self._batch.column("parts")
        check_parts(column, self._leaves, self._where(), self.column("duration_us"))
        return PartTable(column)

    def _check_audio(self) -> None:
        columns = {name: self.unchecked(name) for name in _AUDIO}
        for name, column in columns.items():
            check_column(name, column, self._leaves)
        check_audio({**columns, "tar": self.column("tar")}, self._leaves, self._where())
        self._checked.update(columns)

    def _where(self) -> Files:
        shards = self._files.shards
        return Files(shards.sizes, shards.have_middle)
