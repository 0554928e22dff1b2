"""How a search goes on with probes: a few buckets first, then, without mixes, all of them.

The longest bucket, the shortest and some between tell most of all others. Where no mixes are tried,
what the allocator needs is found in three of them; all others are then probed once, with as much
room as it is thought to need in them, and again only where the answer may still be far off.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from playhead.fit.problem import Probe
from playhead.fit.search_state import EXACT, FIRST_ROOM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.fit.evidence import Channel
    from playhead.fit.problem import Action, Problem
    from playhead.fit.search_state import State

__all__ = ["bisect", "explore", "next_probe"]

# An anchor is known once a size of at least this share of its answer was measured.
_NEAR_ANSWER = 0.6
# What failed before anything fitted is tried again with this share of its size.
_FEWER, _LOWER = 0.25, 0.97
# These tell what the allocator needs before all others are tried.
_FIRST_BUCKETS = 3
# What it needs is known where its bounds are so near, and between two buckets to so much.
_CLOSE, _DOUBT = 0.015, 0.002
# Where more room is needed than was thought, so much more is left than failed, as a share of it.
_MORE = 0.25


def explore(state: State) -> Probe | None:
    """Return a probe of a bucket that tells much of all others; None once they are known.

    Parameters
    ----------
    state
        Where the search stands.
    """
    step = state.problem.multiple_of
    if state.model is None and any(channel.fits for channel in state.evidence.alone):
        # It fitted, and yet nobody knows what it held.
        return None
    for bucket in _anchors(state):
        channel = state.evidence.alone[bucket]
        fails = state.fails(channel)
        if state.is_zero(bucket) or fails - channel.fits <= step:
            continue
        if state.model is None:
            is_first = channel.fails is None
            size = state.problem.start_batch_size if is_first else int(_FEWER * fails)
            if not is_first and not state.evidence.answers:
                # The smallest says whether it is the size or the model of which nothing is heard.
                size = step
        else:
            size = state.first(bucket)
            top = max(state.model.measured.get(bucket, ()), default=0)
            if top and top >= _NEAR_ANSWER * min(size, fails - 1):
                continue
            if size >= fails:
                size = int((max(1, channel.fits) * fails) ** 0.5)
        size = min(max(state.down(size), channel.fits + step), fails - step)
        return Probe(bucket=bucket, batch_size=max(step, state.down(size)))
    return None


def next_probe(state: State) -> Action:
    """Return the next probe of a search without mixes, or the answer.

    Parameters
    ----------
    state
        Where the search stands.
    """
    worst, probe = 0.0, None
    step = state.problem.multiple_of
    order = [b for b in _spread(len(state.problem.buckets)) if not state.is_zero(b)]
    for place, bucket in enumerate(order):
        channel = state.evidence.alone[bucket]
        least, most = _expected(state, bucket)
        size = max(step, _trial(state, bucket, channel, (least, most)))
        if not channel.fits:
            return Probe(bucket=bucket, batch_size=size)
        below = state.down(state.fails(channel) - 1)
        gap = min(below, state.with_room(bucket, least)) - channel.fits
        if size == channel.fits or (state.is_late and gap <= step):
            continue
        if place < _FIRST_BUCKETS and state.elsewhere[bucket] is None:
            return Probe(bucket=bucket, batch_size=size)
        if probe is None or gap / channel.fits > worst:
            worst, probe = gap / channel.fits, Probe(bucket=bucket, batch_size=size)
    if probe is None:
        return state.finished()
    if state.is_late and worst <= state.problem.threshold:
        late = f"ended after {state.runs} tries: sizes may be too small by up to {worst:.1%}"
        return state.finished(late)
    return probe


def bisect(state: State) -> Action:
    """Return the next probe of a search that knows no peaks at all, or the answer.

    Parameters
    ----------
    state
        Where the search stands.
    """
    step = state.problem.multiple_of
    for bucket in range(len(state.problem.buckets) - 1, -1, -1):
        channel = state.evidence.alone[bucket]
        fails = state.fails(channel)
        gap = fails - channel.fits
        if state.is_zero(bucket) or gap <= max(step, state.problem.threshold * fails):
            continue
        size = (channel.fits + fails) // 2
        if channel.fails is None:
            size = max(2 * channel.fits, state.problem.start_batch_size)
        return Probe(bucket=bucket, batch_size=max(channel.fits + step, state.down(size)))
    return state.finished("memory was not measured: only what fits alone is known")


def _anchors(state: State) -> list[int]:
    problem = state.problem
    last = len(problem.buckets) - 1
    if state.model is not None and state.model.is_predicted:
        return list(dict.fromkeys([last, 0]))
    if not problem.has_pairs:
        return list(dict.fromkeys([last, 0, last // 2, last // 4, 3 * last // 4]))
    return list(dict.fromkeys([last, 0, *_corners(problem), last // 2]))


def _corners(problem: Problem) -> list[int]:
    """Longest input with the shortest output, and shortest input with the longest output."""
    inputs = [bucket.input_length for bucket in problem.buckets]
    return [inputs.index(inputs[-1]), len(inputs) - 1 - inputs[::-1].index(inputs[0])]


def _spread(count: int) -> list[int]:
    """Buckets in an order in which each is between two that were before, where that can be.

    Examples
    --------
    >>> _spread(6)
    [5, 0, 2, 1, 3, 4]
    """
    order = [count - 1, 0]
    gaps = [(0, count - 1)]
    while gaps:
        low, high = gaps.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            order.append(middle)
            gaps += [(low, middle), (middle, high)]
    return list(dict.fromkeys(order))


def _expected(state: State, bucket: int) -> tuple[float, float]:
    """What the allocator is thought to need for a bucket at least and at most, as a share."""
    elsewhere = state.elsewhere[bucket]
    if elsewhere is not None:
        return state.evidence.alone[bucket].waste_least, elsewhere
    known = {
        other: (channel.waste_least + channel.waste_most) / 2
        for other, channel in enumerate(state.evidence.alone)
        if channel.waste_most - channel.waste_least < _CLOSE and channel.cleared
    }
    own = state.evidence.alone[bucket]
    if bucket in known:
        return own.waste_least, own.waste_most
    if not known:
        return own.waste_least, min(own.waste_most, FIRST_ROOM)
    off = [abs(waste - _between(known, other)) for other, waste in known.items()]
    doubt = _DOUBT + (median(off) if len(known) > 2 else _DOUBT)
    middle = _between(known, bucket)
    least, most = max(0.0, middle - doubt), middle + doubt
    if own.waste_most < least or own.waste_least > most:
        # It is not like its neighbours.
        return own.waste_least, min(own.waste_most, own.waste_least + FIRST_ROOM)
    return max(own.waste_least, least), min(own.waste_most, most)


def _between(known: Mapping[int, float], bucket: int) -> float:
    """Mean of the nearest on both sides, by how near they are, without the bucket itself."""
    below = max((other for other in known if other < bucket), default=None)
    above = min((other for other in known if other > bucket), default=None)
    if below is None or above is None:
        nearest = above if below is None else below
        return known[bucket if nearest is None else nearest]
    share = (bucket - below) / (above - below)
    return known[below] * (1 - share) + known[above] * share


def _trial(state: State, bucket: int, channel: Channel, expected: tuple[float, float]) -> int:
    """Size of a bucket to probe: what fits where that is near enough."""
    least, most = expected
    fails = state.fails(channel)
    below = state.down(fails - 1)
    failed = state.room(bucket, fails) if fails <= state.problem.largest else 0.0
    if not channel.fits:
        # Where it failed nothing was measured: its peak may be larger than was thought.
        lower = below if channel.fails is None else state.down(_LOWER * channel.fails)
        return min(below, lower, state.with_room(bucket, _enough(most, failed) + EXACT))
    elsewhere = state.elsewhere[bucket]
    if state.is_settled(bucket, channel, max(0.0, least + EXACT)):
        return channel.fits
    least = max(least, failed)
    # Halfway, or what is thought to be enough.
    half = (state.room(bucket, channel.fits) + least) / 2
    room = min(half, _enough(most, least) + EXACT)
    if elsewhere is not None:
        room = min(elsewhere + EXACT, room)
    return min(below, max(state.next_size(channel.fits), state.with_room(bucket, room)))


def _enough(most: float, least: float) -> float:
    """Room that is thought to be enough; a good deal more than `least`, where `most` is not."""
    return most if most >= least else least * (1 + _MORE)
