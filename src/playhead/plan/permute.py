"""Keyed permutations of any size whose elements are computed one by one, without memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.keyed import mix_array, stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SORTED_ROWS", "Spans", "permute", "permute_spans", "ranges"]

SORTED_ROWS = 1 << 10
"""Up to this size a permutation sorts hashes; above it, it is a Feistel network.

Small networks are not uniform: of 6 rounds, pairs of neighbours show it below 512 elements.
"""

_ROUNDS = 6
# Scratch arrays of this many elements stay in a core's cache.
_BLOCK = 1 << 14
# A span of so many draws is worth a call of its own, with one size and one key for all.
_LONG_SPAN = 1 << 11

# A sorted word is (span, hash, row): 18, 36 and 10 bits.
_ROW_BITS = np.uint64(10)
_HASH_BITS = np.uint64(36)
_SORTED_ELEMENTS = 1 << 18
_HALF = np.uint64(32)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Spans:
    """Ranges of permutations; every array has shape (S,)."""

    size: NDArray[np.int64]
    """How many elements each permutation has."""
    key: NDArray[np.uint64]
    """Which of the permutations of that size it is."""
    first: NDArray[np.int64]
    """Where the range begins."""
    count: NDArray[np.int64]
    """How long it is; first + count ≤ size."""

    def chosen(self, which: NDArray[np.int64]) -> Spans:
        """Return some of the spans."""
        return Spans(
            size=self.size[which],
            key=self.key[which],
            first=self.first[which],
            count=self.count[which],
        )


def permute(index: NDArray[np.int64], size: int, key: int) -> NDArray[np.int64]:
    """Return elements of the permutation of range(size) that belongs to a key.

    Parameters
    ----------
    index
        Which elements, shape (K,), 0 ≤ index < size.
    size
        How many elements are permuted.
    key
        Which of the permutations.

    Examples
    --------
    >>> sorted(permute(np.arange(5), 5, key=1).tolist())
    [0, 1, 2, 3, 4]
    """
    sizes, keys = np.array([size], dtype=np.int64), np.array([key], dtype=np.uint64)
    if size <= SORTED_ROWS:
        return _sorted_orders(sizes, keys)[index]
    out = np.empty(len(index), dtype=np.int64)
    for at in range(0, len(index), _BLOCK):
        out[at : at + _BLOCK] = _feistel(index[at : at + _BLOCK], sizes, keys)
    return out


def ranges(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers first, first + 1, … of every range, one range after the other.

    Examples
    --------
    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(count)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(first - (ends - count), count)


def permute_spans(spans: Spans) -> NDArray[np.int64]:
    """Return the elements of many ranges of permutations, one range after the other.

    The same elements as `permute` gives one by one; thousands of short ranges cost one call.

    Returns
    -------
    NDArray[np.int64]
        Shape (Σ count,).
    """
    out = np.empty(int(spans.count.sum()), dtype=np.int64)
    start = np.cumsum(spans.count) - spans.count
    small = spans.size <= SORTED_ROWS
    long = ~small & (spans.count >= _LONG_SPAN)
    for span in np.flatnonzero(long).tolist():
        at, count = int(start[span]), int(spans.count[span])
        index = np.arange(count) + spans.first[span]
        out[at : at + count] = permute(index, int(spans.size[span]), int(spans.key[span]))
    for which, elements in (
        (np.flatnonzero(~small & ~long), _short_elements),
        (np.flatnonzero(small), _small_elements),
    ):
        if len(which):
            out[ranges(start[which], spans.count[which])] = elements(spans.chosen(which))
    return out


def _short_elements(spans: Spans) -> NDArray[np.int64]:
    """Elements of networks, in blocks, with a size and a key for every element."""
    index = ranges(spans.first, spans.count)
    size, key = np.repeat(spans.size, spans.count), np.repeat(spans.key, spans.count)
    out = np.empty(len(index), dtype=np.int64)
    for at in range(0, len(index), _BLOCK):
        block = slice(at, at + _BLOCK)
        out[block] = _feistel(index[block], size[block], key[block])
    return out


def _small_elements(spans: Spans) -> NDArray[np.int64]:
    """Elements of sorted permutations, as many whole ones at a time as fit the scratch."""
    total = np.cumsum(spans.size)
    parts: list[NDArray[np.int64]] = []
    at = 0
    while at < len(total):
        done = int(total[at - 1]) if at else 0
        end = int(np.searchsorted(total, done + _SORTED_ELEMENTS, side="right"))
        some = spans.chosen(np.arange(at, end))
        begin = np.cumsum(some.size) - some.size + some.first
        parts.append(_sorted_orders(some.size, some.key)[ranges(begin, some.count)])
        at = end
    return np.concatenate(parts)


def _sorted_orders(size: NDArray[np.int64], key: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Whole permutations, one after the other: the rows of each in the order of their hashes."""
    row = ranges(np.zeros_like(size), size).astype(np.uint64)
    word = stream(np.repeat(key, size), row)
    word >>= np.uint64(64) - _HASH_BITS
    word <<= _ROW_BITS
    word |= row
    word |= np.repeat(np.arange(len(size)).astype(np.uint64) << (_ROW_BITS + _HASH_BITS), size)
    word.sort()
    return (word & np.uint64(SORTED_ROWS - 1)).astype(np.int64)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Network:
    """Feistel networks on pairs (high, low), high < rows and low < columns; shape (1,) or (K,)."""

    rows: NDArray[np.uint64]
    columns: NDArray[np.uint64]
    size: NDArray[np.uint64]
    keys: tuple[NDArray[np.uint64], ...]

    def at(self, which: NDArray[np.int64]) -> _Network:
        if len(self.size) == 1:
            return self
        return _Network(
            rows=self.rows[which],
            columns=self.columns[which],
            size=self.size[which],
            keys=tuple(key[which] for key in self.keys),
        )

    def through(self, word: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Send elements through all rounds once."""
        high, low = np.divmod(word, self.columns)
        for number, key in enumerate(self.keys):
            if number % 2:
                high = _added(high, low, self.rows, key)
            else:
                low = _added(low, high, self.columns, key)
        return high * self.columns + low


def _added(
    half: NDArray[np.uint64],
    other: NDArray[np.uint64],
    radix: NDArray[np.uint64],
    key: NDArray[np.uint64],
) -> NDArray[np.uint64]:
    """(half + hash(other)) mod radix, the hash brought below the radix by multiplication."""
    hashed = mix_array(other + key)
    hashed >>= _HALF
    hashed *= radix
    hashed >>= _HALF
    hashed += half
    hashed -= radix * (hashed >= radix)
    return hashed


def _feistel(
    index: NDArray[np.int64], size: NDArray[np.int64], key: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Elements of networks on ⌈√N⌉ rows and ⌈N / ⌈√N⌉⌉ columns.

    Such a table has less than ⌈√N⌉ places too many, so that hardly any element has to be sent
    through again until it falls below N.
    """
    root = np.sqrt(size.astype(np.float64)).astype(np.int64)
    root += root * root < size
    network = _Network(
        rows=root.astype(np.uint64),
        columns=((size + root - 1) // root).astype(np.uint64),
        size=size.astype(np.uint64),
        keys=tuple(stream(key, np.array([number])) for number in range(_ROUNDS)),
    )
    word = network.through(index.astype(np.uint64))
    outside = np.flatnonzero(word >= network.size)
    while len(outside):
        rest = network.at(outside)
        word[outside] = rest.through(word[outside])
        outside = outside[word[outside] >= rest.size]
    return word.astype(np.int64)
