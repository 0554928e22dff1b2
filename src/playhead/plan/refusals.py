"""Which samples the filters and the batching options refuse, each for the first reason there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.bins import (
    NO_BIN,
    bins_by_length,
    bins_in_2d,
    tokens_per_second,
    tokens_per_token,
)
from playhead.plan.columns import KindCode
from playhead.plan.effort import Effort
from playhead.plan.verdicts import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.items import Items
    from playhead.plan.settings import Shape

    Question: TypeAlias = tuple[str, Callable[[Items], NDArray[np.bool_] | None]]

__all__ = [
    "accepted",
    "batching_questions",
    "bins_of",
    "both_lengths",
    "drops_oversize",
    "shape_questions",
    "sifted",
    "without",
]


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

    def count(reason: str, refused: NDArray[np.bool_], _: Items) -> None:
        dropped[reason] = dropped.get(reason, 0) + int(np.count_nonzero(refused))

    return sifted(items, questions, count)


def sifted(
    items: Items,
    questions: list[Question],
    told: Callable[[str, NDArray[np.bool_], Items], None],
) -> Items:
    """Return the samples that are not refused.

    Parameters
    ----------
    items
        Samples.
    questions
        What is asked, in this order, of what the questions before have left.
    told
        Gets the reason, which are refused for it, shape (M,), and the samples that were asked of;
        not called where none is refused.
    """
    for reason, asked in questions:
        refused = asked(items)
        if refused is not None and refused.any():
            told(reason, refused, items)
            items = items.chosen(~refused)
    return items


def shape_questions(shape: Shape) -> list[Question]:
    """Return the filters, in NeMo's order: lengths, status, speaker, CER, similarity, tokens."""
    low, high = shape.min_duration_us, shape.max_duration_us
    questions: list[Question] = [("no_length", _no_length)]
    if low is not None:
        questions.append(("min_duration", lambda items: _heard(items, items.length < low)))
    if high is not None:
        questions.append(("max_duration", lambda items: _heard(items, items.length > high)))
    fewest, longest = shape.min_tokens, shape.max_tokens
    if fewest is not None:
        questions.append(("min_tokens", lambda items: _no_cut(items, _size(items) < fewest)))
    if longest is not None:
        questions.append(("max_tokens", lambda items: _no_cut(items, _size(items) > longest)))
    questions += [(reason, _judged(number)) for number, reason in enumerate(VERDICTS, start=1)]
    least, most = shape.min_tps, shape.max_tps
    if least is not None:
        questions.append(("min_tps", lambda items: _cut(items, _tps(items) < least)))
    if most is not None:
        questions.append(("max_tps", lambda items: _cut(items, _tps(items) > most)))
    low_tpt, high_tpt = shape.min_tpt, shape.max_tpt
    if low_tpt is not None:
        questions.append(("min_tpt", lambda items: _no_cut(items, _tpt(items) < low_tpt)))
    if high_tpt is not None:
        questions.append(("max_tpt", lambda items: _no_cut(items, _tpt(items) > high_tpt)))
    return questions


def batching_questions(batching: Batching) -> list[Question]:
    """Return what the batching options refuse."""
    in_tokens = batching.in_tokens
    questions: list[Question] = []
    if batching.sizes and batching.bins and batching.bins_tokens is None:
        last = batching.bins[-1]
        questions.append(
            ("above_last_bin", lambda items: items.lengths(in_tokens=in_tokens) > last)
        )
    if batching.needs_answers:
        questions.append(("no_bucket", lambda items: bins_of(items, batching) == NO_BIN))
    longest = Effort.of(batching).longest if drops_oversize(batching) else None
    if longest is not None:
        questions.append(("oversize", lambda items: items.lengths(in_tokens=in_tokens) > longest))
    return questions


def drops_oversize(batching: Batching) -> bool:
    """Whether samples above the limit are dropped: a packed batch never goes above it."""
    return batching.oversize == "drop" or batching.packed


def bins_of(items: Items, batching: Batching) -> NDArray[np.int64]:
    """Bin of each sample among those of fixed size, `NO_BIN` where none takes it, shape (M,)."""
    borders = batching.bins or ()
    ratios = batching.ratios
    if batching.bins_tokens is None:
        bins = bins_by_length(items.lengths(in_tokens=batching.in_tokens), borders)
        bins[bins == len(borders)] = NO_BIN
    else:
        bins = bins_in_2d(
            *both_lengths(items, batching), borders, batching.bins_tokens, strict=batching.strict_2d
        )
        ratios = ratios if batching.strict_2d else None
    if ratios is not None:
        # The last number is that of NO_BIN.
        most = np.array([*ratios, np.inf])[bins]
        bins[_ratios(items, batching) > most] = NO_BIN
    return bins


def both_lengths(items: Items, batching: Batching) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The two lengths of 2-D bins: µs and tokens, or tokens before the answer and of it."""
    if not batching.in_tokens:
        assert items.tokens is not None
        return items.length, items.tokens
    assert items.input is not None
    assert items.output is not None
    return items.input, items.output


def _ratios(items: Items, batching: Batching) -> NDArray[np.float64]:
    if not batching.in_tokens:
        return _tps(items)
    before, answer = both_lengths(items, batching)
    return tokens_per_token(answer, before)


def _judged(number: int) -> Callable[[Items], NDArray[np.bool_] | None]:
    return lambda items: None if items.verdict is None else items.verdict == number


def _tps(items: Items) -> NDArray[np.float64]:
    assert items.tokens is not None
    return tokens_per_second(items.tokens, items.length)


def _no_length(items: Items) -> NDArray[np.bool_]:
    unknown = items.length < 0
    if items.kind is None:
        return unknown
    return unknown & ((items.kind == KindCode.CUT) | (items.kind == KindCode.CONVERSATION))


def _heard(items: Items, refused: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of these, samples with audio: texts, and conversations without, are kept at any length."""
    if items.kind is None:
        return refused
    speaks = (items.kind == KindCode.CONVERSATION) & (items.length > 0)
    return refused & (speaks | (items.kind == KindCode.CUT))


def _cut(items: Items, refused: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return refused if items.kind is None else refused & (items.kind == KindCode.CUT)


def _no_cut(items: Items, refused: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return None if items.kind is None else refused & (items.kind != KindCode.CUT)


def _size(items: Items) -> NDArray[np.int64]:
    assert items.size is not None
    return items.size


def _tpt(items: Items) -> NDArray[np.float64]:
    assert items.answer is not None
    assert items.context is not None
    return tokens_per_token(items.answer, items.context)
