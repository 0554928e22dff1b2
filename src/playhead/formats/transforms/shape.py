"""What the index keeps of rows once transforms have dropped some and made others longer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from playhead.formats.columns import microseconds, rates, sample_counts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.formats.base import RowColumns

__all__ = ["Fate", "Length", "reshaped"]


class Length(NamedTuple):
    """How long a sample is."""

    seconds: float
    """All its audio together."""
    rate: int
    """Samples a second; 0 where there may be several rates, or it is not known."""


class Fate(NamedTuple):
    """What transforms make of a row."""

    dropped: str | None = None
    """Why it is left out, as it is counted; the empty text where somebody has counted it."""
    length: Length | None = None
    """Its new length; None where that is what it was."""


def reshaped(columns: RowColumns, fates: Iterable[Fate]) -> tuple[RowColumns, list[int]]:
    """Return the columns of the rows that transforms keep.

    Parameters
    ----------
    columns
        What the input type says of the rows.
    fates
        What becomes of each kept row.

    Returns
    -------
    columns
        What is left.
    kept
        Which of the kept rows are left.
    """
    kept: list[int] = []
    lengths: dict[int, Length] = {}
    dropped: Counter[str] = Counter(columns.dropped)
    for number, fate in enumerate(fates):
        if fate.dropped is not None:
            dropped[fate.dropped] += 1
            continue
        if fate.length is not None:
            lengths[len(kept)] = fate.length
        kept.append(number)
    dropped.pop("", None)
    columns = _only(replace(columns, dropped=dict(dropped)), np.array(kept, np.int64))
    return (_with_lengths(columns, lengths) if lengths else columns), kept


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


def _with_lengths(columns: RowColumns, lengths: dict[int, Length]) -> RowColumns:
    """Write the lengths of rows that have new ones."""
    at = np.array(list(lengths), np.int64)
    seconds, hertz = zip(*lengths.values(), strict=True)
    duration_us, num_samples = columns.duration_us.copy(), columns.num_samples.copy()
    rate = columns.rate.copy()
    rate[at] = rates(hertz)
    duration_us[at] = microseconds(seconds)
    num_samples[at] = sample_counts(seconds, rate[at])
    return replace(
        columns,
        duration_us=duration_us,
        num_samples=num_samples,
        rate=rate,
        unmeasured=[row for row in columns.unmeasured if row.index not in lengths],
    )
