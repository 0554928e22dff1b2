"""How a search goes on with mixes: all buckets go up together, and come down one by one.

A mix that fails says of one bucket that its size is too large, however many are; a clean one says
of all that theirs fit. So sizes come from below: first with room left over the tensors for what the
allocator needs, then with half of that room, and so on until a bucket fails, and from then on in
steps that the answer may be off by. A bucket fails once or twice; all that do not share the mixes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.fit.evidence import CLOSE, usual_waste
from playhead.fit.problem import Mix, Probe
from playhead.fit.search_state import EXACT

if TYPE_CHECKING:
    from playhead.fit.evidence import Channel, Usual
    from playhead.fit.problem import Action
    from playhead.fit.search_state import State

__all__ = ["next_mix"]

# What one bucket needs makes the others begin lower, but not by more than this.
_MOST_SHARED = 0.08
# A bucket that failed once is tried again where none of so many neighbours needs as much.
_NEIGHBOURS = 4
# Two steps up are small where they are no more than this together.
_SMALL_STEPS = 1.03


def next_mix(state: State) -> Action:
    """Return the next mix, a probe that has to come before it, or the answer.

    Parameters
    ----------
    state
        Where the search stands.
    """
    usual = usual_waste(state.channels)
    sizes: list[int] = []
    for bucket, channel in enumerate(state.channels):
        size = 0 if state.is_zero(bucket) else _trial(state, bucket, channel, usual)
        if not size and not state.is_zero(bucket):
            size = state.problem.multiple_of
            if not state.fits_alone(bucket):
                # Nothing seems to fit: the smallest size says so.
                return Probe(bucket=bucket, batch_size=size)
        sizes.append(size)
    trial = state.repaired(sizes)
    if state.is_late and state.evidence.clean:
        trial = state.finished().sizes
    if trial in state.evidence.clean or not any(trial):
        again = _again(state, trial)
        if again is None or state.is_late:
            late = f"ended after {state.runs} tries: some sizes may be a little too small"
            return state.finished(*([late] if state.is_late else []))
        trial = again
    # Another order each time: what one order spares, the next may not.
    seed = state.problem.seed + state.runs
    return Mix(sizes=trial, steps=state.problem.verify_steps, seed=seed)


def _trial(state: State, bucket: int, channel: Channel, usual: Usual) -> int:
    """Size of a bucket that the next mix tries: what fits where nothing is left to try."""
    fails = state.fails(channel)
    below = state.down(fails - 1)
    fits = state.down(channel.fits)
    if not fits:
        if channel.fails is not None and not channel.failures:
            # It crashed there, and nobody knows from what size on it does.
            below = state.down(channel.fails / 2)
        return min(below, _first(state, bucket, channel, usual))
    if state.is_settled(bucket, channel, max(0.0, channel.waste_least)):
        return min(fits, below) or fits
    room = state.room(bucket, fits)
    elsewhere = state.elsewhere[bucket]
    if channel.fails is not None and fails <= state.problem.largest:
        wanted = (room + max(0.0, state.room(bucket, fails))) / 2
    elif elsewhere is not None:
        wanted = elsewhere + EXACT
    elif usual.most is not None:
        wanted = usual.most
    else:
        wanted = (room + usual.least) / 2
    size = max(state.next_size(fits), state.with_room(bucket, max(wanted, channel.waste_least)))
    if fails > state.problem.largest and (room < usual.least or 2 * state.runs > state.tries):
        size = max(size, state.down(_stride(channel)))
    return min(below, size)


def _first(state: State, bucket: int, channel: Channel, usual: Usual) -> int:
    """Size of a bucket that was in no clean mix."""
    elsewhere = state.elsewhere[bucket]
    if elsewhere is not None:
        return state.with_room(bucket, elsewhere + EXACT)
    least = max(channel.waste_least, min(_MOST_SHARED, usual.worst))
    if not least:
        return state.first(bucket)
    return state.with_room(bucket, least + max(0.01, least / 2))


def _stride(channel: Channel) -> int:
    """Size that is twice as far on as the last step, if that and the one before it were small."""
    sizes = sorted({*channel.cleared, 0})[-3:]
    if len(sizes) < 3 or channel.fits != sizes[-1] or sizes[2] > _SMALL_STEPS * sizes[0]:
        return 0
    return sizes[2] + 2 * (sizes[2] - sizes[1])


def _again(state: State, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Sizes at which a bucket is tried again whose failure is unlike its neighbours."""
    channels = state.channels
    known = [
        bucket
        for bucket, channel in enumerate(channels)
        if channel.waste_least > 0 and channel.waste_most - channel.waste_least < CLOSE
    ]
    for bucket in known:
        channel = channels[bucket]
        if channel.failures != 1 or state.fails(channel) > state.problem.largest:
            continue
        near = sorted((abs(other - bucket), other) for other in known if other != bucket)
        usual = [channels[other].waste_most for _, other in near[:_NEIGHBOURS]]
        if len(usual) < _NEIGHBOURS or channel.waste_least > max(usual) + EXACT:
            wanted = [*sizes]
            wanted[bucket] = state.fails(channel)
            trial = state.repaired(wanted)
            if trial[bucket] == wanted[bucket]:
                return trial
    return None
