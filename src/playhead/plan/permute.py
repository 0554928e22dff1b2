"""Keyed permutations of any size whose elements are computed one by one, without memory."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.plan.keyed import mix, mix_array, stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SORTED_ROWS", "permute", "permute_segments", "ranges"]

SORTED_ROWS = 1 << 10
"""Up to this size a permutation sorts hashes; above it, it is a Feistel network."""

_ROUNDS = 6
# Scratch arrays of this many elements stay in a core's cache.
_BLOCK = 1 << 14
# A segment of so many draws is worth a call of its own, with scalars for its size and key.
_LONG_SEGMENT = 1 << 11

# A sorted word is (segment, hash, row): 18, 36 and 10 bits.
_ROW_BITS = np.uint64(10)
_HASH_BITS = np.uint64(36)
_SORTED_ELEMENTS = 1 << 18
_HALF = np.uint64(32)


def permute(index: NDArray[np.int64], size: int, key: int) -> NDArray[np.int64]:
    """Elements `index` of the permutation of range(size) that belongs to `key`.

    Parameters
    ----------
    index
        Positions, shape (K,), 0 ≤ index < size.
    size
        How many elements are permuted.
    key
        Which of the permutations.
    """
    if size <= SORTED_ROWS:
        return _sorted_orders(np.array([size]), np.array([key], dtype=np.uint64))[index]
    blocks = [
        _feistel(index[start : start + _BLOCK], size, key) for start in range(0, len(index), _BLOCK)
    ]
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)


def ranges(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers first, first + 1, … of every segment, one segment after the other.

    Examples
    --------
    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(count)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - (ends - count), count)


def permute_segments(
    size: NDArray[np.int64],
    key: NDArray[np.uint64],
    first: NDArray[np.int64],
    count: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Elements first … first + count - 1 of many permutations, one segment after the other.

    Parameters
    ----------
    size, key, first, count
        A permutation and a range of it per segment, shape (S,); first + count ≤ size.

    Returns
    -------
    NDArray[np.int64]
        Shape (Σ count,); the same elements as `permute` gives one by one.
    """
    out = np.empty(int(count.sum()), dtype=np.int64)
    start = np.cumsum(count) - count
    small = size <= SORTED_ROWS
    long = ~small & (count >= _LONG_SEGMENT)
    for segment in np.flatnonzero(long).tolist():
        index = np.arange(first[segment], first[segment] + count[segment])
        at = start[segment]
        out[at : at + count[segment]] = permute(index, int(size[segment]), int(key[segment]))
    _fill_short(out, np.flatnonzero(~small & ~long), start, size, key, first, count)
    _fill_small(out, np.flatnonzero(small), start, size, key, first, count)
    return out


def _fill_short(
    out: NDArray[np.int64],
    segments: NDArray[np.int64],
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    key: NDArray[np.uint64],
    first: NDArray[np.int64],
    count: NDArray[np.int64],
) -> None:
    """Feistel elements of many short segments, in blocks, with a size and a key per element."""
    counts = count[segments]
    index, place = ranges(first[segments], counts), ranges(start[segments], counts)
    sizes, keys = np.repeat(size[segments], counts), np.repeat(key[segments], counts)
    for at in range(0, len(index), _BLOCK):
        block = slice(at, at + _BLOCK)
        out[place[block]] = _feistel(index[block], sizes[block], keys[block])


def _fill_small(
    out: NDArray[np.int64],
    segments: NDArray[np.int64],
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    key: NDArray[np.uint64],
    first: NDArray[np.int64],
    count: NDArray[np.int64],
) -> None:
    """Elements of small permutations, as many whole permutations at a time as fit the scratch."""
    total = np.cumsum(size[segments])
    at = 0
    while at < len(segments):
        done = total[at - 1] if at else 0
        end = int(np.searchsorted(total, done + _SORTED_ELEMENTS, side="right"))
        chunk = segments[at:end]
        orders = _sorted_orders(size[chunk], key[chunk])
        begin = np.cumsum(size[chunk]) - size[chunk] + first[chunk]
        out[ranges(start[chunk], count[chunk])] = orders[ranges(begin, count[chunk])]
        at = end


def _sorted_orders(size: NDArray[np.int64], key: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Whole permutations, one after the other: the rows of each in the order of their hashes."""
    row = ranges(np.zeros_like(size), size).astype(np.uint64)
    word = stream(np.repeat(key, size), row)
    word >>= np.uint64(64) - _HASH_BITS
    word <<= _ROW_BITS
    word |= row
    word |= np.repeat(np.arange(len(size), dtype=np.uint64) << (_ROW_BITS + _HASH_BITS), size)
    word.sort()
    return (word & np.uint64(SORTED_ROWS - 1)).astype(np.int64)


def _feistel(
    index: NDArray[np.int64],
    size: int | NDArray[np.int64],
    key: int | NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Elements of Feistel networks on pairs (high, low) with high < ⌈√N⌉ and low < ⌈N / ⌈√N⌉⌉.

    That domain exceeds N by less than ⌈√N⌉, so hardly any element has to be walked on until it
    falls below N.
    """
    word = index.astype(np.uint64)
    if isinstance(size, np.ndarray):
        root = np.sqrt(size.astype(np.float64)).astype(np.int64)
        root += root * root < size
        rows, columns = root.astype(np.uint64), (-(-size // root)).astype(np.uint64)
        bound = size.astype(np.uint64)
    else:
        root = isqrt(size - 1) + 1
        rows, columns = np.uint64(root), np.uint64(-(-size // root))
        bound = np.uint64(size)
    keys = _round_keys(key)
    word = _rounds(word, rows, columns, keys)
    outside = np.flatnonzero(word >= bound)
    while len(outside):
        walked = _rounds(
            word[outside],
            *(v if np.ndim(v) == 0 else v[outside] for v in (rows, columns)),
            [k if np.ndim(k) == 0 else k[outside] for k in keys],
        )
        word[outside] = walked
        limit = bound if np.ndim(bound) == 0 else bound[outside]
        outside = outside[walked >= limit]
    return word.astype(np.int64)


def _round_keys(key: int | NDArray[np.uint64]) -> list[Any]:
    if isinstance(key, np.ndarray):
        return [stream(key, np.array([r])) for r in range(_ROUNDS)]
    return [np.uint64(mix(key + (r + 1) * 0x9E3779B97F4A7C15)) for r in range(_ROUNDS)]


def _rounds(
    word: NDArray[np.uint64], rows: Any, columns: Any, keys: list[Any]
) -> NDArray[np.uint64]:
    high, low = np.divmod(word, columns)
    for number, key in enumerate(keys):
        if number % 2:
            high = _added(high, low, rows, key)
        else:
            low = _added(low, high, columns, key)
    high *= columns
    high += low
    return high


def _added(
    half: NDArray[np.uint64], other: NDArray[np.uint64], radix: Any, key: Any
) -> NDArray[np.uint64]:
    """(half + hash(other)) mod radix."""
    hashed = mix_array(other + key)
    hashed >>= _HALF
    hashed *= radix
    hashed >>= _HALF
    hashed += half
    hashed -= radix * (hashed >= radix)
    return hashed
