"""Stretches of rows: the plan decides where each begins and how long it is."""

from __future__ import annotations

from dataclasses import replace
from math import isclose
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lhotse.cut import Cut

    from playhead.formats.example import Example

__all__ = ["num_samples", "take_of_example", "take_stretch", "window_id"]

# What Lhotse lets a supervision stand out of a window that it counts as inside.
_TOLERANCE = 1e-3


def num_samples(microseconds: int, rate: int) -> int:
    """Count the samples in a length that the plan promised; never more than that.

    Lengths were rounded to microseconds: what is less than one short of a sample is that sample.

    Examples
    --------
    >>> num_samples(500_000, 16000), num_samples(62, 16000), num_samples(333_380, 8000)
    (8000, 1, 2667)
    """
    return (microseconds + 1) * rate // 1_000_000


def window_id(name: str, part: int) -> str:
    """Name a window of a row, as Lhotse does.

    Examples
    --------
    >>> window_id("talk.wav", 3)
    'talk.wav-3'
    """
    return f"{name}-{part}"


def take_stretch(cut: Any, start_us: int, span_us: int, *, keep_excessive: bool) -> Cut:
    """Take a stretch of a cut; it keeps its id.

    Of a mix nothing but padding may be left: then it is a recording of silence, which can be
    padded, mixed and joined where Lhotse's padding alone cannot.

    Parameters
    ----------
    cut
        The cut, after the change of speed.
    start_us
        Where the stretch begins (µs).
    span_us
        How long it is (µs); -1 is to the end.
    keep_excessive
        Keep supervisions that begin before the stretch or end after it.
    """
    if start_us == 0 and span_us < 0:
        return cut
    from lhotse.cut import PaddingCut  # noqa: PLC0415 - 2 s

    from playhead.fetch.augment.recordings import (  # noqa: PLC0415 - Lhotse, 2 s
        silence,
        with_mix_transforms,
    )

    rate = cut.sampling_rate
    taken = cut.truncate(
        offset=start_us * rate // 1_000_000 / rate,
        duration=None if span_us < 0 else max(1, num_samples(span_us, rate)) / rate,
        keep_excessive_supervisions=keep_excessive,
        preserve_id=True,
    )
    if isinstance(taken, PaddingCut) and taken.num_samples is not None:
        return silence(cut, taken.num_samples)
    # Where one track is left, Lhotse gives that one, with the id that it has in the mix.
    return with_mix_transforms(taken, cut).with_id(cut.id)


def take_of_example(
    example: Example, start_us: int, span_us: int, sample_rate: int, *, keep_excessive: bool
) -> Example:
    """Take a stretch of a sample that is read straight from its file; without Lhotse.

    Parameters
    ----------
    example
        The sample; its `audio` is set.
    start_us, span_us, keep_excessive
        As for `take_stretch`.
    sample_rate
        What the audio is resampled to (Hz).
    """
    if example.audio is None or (start_us == 0 and span_us < 0):
        return example
    start = start_us * sample_rate // 1_000_000 / sample_rate
    whole = example.audio.duration
    if span_us >= 0:
        duration = max(1, num_samples(span_us, sample_rate)) / sample_rate
    else:
        duration = None if whole is None else whole - start
    if whole is not None and duration is not None:
        duration = min(duration, whole - start)
    audio = replace(example.audio, start=example.audio.start + start, duration=duration)
    if example.cut_data is not None:
        return _of_cut(example, audio, start, duration, keep_excessive=keep_excessive)
    text = example.text
    if not keep_excessive and whole is not None and duration is not None:
        text = text if _is_inside(0.0, whole, start, duration) else None
    return replace(example, audio=audio, text=text)


def _of_cut(
    example: Example, audio: Any, start: float, duration: float | None, *, keep_excessive: bool
) -> Example:
    """Also shift what the row says, so that its cut is that of the stretch."""
    data = dict(example.cut_data or {})
    length = data["duration"] - start if duration is None else duration
    belongs = _overlaps if keep_excessive else _is_inside
    kept = [
        {**one, "start": round(one["start"] - start, 8)}
        for one in data.get("supervisions") or ()
        if belongs(one["start"], one["duration"], start, length)
    ]
    texts = [one["text"] for one in kept if one.get("text") is not None]
    changed: Mapping[str, Any] = {
        **data,
        "start": audio.start,
        "duration": length,
        "supervisions": sorted(kept, key=lambda one: one["start"]),
    }
    return replace(example, audio=audio, cut_data=changed, text=" ".join(texts) if texts else None)


def _overlaps(begin: float, length: float, start: float, duration: float) -> bool:
    end, stop = begin + length, start + duration
    return begin < stop and start < end and not isclose(begin, stop) and not isclose(start, end)


def _is_inside(begin: float, length: float, start: float, duration: float) -> bool:
    return start - _TOLERANCE <= begin and begin + length <= start + duration + _TOLERANCE
