"""The columns of an open pack: mapped at once, and checked when they are first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from playhead.index.pack_checks import (
    Files,
    check_audio,
    check_column,
    check_layout,
    check_parts,
    check_sum,
)
from playhead.index.pack_parts import PartTable, part_arrays
from playhead.index.pack_table import COLUMNS_CHECK_KEY, decode_checksums

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    metadata
        What the pack says of itself.
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
        metadata: Mapping[bytes, bytes],
        leaves: Sequence[LeafEntry],
        files: FileTable,
    ) -> None:
        check_layout(batch, leaves)
        self._batch = batch
        self._leaves = leaves
        self._files = files
        self._checksums = decode_checksums(metadata.get(COLUMNS_CHECK_KEY))
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
                self._checked[name] = self._taken(name)
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
        if not self._has("row", "row_end"):
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
        if not self._has("parts", "part_end"):
            return PartTable(None)
        column = self._batch.column("parts")
        check_parts(column, self._leaves, self._where(), self.column("duration_us"))
        for name, values in part_arrays(column).items():
            check_sum(f"part_{name}", values, self._checksums)
        return PartTable(column)

    def _has(self, name: str, summed: str) -> bool:
        """Whether there is a column that not every pack has."""
        has = name in self._batch.schema.names
        if not has and summed in self._checksums:
            message = f"column {name} is missing"
            raise ValueError(message)
        return has

    def _taken(self, name: str) -> NDArray[Any]:
        column = self.unchecked(name)
        check_sum(name, column, self._checksums)
        check_column(name, column, self._leaves)
        return column

    def _check_audio(self) -> None:
        columns = {name: self._taken(name) for name in _AUDIO}
        check_audio({**columns, "tar": self.column("tar")}, self._leaves, self._where())
        self._checked.update(columns)

    def _where(self) -> Files:
        shards = self._files.shards
        return Files(shards.sizes, shards.have_middle)
