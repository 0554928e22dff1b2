"""What the index keeps of rows once transforms have dropped some and changed how long others are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.formats.columns import microseconds, sample_counts
from playhead.formats.example import Audio
from playhead.formats.transforms.speech import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns
    from playhead.formats.example import Example
    from playhead.formats.transforms.registry import RowTransform

__all__ = ["reshaped"]


def reshaped(
    leaf: Leaf, columns: RowColumns, examples: Iterable[Example], steps: Sequence[RowTransform]
) -> tuple[RowColumns, list[int]]:
    """Let transforms see rows, and return the columns of those that they keep.

    Parameters
    ----------
    leaf
        The source.
    columns
        What the input type says of the rows.
    examples
        The sample of each kept row, without audio.
    steps
        The transforms, in order.

    Returns
    -------
    columns
        What is left.
    kept
        Which of the kept rows are left.

    Raises
    ------
    ManifestError
        If a sample lacks what a transform needs.
    """
    kept: list[int] = []
    lengths: dict[int, tuple[float, int]] = {}
    dropped: Counter[str] = Counter(columns.dropped)
    for number, example in enumerate(examples):
        before = _known_length(example, int(columns.duration_us[number]))
        after, reason = _through(leaf, before, steps)
        if reason is not None:
            dropped[reason] += 1
            continue
        seconds = seconds_of(after)
        if seconds is not None and seconds != seconds_of(before):
            lengths[len(kept)] = (seconds, _rate_of(after, int(columns.rate[number])))
        kept.append(number)
    at = np.array(kept, np.int64)
    columns = _only(replace(columns, dropped=dict(dropped)), at)
    return (_with_lengths(columns, lengths) if lengths else columns), kept


def _through(
    leaf: Leaf, example: Example, steps: Sequence[RowTransform]
) -> tuple[Example, str | None]:
    for step in steps:
        if example.kind != "cut":
            break
        reason = step.dropped(leaf, example)
        if reason is not None:
            return example, reason
        example = step.example(leaf, example)
    return example, None


def _known_length(example: Example, duration_us: int) -> Example:
    """Give a sample whose audio is not there the length that the index has measured."""
    if example.kind != "cut" or example.cut_data is not None or duration_us == 0:
        return example
    audio = example.audio or Audio(source=b"")
    if audio.duration is not None:
        return example
    return replace(example, audio=replace(audio, duration=duration_us / 1e6))


def _rate_of(example: Example, before: int) -> int:
    """Rate of one stretch of audio; 0 where there may be several, or it is not known."""
    if example.kind != "cut":
        return 0
    sounding: Any = None if example.cut_data is None else example.cut_data.get("recording")
    return int(sounding["sampling_rate"]) if sounding else before


def _only(columns: RowColumns, at: Any) -> RowColumns:
    """Keep some of the kept rows."""
    if len(at) == len(columns.kept):
        return columns
    places = {number: place for place, number in enumerate(at.tolist())}
    lists = {
        name: [values[number] for number in places]
        for name in ("members", "status", "audios")
        if (values := getattr(columns, name)) is not None
    }
    return replace(
        columns,
        kept=columns.kept[at],
        duration_us=columns.duration_us[at],
        num_samples=columns.num_samples[at],
        rate=columns.rate[at],
        channels=columns.channels[at],
        tar=columns.tar[at],
        unmeasured=[
            replace(row, index=places[row.index])
            for row in columns.unmeasured
            if row.index in places
        ],
        **lists,
    )


def _with_lengths(columns: RowColumns, lengths: dict[int, tuple[float, int]]) -> RowColumns:
    """Write the lengths of rows that have new ones."""
    at = np.array(list(lengths), np.int64)
    seconds, rates = zip(*lengths.values(), strict=True)
    duration_us, num_samples = columns.duration_us.copy(), columns.num_samples.copy()
    rate = columns.rate.copy()
    rate[at] = np.array(rates, np.int32)
    duration_us[at] = microseconds(seconds)
    num_samples[at] = sample_counts(seconds, rate[at])
    return replace(
        columns,
        duration_us=duration_us,
        num_samples=num_samples,
        rate=rate,
        unmeasured=[row for row in columns.unmeasured if row.index not in lengths],
    )
