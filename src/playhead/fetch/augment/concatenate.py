"""Joining the short samples of a batch, so that less of it is padding."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from lhotse.utils import fastcopy

from playhead.fetch.augment.recordings import keyed_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lhotse.cut import Cut

__all__ = ["Joined", "join_cuts", "merge_texts"]


class Joined(NamedTuple):
    """A sample, or several that became one."""

    cut: Any
    """The cut; or what is none and stays as it is."""
    members: tuple[int, ...]
    """Where they stood in the batch, in the order in which they are heard."""


def join_cuts(
    cuts: Sequence[Cut], keys: Sequence[int], *, gap: float, duration_factor: float
) -> list[Joined]:
    """Join the cuts of a batch as Lhotse's `CutConcatenate` does, and remember which they were.

    From the longest down, each takes the shortest that are left, one after another and with a gap
    before each, as long as the result is no longer than the longest times the factor. The result
    is ordered by length before joining, longest first. A joined cut is called what its members
    are, with ``+`` between.

    Parameters
    ----------
    cuts
        The cuts.
    keys
        Their samples' keys; ids of tracks are made of the first member's.
    gap
        Silence between cuts, seconds.
    duration_factor
        Longest result, as a multiple of the longest cut.
    """
    order = sorted(range(len(cuts)), key=lambda place: cuts[place].duration, reverse=True)
    left = [Joined(cuts[place], (place,)) for place in order]
    if not left:
        return left
    longest = left[0].cut.duration * duration_factor
    current = 0
    while current < len(left) - 1:
        here, shortest = left[current], left[-1]
        if here.cut.duration + gap + shortest.cut.duration > longest:
            current += 1
            continue
        left.pop()
        with keyed_ids(keys[here.members[0]]):
            padded = here.cut.pad(duration=here.cut.duration + gap)
            together = padded.append(shortest.cut)
        name = f"{here.cut.id}+{shortest.cut.id}"
        left[current] = Joined(fastcopy(together, id=name), (*here.members, *shortest.members))
    return left


def merge_texts(cut: Cut) -> Cut:
    """Give a cut one supervision, whose text is all texts in order, joined by a space.

    Other fields are joined as Lhotse joins them, such as ``cat#en#de`` for the languages.
    """
    with warnings.catch_warnings():
        # Supervisions that truncation cut through reach into their neighbours.
        warnings.filterwarnings("ignore", "You are merging overlapping supervisions")
        return cut.merge_supervisions()
