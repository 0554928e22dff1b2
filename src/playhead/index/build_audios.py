"""The audio turns of rows: where each lies, and how long it is."""

from __future__ import annotations

from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from playhead.formats import BadRowError
from playhead.formats.columns import microseconds
from playhead.formats.headers import Encoded, read_headers
from playhead.index.columns import Parts
from playhead.storage.base import ByteRange
from playhead.storage.with_middle import with_middle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from playhead.formats import RowAudio
    from playhead.formats.headers import Header

__all__ = ["AUDIO_FIELD", "TurnPlaces", "Turns", "find_turns", "name_archives"]

AUDIO_FIELD: Final = "audio"
"""The field that audio turns belong to."""


class TurnPlaces(NamedTuple):
    """Where audio turns lie that are in archives; arrays of shape (T,), T the turns."""

    file: NDArray[np.int32]
    """Place of the archive in the leaf's shard table; -1 for plain files."""
    offset: NDArray[np.int64]
    """First byte of the payload."""
    size: NDArray[np.int64]
    """Bytes of payload."""


class Turns(NamedTuple):
    """The audio turns of some rows."""

    parts: Parts
    """Where they lie, row after row."""
    duration_us: NDArray[np.int64]
    """How long the turns of each row are together, shape (K,)."""


def find_turns(
    audios: Sequence[Sequence[RowAudio]],
    code: int,
    find: Callable[[Sequence[RowAudio]], TurnPlaces],
    paths: Callable[[int], str],
) -> Turns:
    """Find the audio turns of rows, and measure those whose length no row says.

    Parameters
    ----------
    audios
        The turns of each row.
    code
        Number of the field `audio` among those of the leaf.
    find
        Finds those that lie in archives.
    paths
        Path of a file by its place in the leaf's shard table.

    Raises
    ------
    BadRowError
        If one is not there, or its length cannot be found out.
    """
    flat = [audio for row in audios for audio in row]
    count = np.array([len(row) for row in audios], np.int64)
    places = find(flat)
    duration = np.array([audio.duration_us for audio in flat], np.int64)
    unknown = np.flatnonzero(duration < 0).tolist()
    with ExitStack() as stack:
        path_of = lru_cache(None)(lambda file: stack.enter_context(with_middle(paths(file))))
        sources = [_source(flat[turn], turn, places, path_of) for turn in unknown]
        for turn, header in zip(unknown, read_headers(sources), strict=True):
            duration[turn] = _left(flat[turn], header)
    sums = np.concatenate([[0], np.cumsum(duration)])
    ends = np.cumsum(count)
    parts = Parts(
        count,
        np.full(len(flat), code, np.int16),
        places.file,
        places.offset,
        places.size,
        duration,
    )
    return Turns(parts, sums[ends] - sums[ends - count])


def name_archives(turns: Sequence[RowAudio], first_shard: int) -> TurnPlaces:
    """Say which archives audio turns lie in, and not where in them: none is opened.

    Parameters
    ----------
    turns
        The turns.
    first_shard
        Place of the first archive in the leaf's shard table.

    Raises
    ------
    BadRowError
        If that cannot be told, or the length of one, without opening the archive.
    """
    for turn in turns:
        if turn.member is None or (turn.tar >= 0 and turn.duration_us >= 0):
            continue
        what = "say in which tar it is" if turn.tar < 0 else "say how long it is"
        raise BadRowError(
            f"the row does not {what}: {turn.member!r}",
            fix="Add that, or leave out --native-tar-paths-only",
        )
    file = [-1 if turn.member is None else turn.tar + first_shard for turn in turns]
    nowhere = np.zeros(len(turns), np.int64)
    return TurnPlaces(np.array(file, np.int32), nowhere, nowhere)


def _source(audio: RowAudio, turn: int, places: TurnPlaces, paths: Callable[[int], str]) -> Encoded:
    file = int(places.file[turn])
    if file < 0:
        return audio.path or ""
    return ByteRange(paths(file), int(places.offset[turn]), int(places.size[turn]))


def _left(audio: RowAudio, header: Header | BadRowError) -> int:
    """Microseconds from where a turn begins to the end of its file."""
    if isinstance(header, BadRowError):
        raise header
    left = header.frames - int(np.floor(audio.start * header.rate + 0.5))
    if left < 0:
        raise BadRowError(
            f"the offset {audio.start} s is behind the end of {audio.member or audio.path}",
            fix="Correct the offset",
        )
    return int(microseconds(np.array([left / header.rate]))[0])
