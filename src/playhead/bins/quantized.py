"""Numbers of tokens that are round in binary, for models that are compiled for a few shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Quantization", "quantized"]

Quantization: TypeAlias = Literal["none", "pow2", "pow2sum"]
"""`pow2`: powers of two from 32 on; `pow2sum`: also the sums of two of them."""

_LEAST = 32


def quantized(edges: Sequence[int], how: Quantization) -> list[int]:
    """Return edges moved to the nearest round number each; the last, upwards.

    Parameters
    ----------
    edges
        Edges in tokens, ascending.
    how
        Which numbers are round.

    Returns
    -------
    list[int]
        Ascending, each once.

    Examples
    --------
    >>> quantized([20, 45, 75, 110, 520], "pow2")
    [32, 64, 128, 1024]
    >>> quantized([20, 45, 75, 110, 520], "pow2sum")
    [32, 64, 96, 544]
    """
    if how == "none" or not edges:
        return list(edges)
    round_numbers = _round_numbers(edges[-1], how)
    last = next(number for number in round_numbers if number >= edges[-1])
    inner = [edge for edge in edges if edge < edges[-1]]
    nearest = {min(round_numbers, key=lambda number: abs(number - edge)) for edge in inner}
    return sorted({last, *(min(number, last) for number in nearest)})


def _round_numbers(longest: int, how: Quantization) -> list[int]:
    powers = [_LEAST]
    while powers[-1] < longest:
        powers.append(2 * powers[-1])
    if how == "pow2":
        return powers
    sums = {small + large for small in powers for large in powers if small < large}
    return sorted({*powers, *sums})
