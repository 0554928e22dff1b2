"""The reader of an input type with transforms around it: rows go in, other samples come out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.errors import ManifestError
from playhead.formats.base import BadRowError, TableBlock, TableFormat
from playhead.formats.example import Part, Place
from playhead.formats.transforms.registry import made
from playhead.formats.transforms.shape import reshaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf, Transform
    from playhead.formats.base import Format, RowColumns, SourcePair, TableRow
    from playhead.formats.example import Example
    from playhead.formats.transforms.registry import RowTransform

__all__ = ["TransformedLines", "TransformedTable", "transformed"]


def transformed(inner: Any, transforms: Sequence[Transform]) -> TransformedLines | TransformedTable:
    """Put transforms around the reader of an input type, the first one innermost.

    What is no cut, such as a conversation, passes all of them as it is.

    Parameters
    ----------
    inner
        A `Format` or a `TableFormat`; what comes out is one too.
    transforms
        Names and options, as a leaf has them.

    Raises
    ------
    ConfigError
        If an option is not what it should be.
    """
    steps = [made(transform) for transform in transforms]
    if isinstance(inner, TableFormat):
        return TransformedTable(inner, steps)
    return TransformedLines(inner, steps)


class _Transformed:
    """What both kinds of readers do with samples.

    Parameters
    ----------
    inner
        The reader of the input type; what it says of files and archives holds.
    steps
        The transforms, in order.
    """

    def __init__(self, inner: Any, steps: Sequence[RowTransform]) -> None:
        self.inner = inner
        self._steps = steps
        self._shapes_rows = any(step.shapes_rows for step in steps)

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """Return the files of the input type; `Format.sources`."""
        return self.inner.sources(leaf)

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of one row; `Format.example`."""
        return self.convert(leaf, self.inner.example(leaf, place, row, parts))

    def convert(self, leaf: Leaf, example: Example) -> Example:
        """Make what the transforms make of a sample that the input type has read.

        Raises
        ------
        ManifestError
            If the sample lacks what a transform needs.
        """
        try:
            for step in self._steps:
                if example.kind == "cut":
                    example = step.example(leaf, example)
        except BadRowError as error:
            raise ManifestError(error.what, where=str(example.place), fix=error.fix) from None
        return example

    def _seen(
        self, leaf: Leaf, columns: RowColumns, place: Place, rows: Sequence[bytes]
    ) -> tuple[RowColumns, list[int]]:
        """Let the transforms see rows, of which nothing but the place in a file is known."""
        # Rows whose audio lies in an archive would else be looked for beside the manifest.
        parts = () if columns.members is None else (Part("audio", b"", "", 0),)
        examples = (self.inner.example(leaf, place, row, parts) for row in rows)
        try:
            return reshaped(leaf, columns, examples, self._steps)
        except BadRowError:
            raise
        except ManifestError as error:
            what, _, fix = str(error).partition(f" ({place}). ")
            raise BadRowError(what, fix=fix.removesuffix(".")) from None


class TransformedLines(_Transformed):
    """A `Format` with transforms around it."""

    def __init__(self, inner: Format, steps: Sequence[RowTransform]) -> None:
        super().__init__(inner, steps)
        self.lines_are_json: bool = getattr(inner, "lines_are_json", True)
        self.rows_are_members: bool = getattr(inner, "rows_are_members", False)
        self.member: Callable[[bytes], str | None] | None = getattr(inner, "member", None)
        self.samples: Any = getattr(inner, "samples", None)
        self.bind: Any = getattr(inner, "bind", None)

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:
        """Read a block of rows; `Format.columns`.

        Raises
        ------
        BadRowError
            If a row cannot be used, or lacks what a transform needs.
        """
        columns = self.inner.columns(leaf, pair, block)
        if not self._shapes_rows or columns.audios is not None:
            return columns
        # Blank lines are no rows, wherever they stand.
        lines = [line for line in block.split(b"\n") if line and not line.isspace()]
        rows = [lines[number] for number in columns.kept.tolist()]
        place = Place(leaf=leaf.name, shard=pair.manifest, row=0, byte=0)
        return self._seen(leaf, columns, place, rows)[0]


class TransformedTable(_Transformed):
    """A `TableFormat` with transforms around it."""

    def __init__(self, inner: TableFormat, steps: Sequence[RowTransform]) -> None:
        super().__init__(inner, steps)

    def scan(
        self, leaf: Leaf, pair: SourcePair, on_bad: Callable[[BadRowError], None] | None
    ) -> Iterator[TableBlock]:
        """Read a file for the index; `TableFormat.scan`."""
        for block in self.inner.scan(leaf, pair, on_bad):
            yield self._reshaped(leaf, pair, block, on_bad) if self._shapes_rows else block

    def groups(self, leaf: Leaf, pair: SourcePair) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how the file is divided; `TableFormat.groups`."""
        return self.inner.groups(leaf, pair)

    def load(
        self, leaf: Leaf, path: str, places: NDArray[np.int64], *, with_audio: bool
    ) -> list[TableRow]:
        """Read rows by their numbers; `TableFormat.load`."""
        return self.inner.load(leaf, path, places, with_audio=with_audio)

    def _reshaped(
        self,
        leaf: Leaf,
        pair: SourcePair,
        block: TableBlock,
        on_bad: Callable[[BadRowError], None] | None,
    ) -> TableBlock:
        place = Place(leaf=leaf.name, shard=pair.manifest, row=0, byte=0, is_table=True)
        columns, kept = self._seen(leaf, block.columns, place, block.rows)
        return replace(
            block, columns=columns, rows=[block.rows[i] for i in kept], place=block.place[kept]
        )
