"""The one source of randomness: 64-bit keys that are hashed from words, never advanced."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Purpose", "derive", "key", "mix", "mix_array", "stream", "text_word"]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, made odd: consecutive counters spread evenly
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_CHAIN = 0xD1342543DE82EF95  # odd: the word before stays visible, and words do not commute


class Purpose(IntEnum):
    """What a key is for; two purposes never share a key."""

    QUOTA = 1
    """Offset of the systematic sample of leaves, per window."""
    ROWS = 2
    """Order of a leaf's rows, per pass."""
    SHARDS = 3
    """Order of a leaf's shards, per pass."""
    SHARE = 4
    """Rounding of a leaf's share of a window in a finite pass."""
    POOL = 5
    """Order of the items of a link before they are cut."""
    STEPS = 6
    """Order of the steps of a link."""
    SLOTS = 7
    """Order of the micro-batches in a step."""
    FURTHER = 8
    """Leaves of the draws that fill up a step."""
    REPEATS = 9
    """Samples that a finite pass repeats."""
    BATCH = 10
    """What dataset code is seeded with, per micro-batch."""
    SAMPLE = 11
    """What augmentation is seeded with, per sample."""
    SPEED = 12
    """Speed of a draw."""
    OFFSET = 13
    """Where truncation begins in a row."""
    SLICE = 14
    """Where the slice of a shard begins, per pass."""


def mix(word: int) -> int:
    """Scramble 64 bits one to one.

    The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, with Stafford's variant 13 of
    the constants).

    Examples
    --------
    >>> hex(mix(1))
    '0x5692161d100b05e5'
    """
    word &= _MASK
    word = ((word ^ (word >> 30)) * _FIRST) & _MASK
    word = ((word ^ (word >> 27)) * _SECOND) & _MASK
    return word ^ (word >> 31)


def mix_array(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mix` of every word of a scratch array, which is overwritten and returned."""
    shifted = words >> np.uint64(30)
    words ^= shifted
    words *= np.uint64(_FIRST)
    np.right_shift(words, np.uint64(27), out=shifted)
    words ^= shifted
    words *= np.uint64(_SECOND)
    np.right_shift(words, np.uint64(31), out=shifted)
    words ^= shifted
    return words


def key(seed: int, purpose: int, *words: int) -> int:
    """Return the key of a purpose: every word counts, and so does its place.

    Parameters
    ----------
    seed
        Any integer; its lowest 64 bits count.
    purpose
        One of `Purpose`.
    words
        What the key is of: leaf, pass, window, step and so on.

    Examples
    --------
    >>> key(1, Purpose.ROWS, 2, 3) == key(1, Purpose.ROWS, 3, 2)
    False
    """
    state = mix(seed + _GOLDEN)
    for word in (purpose, *words):
        state = mix(state * _CHAIN + mix(word + _GOLDEN))
    return state


def derive(base: int | NDArray[np.uint64], *words: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """`key` with further words, for whole arrays that broadcast against each other.

    ``derive(key(seed, purpose), a, b)[i] == key(seed, purpose, a[i], b[i])``.
    """
    state: NDArray[np.uint64] = np.atleast_1d(np.asarray(base, dtype=np.uint64))
    for word in words:
        scrambled = mix_array(word.astype(np.uint64) + np.uint64(_GOLDEN))
        state = mix_array(state * np.uint64(_CHAIN) + scrambled)
    return state


def stream(
    base: int | NDArray[np.uint64], index: NDArray[np.int64] | NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """One word per index under a key: `mix` of a counter that starts at the key.

    Half the price of `derive`, for keys that are hashes themselves.
    """
    counter = index.astype(np.uint64)
    counter += np.uint64(1)
    counter *= np.uint64(_GOLDEN)
    return mix_array(counter + np.asarray(base, dtype=np.uint64))


def text_word(text: str) -> int:
    """Return a 64-bit word for a text, so that a leaf's key can be part of a key.

    Examples
    --------
    >>> text_word("train") == text_word("train ")
    False
    """
    data = text.encode()
    state = mix(len(data) + _GOLDEN)
    for start in range(0, len(data), 8):
        word = int.from_bytes(data[start : start + 8], "little")
        state = mix(state * _CHAIN + mix(word + _GOLDEN))
    return state
