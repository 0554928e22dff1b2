"""The truth about a pass: every sample that belongs to it, read out of the columns.

A plan draws, permutes, cuts and deals. None of that happens here: rows are gone through in declared
order, leaf after leaf, and those are kept that the filters keep. A plan that loses a sample, or
gives one twice, cannot agree with it. What becomes of single rows (filters, windows, speeds) is the
plan's own arithmetic, which tests compare with the originals elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from playhead.errors import ConfigError
from playhead.loader.fusion_turns import Zip
from playhead.plan.filters import with_exclusions
from playhead.plan.keyed import text_word
from playhead.plan.pass_items import leaf_rows
from playhead.plan.refusals import accepted
from playhead.plan.reshape import reshaped_by_key
from playhead.plan.slices import slice_length_of, slices_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.run import Planning
    from playhead.plan import LeafColumns

__all__ = ["Samples", "samples_of_pass", "why_no_pass"]

_FIRST_PASS = 0


class Samples(NamedTuple):
    """Some samples of one leaf, in declared order; arrays have shape (K,)."""

    leaf: int
    """Number of the leaf among those of all parts."""
    row: NDArray[np.int64]
    """Row of each."""
    part: NDArray[np.int64]
    """Part of the row."""
    length_us: NDArray[np.int64]
    """Length (µs); below 0 where nobody knows it."""


def samples_of_pass(planning: Planning | FusedPlanning, *, seed: int) -> Iterator[Samples]:
    """Return every sample of the first pass, block by block.

    Parameters
    ----------
    planning
        What is planned.
    seed
        What everything random follows from: where rows are cut into windows at another speed, how
        many there are hangs on it.

    Raises
    ------
    ConfigError
        If there is no such pass: the data have no end, or a pass leaves out what is longer.
    """
    why_none = why_no_pass(planning)
    if why_none is not None:
        raise ConfigError(
            f"there is no whole pass: {why_none}",
            fix="Leave out the phase groundtruth, or validate the parts one by one with --section",
        )
    rule: Any = getattr(planning, "rule", None)
    start: Any = planning.start(seed=seed, pass_=_FIRST_PASS, step=0)
    positions = getattr(start, "parts", {"": start})
    drawn = set(range(len(planning.parts)) if rule is None else rule.candidates(len(positions)))
    first = 0
    for number, (name, part) in enumerate(planning.parts.items()):
        for leaf, columns in enumerate(part.leaves, first):
            if number in drawn:
                for samples in _of_leaf(part, columns, positions[name].seed):
                    yield samples._replace(leaf=leaf)
        first += len(part.leaves)


def why_no_pass(planning: Planning | FusedPlanning) -> str | None:
    """Say why no pass takes all samples; None where one does.

    Parameters
    ----------
    planning
        What is planned.
    """
    if not planning.finite:
        return "the data have no end"
    if isinstance(getattr(planning, "rule", None), Zip):
        return "parts that are zipped end together with the shortest of them"
    return None


def _of_leaf(part: Planning, leaf: LeafColumns, seed: int) -> Iterator[Samples]:
    shape = with_exclusions(part.shape, part.leaves)
    words = np.array([text_word(leaf.key)], dtype=np.uint64)
    taken = None
    slices = slices_of(leaf, slice_length_of(leaf, shape))
    if slices is not None:
        passes = np.full(slices.places, _FIRST_PASS)
        rows = slices.rows(np.arange(slices.places), passes, seed, int(words[0]))
        taken = np.zeros(leaf.num_rows, dtype=np.bool_)
        taken[rows] = True
    for items in leaf_rows(leaf, shape, part.batching):
        some = items if taken is None else items.chosen(taken[items.row])
        some = replace(some, pass_=np.full(len(some), _FIRST_PASS, dtype=np.int64))
        some = reshaped_by_key(some, shape, words, seed)
        some = some.chosen(accepted(some, shape, part.batching))
        parts = np.zeros(len(some), dtype=np.int64) if some.part is None else some.part
        yield Samples(0, some.row, parts.astype(np.int64), some.length)
