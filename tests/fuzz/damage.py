"""Ways in which files come to harm, each a function of a seeded generator."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

Damaged = tuple[bytes, str]

_BLOCKS = (1, 2, 4, 8, 16, 64, 512)
_NUMBERS = re.compile(rb"-?\d+(?:\.\d+)?")
_STRANGE = (
    *(b"-1", b"0", b"1e400", b"-1e400", b"NaN", b"null", b'"7"', b"1e-12", b"[]", b"0.5"),
    *(b"99999999999999999999999", b"9223372036854775807", b"-9223372036854775808"),
    *(b"4294967296", b"86400000", b"1e15"),
)


def _block(rng: random.Random, size: int) -> tuple[int, int]:
    """Where a block begins, and how long it is; often aligned."""
    length = min(rng.choice(_BLOCKS), size)
    start = rng.randrange(size - length + 1)
    if rng.random() < 0.5:
        start -= start % length
    return start, length


def truncated(data: bytes, rng: random.Random) -> Damaged:
    at = rng.randrange(len(data))
    if rng.random() < 0.3:
        at -= at % 512
    if rng.random() < 0.3 and b"\n" in data[:-1]:
        at = rng.choice([i for i, byte in enumerate(data[:-1]) if byte == 10]) + rng.randint(0, 1)
    return data[:at], f"cut off at {at}"


def bits_flipped(data: bytes, rng: random.Random) -> Damaged:
    changed = bytearray(data)
    places = [rng.randrange(len(data)) for _ in range(rng.choice((1, 1, 1, 2, 5)))]
    for place in places:
        changed[place] ^= 1 << rng.randrange(8)
    return bytes(changed), f"bits flipped in {places}"


def bytes_swapped(data: bytes, rng: random.Random) -> Damaged:
    changed = bytearray(data)
    one = rng.randrange(len(data))
    other = min(one + 1, len(data) - 1) if rng.random() < 0.5 else rng.randrange(len(data))
    changed[one], changed[other] = changed[other], changed[one]
    return bytes(changed), f"bytes {one} and {other} swapped"


def blocks_swapped(data: bytes, rng: random.Random) -> Damaged:
    start, length = _block(rng, len(data))
    other = rng.randrange(len(data) - length + 1)
    other -= (other - start) % length
    other = max(other, start % length)
    changed = bytearray(data)
    one, two = data[start : start + length], data[other : other + length]
    if len(two) == length and abs(other - start) >= length:
        changed[start : start + length], changed[other : other + length] = two, one
    return bytes(changed), f"{length} bytes at {start} and at {other} swapped"


def block_doubled(data: bytes, rng: random.Random) -> Damaged:
    start, length = _block(rng, len(data))
    end = start + length
    return data[:end] + data[start:end] + data[end:], f"{length} bytes at {start} doubled"


def block_lost(data: bytes, rng: random.Random) -> Damaged:
    start, length = _block(rng, len(data))
    return data[:start] + data[start + length :], f"{length} bytes at {start} lost"


def emptied(data: bytes, rng: random.Random) -> Damaged:
    return b"", "emptied"


def zeroed(data: bytes, rng: random.Random) -> Damaged:
    start, length = _block(rng, len(data))
    if rng.random() < 0.3:
        start, length = rng.choice([(0, len(data)), (start, len(data) - start), (0, start)])
    changed = data[:start] + bytes(length) + data[start + length :]
    return changed, f"{length} bytes at {start} zeroed"


def overwritten(data: bytes, rng: random.Random) -> Damaged:
    start, length = _block(rng, len(data))
    junk = rng.randbytes(length)
    return data[:start] + junk + data[start + length :], f"{length} bytes at {start} overwritten"


def appended(data: bytes, rng: random.Random) -> Damaged:
    more = rng.choice([b"\n", bytes(512), rng.randbytes(7), data, data[: rng.randrange(len(data))]])
    return data + more, f"{len(more)} bytes appended"


def number_replaced(data: bytes, rng: random.Random) -> Damaged:
    found = list(_NUMBERS.finditer(data))
    if not found:
        return bits_flipped(data, rng)
    match, number = rng.choice(found), rng.choice(_STRANGE)
    changed = data[: match.start()] + number + data[match.end() :]
    return changed, f"{match.group().decode()} at {match.start()} became {number.decode()}"


def letter_replaced(data: bytes, rng: random.Random) -> Damaged:
    """The text stays one, and as long as it was."""
    places = [place for place, byte in enumerate(data) if chr(byte).isalnum()]
    if not places:
        return bits_flipped(data, rng)
    place, letter = rng.choice(places), rng.choice(b"aeinst0123456789")
    changed = data[:place] + bytes([letter]) + data[place + 1 :]
    return changed, f"{data[place]:c} at {place} became {letter:c}"


def lines_disturbed(data: bytes, rng: random.Random) -> Damaged:
    lines = data.splitlines(keepends=True)
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.choice(("swapped", "doubled", "lost"))
    if kind == "swapped":
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == "doubled":
        lines.insert(other, lines[one])
    else:
        del lines[one]
    return b"".join(lines), f"line {one} {kind} ({other})"


_ANY: tuple[Callable[[bytes, random.Random], Damaged], ...] = (
    truncated,
    bits_flipped,
    bits_flipped,
    bytes_swapped,
    blocks_swapped,
    block_doubled,
    block_lost,
    zeroed,
    overwritten,
    appended,
)
_TEXT = (
    *_ANY,
    *(letter_replaced, letter_replaced, letter_replaced),
    *(number_replaced, number_replaced, lines_disturbed, lines_disturbed),
)


def damage(data: bytes, rng: random.Random, *, is_text: bool = False) -> Damaged:
    """Damage a file, never by doing nothing; rarely by emptying it."""
    for _ in range(20):
        way = emptied if rng.random() < 0.02 else rng.choice(_TEXT if is_text else _ANY)
        changed, how = way(data, rng)
        if changed != data:
            return changed, how
    return data[:-1], "last byte lost"


def _places(value: Any, path: tuple = ()) -> list[tuple]:
    found = [path]
    if isinstance(value, dict):
        for key, part in value.items():
            found += _places(part, (*path, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            found += _places(part, (*path, number))
    return found


def _strange_value(value: Any, rng: random.Random) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.6:
        return rng.choice((value + 1, value - 1, -value, value * 2, value + 2**62, value ^ 1 << 40))
    return rng.choice((None, -1, 0, 1, 2**70, 0.5, "", "x", [], {}, [[]], True, [None], {"a": 1}))


def damage_json(value: Any, rng: random.Random) -> tuple[Any, str]:
    """Damage a JSON value in its structure: what is in it changes, goes, or comes twice."""
    changed = json.loads(json.dumps(value))
    path = rng.choice(_places(changed)[1:])
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    kind = rng.choice(("replaced", "replaced", "replaced", "lost", "doubled", "added"))
    if kind == "lost":
        del holder[path[-1]]
    elif kind == "doubled" and isinstance(holder, list):
        holder.insert(path[-1], holder[path[-1]])
    elif kind == "added":
        if isinstance(holder, list):
            holder.append(_strange_value(None, rng))
        else:
            holder["unknown"] = _strange_value(None, rng)
    else:
        holder[path[-1]] = _strange_value(holder[path[-1]], rng)
    return changed, f"{list(path)} {kind}: {json.dumps(changed)[:300]}"
