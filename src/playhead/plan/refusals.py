"""Which samples the filters and the batching options refuse, each for the first reason there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.bins import NO_BIN, bins_by_length, bins_in_2d, tokens_per_second
from playhead.plan.effort import longest_allowed
from playhead.plan.verdicts import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.items import Items
    from playhead.plan.settings import Shape

    Question: TypeAlias = tuple[str, Callable[[Items], NDArray[np.bool_] | None]]

__all__ = ["accepted", "batching_questions", "bins_of", "shape_questions", "without"]


def accepted(items: Items, shape: Shape, batching: Batching | None = None) -> NDArray[np.bool_]:
    """Which samples nothing refuses, shape (M,); None for the batching asks the filters alone."""
    good = np.ones(len(items), dtype=np.bool_)
    questions = shape_questions(shape)
    if batching is not None:
        questions += batching_questions(batching)
    for _, asked in questions:
        refused = asked(items)
        if refused is not None:
            good &= ~refused
    return good


def without(items: Items, questions: list[Question], dropped: dict[str, int]) -> Items:
    """Return the samples that are not refused; those that are, are counted in `dropped`.

    Parameters
    ----------
    items
        Samples.
    questions
        What is asked, in this order, of what the questions before have left.
    dropped
        Counts by reason, added to.
    """
    for reason, asked in questions:
        refused = asked(items)
        count = 0 if refused is None else int(np.count_nonzero(refused))
        if refused is not None and count:
            dropped[reason] = dropped.get(reason, 0) + count
            items = items.chosen(~refused)
    return items


def shape_questions(shape: Shape) -> list[Question]:
    """Return the filters, in NeMo's order: length, status, speaker, CER, similarity, tokens."""
    low, high = shape.min_duration_us, shape.max_duration_us
    questions: list[Question] = [("no_length", lambda items: items.length < 0)]
    if low is not None:
        questions.append(("min_duration", lambda items: items.length < low))
    if high is not None:
        questions.append(("max_duration", lambda items: items.length > high))
    questions += [(reason, _judged(number)) for number, reason in enumerate(VERDICTS, start=1)]
    least, most = shape.min_tps, shape.max_tps
    if least is not None:
        questions.append(("min_tps", lambda items: _tps(items) < least))
    if most is not None:
        questions.append(("max_tps", lambda items: _tps(items) > most))
    return questions


def batching_questions(batching: Batching) -> list[Question]:
    """Return what the batching options refuse."""
    questions: list[Question] = []
    if batching.sizes and batching.bins_us and batching.bins_tokens is None:
        last = batching.bins_us[-1]
        questions.append(("above_last_bin", lambda items: items.length > last))
    if batching.needs_tokens:
        questions.append(("no_bucket", lambda items: bins_of(items, batching) == NO_BIN))
    longest = longest_allowed(batching) if batching.oversize == "drop" else None
    if longest is not None:
        questions.append(("oversize", lambda items: items.length > longest))
    return questions


def bins_of(items: Items, batching: Batching) -> NDArray[np.int64]:
    """Bin of each sample among those of fixed size, `NO_BIN` where none takes it, shape (M,)."""
    bins_us = batching.bins_us or ()
    ratios = batching.max_tps_per_bin
    if batching.bins_tokens is None:
        bins = bins_by_length(items.length, bins_us)
        bins[bins == len(bins_us)] = NO_BIN
    else:
        assert items.tokens is not None
        bins = bins_in_2d(
            items.length,
            items.tokens,
            bins_us,
            batching.bins_tokens,
            strict=batching.strict_2d,
        )
        ratios = ratios if batching.strict_2d else None
    if ratios is not None:
        # The last number is that of NO_BIN.
        most = np.array([*ratios, np.inf])[bins]
        bins[_tps(items) > most] = NO_BIN
    return bins


def _judged(number: int) -> Callable[[Items], NDArray[np.bool_] | None]:
    return lambda items: None if items.verdict is None else items.verdict == number


def _tps(items: Items) -> NDArray[np.float64]:
    assert items.tokens is not None
    return tokens_per_second(items.tokens, items.length)
