"""The reader of an input type with transforms around it: rows go in, other samples come out."""

from __future__ import annotations

from dataclasses import replace
from itertools import starmap
from typing import TYPE_CHECKING, Any

from playhead.errors import ManifestError
from playhead.formats.base import BadRowError, ScannedFormat, TableBlock, TableFormat
from playhead.formats.example import Audio, Part, Place
from playhead.formats.transforms.registry import made
from playhead.formats.transforms.shape import Fate, Length, reshaped
from playhead.formats.transforms.speech import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf, Transform
    from playhead.formats.base import Format, RowColumns, SourcePair, TableRow
    from playhead.formats.example import Example
    from playhead.formats.transforms.registry import RowTransform

__all__ = ["TransformedLines", "TransformedScan", "TransformedTable", "transformed"]


def transformed(inner: Any, transforms: Sequence[Transform]) -> TransformedLines | TransformedScan:
    """Put transforms around the reader of an input type, the first one innermost.

    What is no cut, such as a conversation, passes all of them as it is.

    Parameters
    ----------
    inner
        A `Format`, `ScannedFormat` or `TableFormat`; what comes out is one too.
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
    if isinstance(inner, ScannedFormat):
        return TransformedScan(inner, steps)
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
        self,
        leaf: Leaf,
        columns: RowColumns,
        rows: Sequence[bytes],
        place: Place,
        on_bad: Callable[[BadRowError], None] | None,
    ) -> tuple[RowColumns, list[int]]:
        """Let the transforms see rows, of which only the file is known."""
        # Rows whose audio lies in an archive would else be looked for beside the manifest.
        parts = () if columns.members is None else (Part("audio", b"", "", 0),)

        def fate(number: int, row: bytes) -> Fate:
            try:
                example = self.inner.example(leaf, place, row, parts)
                example = _with_length(example, int(columns.duration_us[number]))
                return self._fate(leaf, example, int(columns.rate[number]))
            except ManifestError as error:
                bad = _without_place(error, place)
                if on_bad is None:
                    raise bad from None
                on_bad(bad)
                return Fate(dropped="")

        return reshaped(columns, starmap(fate, enumerate(rows)))

    def _fate(self, leaf: Leaf, before: Example, rate: int) -> Fate:
        after = before
        for step in self._steps:
            if after.kind != "cut":
                break
            reason = step.dropped(leaf, after)
            if reason is not None:
                return Fate(dropped=reason)
            after = step.example(leaf, after)
        seconds = seconds_of(after)
        if seconds is None:
            return Fate()
        new_rate = _rate_of(after, rate)
        is_same = seconds == seconds_of(before) and (new_rate == rate or after.kind != "cut")
        return Fate() if is_same else Fate(length=Length(seconds, new_rate))


def _with_length(example: Example, duration_us: int) -> Example:
    """Give a sample whose audio is not there the length that the index has measured."""
    audio = example.audio or Audio(source=b"")
    is_known = example.cut_data is not None or audio.duration is not None or not duration_us
    if example.kind != "cut" or is_known:
        return example
    return replace(example, audio=replace(audio, duration=duration_us / 1e6))


def _rate_of(example: Example, before: int) -> int:
    if example.kind != "cut":
        return 0
    sounding: Any = None if example.cut_data is None else example.cut_data.get("recording")
    return int(sounding["sampling_rate"]) if sounding else before


def _without_place(error: ManifestError, place: Place) -> BadRowError:
    """Return an error for who knows the row's place, which is not `place`."""
    if isinstance(error, BadRowError):
        return error
    what, _, fix = str(error).partition(f" ({place}). ")
    return BadRowError(what, fix=fix.removesuffix("."))


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
        if not self._shapes_rows or columns.audios is not None or not self.lines_are_json:
            return columns
        # Blank lines are no rows, wherever they stand.
        lines = [line for line in block.split(b"\n") if line and not line.isspace()]
        rows = [lines[number] for number in columns.kept.tolist()]
        place = Place(leaf=leaf.name, shard=pair.manifest, row=0, byte=0)
        return self._seen(leaf, columns, rows, place, None)[0]


class TransformedScan(_Transformed):
    """A `ScannedFormat` with transforms around it."""

    def __init__(self, inner: ScannedFormat, steps: Sequence[RowTransform]) -> None:
        super().__init__(inner, steps)

    def scan(
        self, leaf: Leaf, pair: SourcePair, on_bad: Callable[[BadRowError], None] | None
    ) -> Iterator[TableBlock]:
        """Read a file for the index; `ScannedFormat.scan`."""
        for block in self.inner.scan(leaf, pair, on_bad):
            yield self._reshaped(leaf, pair, block, on_bad) if self._shapes_rows else block

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of one row; `Format.example`.

        Where no audio is wanted, its length is known nevertheless if the row says it.
        """
        example = self.inner.example(leaf, place, row, parts)
        if example.kind == "cut" and example.audio is None and not parts:
            example = self.inner.example(leaf, place, row, (Part("audio", b"", place.shard, 0),))
        return self.convert(leaf, example)

    def _reshaped(
        self,
        leaf: Leaf,
        pair: SourcePair,
        block: TableBlock,
        on_bad: Callable[[BadRowError], None] | None,
    ) -> TableBlock:
        place = Place(leaf=leaf.name, shard=pair.manifest, row=0, byte=0, is_table=True)
        columns, kept = self._seen(leaf, block.columns, block.rows, place, on_bad)
        return replace(
            block, columns=columns, rows=[block.rows[i] for i in kept], place=block.place[kept]
        )


class TransformedTable(TransformedScan):
    """A `TableFormat` with transforms around it."""

    def groups(self, leaf: Leaf, pair: SourcePair) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how the file is divided; `TableFormat.groups`."""
        return self.inner.groups(leaf, pair)

    def load(
        self, leaf: Leaf, path: str, places: NDArray[np.int64], *, with_audio: bool
    ) -> list[TableRow]:
        """Read rows by their numbers; `TableFormat.load`."""
        return self.inner.load(leaf, path, places, with_audio=with_audio)
