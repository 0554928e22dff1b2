"""A checksum inside of an Arrow file, so that a single bit that changes is noticed."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OPEN_SEAL", "SEAL_KEY", "sealed", "why_broken"]

SEAL_KEY: Final = "playhead.side.seal"
"""Key of the schema's metadata that holds the seal."""
OPEN_SEAL: Final = "crc32:00000000"
"""What stands there before a file is sealed."""

_OPEN = OPEN_SEAL.encode()
_SEAL = re.compile(rb"crc32:[0-9a-f]{8}")
# The schema, and with it the seal, stands at both ends of the file, within so many bytes.
_END_BYTES = 4096


def sealed(data: memoryview) -> Iterator[bytes | memoryview]:
    """Give the pieces of a file whose seals are open, with the seals closed.

    Parameters
    ----------
    data
        An Arrow file whose schema has `SEAL_KEY`: `OPEN_SEAL` among its metadata.
    """
    places = _places(data)
    assert len(places) == 2
    seal = b"crc32:%08x" % _checksum(data, places)
    end = 0
    for place in places:
        yield data[end:place]
        yield seal
        end = place + len(seal)
    yield data[end:]


def why_broken(data: memoryview) -> str | None:
    """Say what is wrong with a sealed file; None where every byte is as it was written."""
    places = _places(data)
    if len(places) != 2:
        return "it is not as long as it was"
    seals = {bytes(data[place : place + len(_OPEN)]) for place in places}
    if seals != {b"crc32:%08x" % _checksum(data, places)}:
        return "its checksum is another"
    return None


def _places(data: memoryview) -> list[int]:
    """Where the seals stand in a file."""
    tail = len(data) - _END_BYTES
    spans = [(0, len(data))] if tail <= _END_BYTES else [(0, _END_BYTES), (tail, len(data))]
    return [
        start + match.start()
        for start, stop in spans
        for match in _SEAL.finditer(bytes(data[start:stop]))
    ]


def _checksum(data: memoryview, places: list[int]) -> int:
    """CRC-32 of a file as if its seals were open."""
    checksum, end = 0, 0
    for place in places:
        checksum = zlib.crc32(_OPEN, zlib.crc32(data[end:place], checksum))
        end = place + len(_OPEN)
    return zlib.crc32(data[end:], checksum)
