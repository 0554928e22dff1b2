"""Where the rows of samples lie, as far as their index says; and what they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.index.concatenation import joined_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.loader.part import Part
    from playhead.plan import MicroBatch

__all__ = ["RowPlace", "StepRows"]


class RowPlace(NamedTuple):
    """Where a row and its audio lie."""

    manifest: str | None
    """The file that holds the row."""
    manifest_byte: int | None
    """Where it begins in it; of tables the number of the row."""
    archive: str | None
    """The file of many samples that holds its audio, or the first of several."""
    archive_byte: int | None
    """Where the audio begins in it."""


class StepRows:
    """Looks up the rows of a blend.

    Parameters
    ----------
    part
        The blend, opened.
    """

    def __init__(self, part: Part) -> None:
        self._part = part
        self._starts: dict[int, NDArray[np.int64]] = {}
        self._reader: Reader | None = None

    def place(self, leaf: int, sample: int) -> RowPlace:
        """Return where a sample's row lies; of several that were joined, the first.

        Parameters
        ----------
        leaf
            Number of the leaf.
        sample
            Its row, as the plan counts them.
        """
        pack = self._part.packs[leaf]
        row = self._first_row(leaf, sample)
        uris = pack.shards.uris
        archive, archive_byte = int(pack.tar[row]), int(pack.audio_offset[row])
        if pack.entry.fields:
            parts = pack.parts(np.array([row]))
            with_bytes = np.flatnonzero(parts.file >= 0)
            archive = int(parts.file[with_bytes[0]]) if len(with_bytes) else -1
            archive_byte = int(parts.offset[with_bytes[0]]) if len(with_bytes) else 0
        return RowPlace(
            uris[int(pack.shard[row])],
            int(pack.row_offset[row]),
            None if archive < 0 else uris[archive],
            None if archive < 0 or not archive_byte else archive_byte,
        )

    def _first_row(self, leaf: int, sample: int) -> int:
        how = self._part.spec.leaves[leaf].concatenation
        if how is None:
            return sample
        if leaf not in self._starts:
            self._starts[leaf] = joined_rows(self._part.packs[leaf].duration_us, how)
        return int(self._starts[leaf][sample])

    def ids(self, micro_batch: MicroBatch) -> list[str]:
        """Read what rows call their samples; no audio is read.

        Raises
        ------
        PlayheadError, OSError
            If rows cannot be read.
        """
        if self._reader is None:
            spec = self._part.spec
            self._reader = Reader(spec.leaves, spec.packs, Timings(), spec.cache, spec.access)
        return [example.id for example in self._reader.read(micro_batch, with_audio=False)]
