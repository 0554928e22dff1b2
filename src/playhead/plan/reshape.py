"""What becomes of drawn rows before the filters: speed, truncation, windows, padding, lengths."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from playhead.audio_tokens import AudioTokens
from playhead.plan.columns import KindCode
from playhead.plan.keyed import Purpose, derive, key
from playhead.plan.permute import ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.plan.items import Items
    from playhead.plan.settings import Shape

__all__ = [
    "SHORTEST_PART_US",
    "SPEEDS",
    "measured",
    "number_of_parts",
    "reshaped",
    "reshaped_by_key",
]

SPEEDS = (900, 1000, 1100)
"""Speeds that are chosen from, in thousandths."""

SHORTEST_PART_US = 1000
"""What is left of a row after its last whole window is a part of its own from here on (µs).

Half a sample at 8 kHz would do for counting; resampled, so short a part may have none left.
"""


def reshaped_by_key(items: Items, shape: Shape, words: NDArray[np.uint64], seed: int) -> Items:
    """Return the samples that drawn rows give, with keyed choices, and how long they are.

    Parameters
    ----------
    items
        Whole rows, one a draw.
    shape
        What becomes of them.
    words
        Hash of the key of each leaf of the roster.
    seed
        The seed of the window.
    """
    if not shape.reshapes:
        return measured(items, shape)
    of = (words[items.leaf], items.pass_, items.row)
    speed = None
    if shape.perturb_speed:
        hashes = derive(key(seed, Purpose.SPEED), *of)
        speed = np.array(SPEEDS, dtype=np.int16)[(hashes % np.uint64(len(SPEEDS))).astype(np.int64)]
    offset = None
    if shape.truncate_us is not None and shape.truncate_offset == "random":
        offset = derive(key(seed, Purpose.OFFSET), *of)
    return measured(reshaped(items, shape, speed, offset), shape)


def measured(items: Items, shape: Shape) -> Items:
    """Return the samples with their lengths in tokens, where these are measured.

    The audio of a cut comes before what is said in it: its tokens are added to all that it has, and
    to those before the answer.
    """
    if not shape.multimodal:
        return items
    audio = _audio_tokens(items, shape)
    tokens = np.zeros(len(items), dtype=np.int64) if items.tokens is None else items.tokens
    before = audio if items.input is None else items.input + audio
    size = tokens + audio if shape.total_length else before
    return replace(items, size=size, input=None if items.input is None else before)


def _audio_tokens(items: Items, shape: Shape) -> NDArray[np.int64]:
    """Tokens that the audio of cuts takes; those of other samples hold theirs."""
    if shape.audio_tokens is None:
        return np.zeros(len(items), dtype=np.int64)
    tokens = AudioTokens.parse(shape.audio_tokens)
    if items.kind is None:
        return tokens.count(items.length)
    cut = items.kind == KindCode.CUT
    audio = np.zeros(len(items), dtype=np.int64)
    audio[cut] = tokens.count(items.length[cut])
    return audio


def reshaped(
    items: Items,
    shape: Shape,
    speed: NDArray[np.int16] | None,
    offset: NDArray[np.uint64] | None,
) -> Items:
    """Return the samples that rows give, parts of a row one after the other.

    Speed, truncation, windows of time and padding are for cuts alone, windows of tokens for texts.
    Lengths are rounded up to whole microseconds, so that limits stay hard bounds. A row without a
    length, or of length 0, stays one sample.

    Parameters
    ----------
    items
        Whole rows.
    shape
        What becomes of them.
    speed
        Speed of each (thousandths), shape (M,); None changes none.
    offset
        A hash of each that a random offset of truncation is taken from, shape (M,).
    """
    whole = items
    if items.kind is not None:
        # What has no length stays as it is.
        items = items.with_lengths(np.where(items.kind == KindCode.CUT, items.length, -1))
    items = _reshaped_audio(items, shape, speed, offset)
    if items.kind is None:
        return items
    if len(items) != len(whole) and items.part is not None:
        whole = whole.chosen(np.cumsum(items.part == 0) - 1)
    items = items.with_lengths(np.where(items.kind == KindCode.CUT, items.length, whole.length))
    return _texts_in_windows(items, shape)


def _reshaped_audio(
    items: Items,
    shape: Shape,
    speed: NDArray[np.int16] | None,
    offset: NDArray[np.uint64] | None,
) -> Items:
    if speed is not None:
        slowed = (items.length * 1000 + (speed - 1)) // speed
        if items.kind is not None:
            speed = np.where(items.kind == KindCode.CUT, speed, np.int16(1000))
        items = items.with_lengths(np.where(items.length > 0, slowed, items.length), speed=speed)
    if shape.truncate_us is not None:
        items = _truncated(items, shape, offset)
    if shape.window_us is not None:
        items = _in_windows(items, shape.window_us, shape.hop_us or shape.window_us)
    if shape.pad_us is not None:
        padded = np.maximum(items.length, shape.pad_us)
        items = items.with_lengths(np.where(items.length >= 0, padded, items.length))
    return items


def _truncated(items: Items, shape: Shape, offset: NDArray[np.uint64] | None) -> Items:
    most = shape.truncate_us
    assert most is not None
    extra = np.maximum(items.length - most, 0)
    if not extra.any():
        return items
    if shape.truncate_offset == "end":
        start = extra
    elif offset is None:
        start = np.zeros_like(extra)
    else:
        start = (offset % (extra + 1).astype(np.uint64)).astype(np.int64)
    span = np.where(extra > 0, most, np.int64(-1))
    return items.with_lengths(np.minimum(items.length, most), start=start, span=span)


def number_of_parts(length_us: NDArray[np.int64], window_us: int, hop_us: int) -> NDArray[np.int64]:
    """Into how many windows rows are cut: as many as it takes to reach their end.

    As Lhotse's ``compute_num_windows`` has it, in whole microseconds: in floats it now and then
    counts a last window of nothing.

    Parameters
    ----------
    length_us
        Lengths (µs), shape (M,).
    window_us, hop_us
        Length of a window, and from the start of one to the next (µs).

    Examples
    --------
    >>> number_of_parts(np.array([0, 500, 1000, 1010, 1100, 2000]) * 1000, 1_000_000, 1_000_000)
    array([1, 1, 1, 2, 2, 2])
    >>> number_of_parts(np.array([5_900_000, 6_100_000]), 1_000_000, 3_000_000)
    array([2, 3])
    """
    hops = -(np.minimum(window_us - length_us, 0) // hop_us)
    return np.maximum(hops + (length_us - hops * hop_us >= SHORTEST_PART_US), 1)


def _in_windows(items: Items, window: int, hop: int) -> Items:
    cut = items.length > window
    if not cut.any():
        return items
    parts = number_of_parts(items.length, window, hop)
    part = ranges(np.zeros_like(parts), parts)
    items = items.chosen(np.repeat(np.arange(len(parts)), parts))
    whole, begin = items.length, part * hop
    length = np.minimum(whole - begin, window)
    start = begin if items.start is None else items.start + begin
    span = np.where(whole > window, length, -1 if items.span is None else items.span)
    return items.with_lengths(length, start=start, span=span, part=part.astype(np.int32))


def _texts_in_windows(items: Items, shape: Shape) -> Items:
    """Cut the tokens of long texts, without those of the prompt, into windows.

    What a window leaves out is missing in the answer first: a text is one.
    """
    window, kind, tokens = shape.text_window, items.kind, items.tokens
    if window is None or kind is None or tokens is None:
        return items
    plain = np.where(kind == KindCode.LONG_TEXT, tokens - shape.text_overhead, 0)
    if not (plain > window).any():
        return items
    parts = np.maximum((plain + (window - 1)) // window, 1)
    number = ranges(np.zeros_like(parts), parts)
    which = np.repeat(np.arange(len(parts)), parts)
    items, plain = items.chosen(which), plain[which]
    left_out = plain - np.minimum(plain - number * window, window)
    part = number if items.part is None else np.where(plain > 0, number, items.part)
    return replace(
        items,
        part=part.astype(np.int32),
        tokens=tokens[which] - left_out,
        **_less(items, "input", "output", left_out),
        **_less(items, "context", "answer", left_out),
    )


def _less(
    items: Items, before: str, answer: str, left_out: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """Columns of what is before an answer and of the answer, without tokens that are left out."""
    first, last = getattr(items, before), getattr(items, answer)
    if last is None:
        return {}
    less = {answer: np.maximum(last - left_out, 0)}
    if first is not None:
        less[before] = np.maximum(first - np.maximum(left_out - last, 0), 0)
    return less
