"""One header block of a tar archive: its fields in every dialect that is written today."""

from __future__ import annotations

from typing import NamedTuple
from zlib import adler32

__all__ = ["BLOCK", "BadHeaderError", "Header", "parse_header", "parse_pax", "to_text"]

BLOCK = 512
_ADLER_MODULUS = 65521
_CHECKSUM_OF_SPACES = 8 * ord(" ")


class BadHeaderError(ValueError):
    """A block that is no tar header, or one that cannot be understood."""


class Header(NamedTuple):
    """What a header block says by itself, without the extension headers before it."""

    name: bytes
    """The name, at most 255 bytes; the ustar prefix is part of it."""
    size: int
    """Bytes of payload as declared; links and folders have none whatever it says."""
    kind: bytes
    """The type flag, one byte."""


def parse_header(block: bytes) -> Header:
    """Read one header block after checking its checksum.

    Parameters
    ----------
    block
        512 bytes, not all zero.

    Raises
    ------
    BadHeaderError
        The checksum is wrong or a number is not one.
    """
    # Adler-32's low half is 1 + the sum of the bytes modulo 65521: the checksum in one C call.
    total = adler32(block) - 1 - sum(block[148:156]) + _CHECKSUM_OF_SPACES
    try:
        wrong = ((total & 0xFFFF) - int(block[148:154], 8)) % _ADLER_MODULUS
    except ValueError:
        wrong = 1
    if wrong:
        _check_sum(block)
    try:
        size = int(block[124:136].rstrip(b"\0 "), 8)
    except ValueError:
        size = _number(block[124:136])
    if size < 0:
        raise BadHeaderError("its size is negative")
    name = block[:100].split(b"\0", 1)[0]
    # Only POSIX archives have a prefix; old GNU ones keep times in its place.
    if block[345] and block[257:263] == b"ustar\0":
        name = block[345:500].split(b"\0", 1)[0] + b"/" + name
    return Header(name, size, block[156:157])


def parse_pax(payload: bytes) -> dict[bytes, bytes]:
    r"""Read the `LENGTH KEY=VALUE` records of a PAX extension header.

    Parameters
    ----------
    payload
        The extension header's payload.

    Raises
    ------
    BadHeaderError
        A record's length does not fit or it has no `=`.

    Examples
    --------
    >>> parse_pax(b"13 path=a/bc\n")
    {b'path': b'a/bc'}
    """
    records: dict[bytes, bytes] = {}
    position = 0
    while position < len(payload) and payload[position]:
        length_text, _, _ = payload[position : position + 20].partition(b" ")
        length = int(length_text) if length_text.isdigit() else 0
        record = payload[position + len(length_text) + 1 : position + length]
        key, equals, value = record.partition(b"=")
        if not equals or not key or not value.endswith(b"\n") or position + length > len(payload):
            raise BadHeaderError("a record of its extension header is broken")
        records[key] = value[:-1]
        position += length
    return records


def to_text(name: bytes) -> str:
    """Decode a member's name; bytes that are not UTF-8 survive as surrogates."""
    return name.decode("utf-8", "surrogateescape")


def _check_sum(block: bytes) -> None:
    try:
        declared = _number(block[148:156])
    except BadHeaderError:
        declared = -1
    unsigned = sum(block) - sum(block[148:156]) + _CHECKSUM_OF_SPACES
    # Some old programs added the bytes up as signed ones.
    high = sum(byte >> 7 for byte in block) - sum(byte >> 7 for byte in block[148:156])
    if declared not in (unsigned, unsigned - 256 * high):
        raise BadHeaderError("its checksum is wrong")


def _number(field: bytes) -> int:
    """Read a number: octal digits, or base 256 where the first bit is set."""
    if field[0] & 0x80:
        value = int.from_bytes(field, "big") - (0x80 << 8 * (len(field) - 1))
        return value if field[0] == 0x80 else -1
    digits = field.split(b"\0", 1)[0].strip()
    try:
        return int(digits, 8) if digits else 0
    except ValueError as error:
        raise BadHeaderError("one of its numbers is not octal") from error
