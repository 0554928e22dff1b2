"""The manifest of a simulator, row by row, and the Lhotse cuts that its rows are."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from playhead.formats.base import BadRowError
from playhead.formats.columns import MAX_SECONDS, rates, sample_counts
from playhead.formats.headers import Header, read_headers
from playhead.formats.rows import CustomObject, decode_block, is_skipped, resolve_path
from playhead.storage.compression import open_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf

__all__ = [
    "Headers",
    "SimulatorRow",
    "bare_cut",
    "check_seconds",
    "manifest_lines",
    "on_line",
    "read_row",
    "written",
]

_PIECE_BYTES = 4 << 20
# What the cut says by itself. NeMo's training code takes an `offset` off the supervisions' times,
# which begin with the cut here.
_NOT_CUSTOM = ("audio_filepath", "duration", "offset", "_skipme")


class _Custom(CustomObject, gc=False):
    speaker_id: str | int | None = None


class _Said(msgspec.Struct, gc=False):
    speaker: str | int | None = None


class SimulatorRow(msgspec.Struct, gc=False):
    """What is looked at in every row, whichever kind it is of."""

    type: str | None = None
    audio_filepath: str | None = None
    duration: float | None = None
    offset: float | None = None
    speaker_id: str | int | None = None
    sampling_rate: float | None = None
    sample_rate: float | None = None
    seglst_filepath: str | None = None
    session_id: str | int | None = None
    skipme: Any = msgspec.field(default=None, name="_skipme")
    custom: _Custom | str | float | bool | list[Any] | None = None
    supervisions: list[_Said] | None = None

    @property
    def is_skipped(self) -> bool:
        """Whether it is left out on purpose."""
        return is_skipped(self.skipme, self.custom)

    @property
    def speaker(self) -> str | None:
        """Whose voice it is: its `speaker_id`, or the one speaker of all its supervisions."""
        found = self.speaker_id
        if found is None and isinstance(self.custom, _Custom):
            found = self.custom.speaker_id
        if found is None:
            speakers = {one.speaker for one in self.supervisions or ()}
            found = speakers.pop() if len(speakers) == 1 else None
        return None if found is None else str(found)

    def unmeasured(self, leaf: Leaf) -> str | None:
        """Its audio file where only that tells the sampling rate, as the row names it."""
        if self.sampling_rate or self.sample_rate or leaf.options.input_sampling_rate:
            return None
        return self.audio_filepath


_DECODER = msgspec.json.Decoder(SimulatorRow)


def manifest_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Give the lines of a manifest that hold something, with their numbers from 1.

    Raises
    ------
    DataError
        If a compressed manifest cannot be read to its end.
    NotSupportedError
        If it is compressed in a way that is not known.
    """
    number, pending = 0, b""
    with open_whole(path) as file:
        while piece := file.read(_PIECE_BYTES):
            *lines, pending = (pending + piece).split(b"\n")
            for number, line in enumerate(lines, number + 1):  # noqa: B020 - it goes on from there
                if content := line.strip():
                    yield number, content
    if content := pending.strip():
        yield number + 1, content


def read_row(line: bytes) -> SimulatorRow:
    """Read a row.

    Raises
    ------
    BadRowError
        If it is no JSON object or a field has the wrong type.
    """
    rows = decode_block(_DECODER, SimulatorRow, line)
    if len(rows) != 1:
        raise BadRowError("the line is not one JSON object", fix="Write one object on each line")
    return rows[0]


def on_line(number: int, error: BadRowError) -> BadRowError:
    """Return the error with the number of the line."""
    return BadRowError(f"line {number}: {error.what}", fix=error.fix)


class Headers:
    """What the headers of audio files say, each read once.

    Parameters
    ----------
    folder
        The manifest's, beside which relative paths are looked for.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[str, Header | BadRowError] = {}

    def read(self, names: Iterable[str]) -> None:
        """Read those that are new, several at a time."""
        new = [name for name in dict.fromkeys(names) if name not in self._known]
        paths = [resolve_path(name, self._folder) for name in new]
        for name, path, found in zip(new, paths, read_headers(paths), strict=True):
            self._known[name] = _named(path, found)

    def of(self, name: str) -> Header:
        """Return what the header of a file says.

        Raises
        ------
        BadRowError
            If it cannot be read.
        """
        self.read([name])
        found = self._known[name]
        if isinstance(found, BadRowError):
            raise found
        return found


def _named(path: str, found: Header | BadRowError) -> Header | BadRowError:
    """Say of an error what it is for a simulator's row."""
    if isinstance(found, Header):
        return found
    said = found.what.rpartition(": ")[2]
    if said.endswith("does not exist"):
        said = "there is no such file"
    return BadRowError(
        f"the row has no sampling_rate, and the header of {path!r} cannot be read: {said}",
        fix="Correct its audio_filepath, or add the sampling_rate to the row",
    )


class _Recorded(NamedTuple):
    rate: int
    frames: int
    channels: int


def bare_cut(
    leaf: Leaf, data: dict[str, Any], start: float, duration: float, headers: Headers
) -> dict[str, Any]:
    """Make the Lhotse cut of a stretch of a NeMo row's audio, without supervisions.

    Parameters
    ----------
    leaf
        The source.
    data
        The row, decoded.
    start, duration
        The stretch, in seconds.
    headers
        Tell the sampling rate where the row does not.

    Raises
    ------
    BadRowError
        If nobody tells the sampling rate.
    """
    name = data["audio_filepath"]
    recorded = _recorded(leaf, data, start + duration, headers)
    custom = {key: value for key, value in data.items() if key not in _NOT_CUSTOM}
    return {
        "id": name if start == 0 else f"{name}-{start:g}",
        "start": start,
        "duration": duration,
        "channel": 0,
        "supervisions": [],
        "recording": {
            "id": name,
            "sources": [
                {"type": "file", "channels": list(range(recorded.channels)), "source": name}
            ],
            "sampling_rate": recorded.rate,
            "num_samples": recorded.frames,
            "duration": recorded.frames / recorded.rate,
            "channel_ids": list(range(recorded.channels)),
        },
        "custom": {**custom, "offset": 0.0},
        "type": "MonoCut",
    }


def written(cut: dict[str, Any]) -> bytes:
    """Write a cut as JSON.

    Raises
    ------
    BadRowError
        If it has what Python reads and nobody can write, such as half a character.
    """
    try:
        return msgspec.json.encode(cut)
    except (UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise BadRowError(
            f"the row cannot be written again: {error}", fix="Correct it, or leave it out"
        ) from None


def check_seconds(name: str, seconds: float) -> None:
    """Refuse a length or a place in time that no audio has.

    Raises
    ------
    BadRowError
        If it is negative, above the longest, or no number.
    """
    # Written so that NaN fails too.
    if not 0 <= seconds <= MAX_SECONDS:
        raise BadRowError(
            f"the {name} is {seconds!r} seconds", fix=f"Write a number from 0 to {MAX_SECONDS:.0f}"
        )


def _recorded(leaf: Leaf, data: dict[str, Any], end: float, headers: Headers) -> _Recorded:
    declared = data.get("sampling_rate") or data.get("sample_rate")
    declared = declared or leaf.options.input_sampling_rate
    if not declared:
        header = headers.of(data["audio_filepath"])
        return _Recorded(header.rate, header.frames, header.channels)
    # The file is longer where the row is a recording of which this is a stretch.
    whole = data.get("duration") or 0.0
    check_seconds("duration", whole)
    end = max(end, whole)
    rate = _checked_rate(declared)
    return _Recorded(int(rate[0]), int(sample_counts([end], rate)[0]), 1)


@lru_cache(64)
def _checked_rate(declared: float) -> NDArray[np.int32]:
    return rates([declared])
