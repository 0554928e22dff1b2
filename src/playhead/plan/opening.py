"""How a window begins: who takes part, from where, and for how many draws."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from playhead.plan.checks import check_blend
from playhead.plan.filters import leaf_facts, with_exclusions
from playhead.plan.position import Link, Position, order_of_passes
from playhead.plan.progress import LeafProgress
from playhead.plan.roster import reduced
from playhead.plan.slices import rows_of_pass, slice_length_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.plan.batching import Batching
    from playhead.plan.columns import LeafColumns
    from playhead.plan.settings import Shape

__all__ = ["WINDOWS_OF_A_PASS", "default_draws", "open_window", "start"]

WINDOWS_OF_A_PASS = 1 << 32
"""Windows of different passes have different numbers, so that what is keyed by the window never
repeats: those of finite pass *e* begin with *e* times this."""

_STEPS = 100
_FEWEST_STEPS = 10
_MOST_ITEMS = 1_200_000
# Filters may refuse most draws: a window then takes more, but not endlessly many.
_MOST_DRAWS = 4 * _MOST_ITEMS
_US_PER_CS = 10_000


def start(
    leaves: Sequence[LeafColumns],
    shape: Shape,
    batching: Batching,
    *,
    seed: int,
    pass_: int = 0,
    step: int = 0,
) -> Position:
    """Return the position at the start of training, or of a finite pass.

    Parameters
    ----------
    leaves
        The leaves of the blend, in declared order.
    shape, batching
        The settings.
    seed
        Decides everything that is chosen at random; any integer.
    pass_
        Which pass over the data; each has an order of its own.
    step
        Optimizer steps that passes before this one handed out.

    Raises
    ------
    PlanError
        When no batches can be made of these leaves with these settings.
    """
    check_blend(leaves, shape, batching)
    return open_window(
        {},
        leaves,
        shape,
        batching,
        seed=seed,
        step=step,
        window=pass_ * WINDOWS_OF_A_PASS,
        moved={},
        pass_=pass_,
    )


def open_window(
    entries: Mapping[str, LeafProgress],
    leaves: Sequence[LeafColumns],
    shape: Shape,
    batching: Batching,
    *,
    seed: int,
    step: int,
    window: int,
    moved: Mapping[str, str],
    pass_: int,
) -> Position:
    """Return the position at the start of a window.

    Parameters
    ----------
    entries
        Where leaves stand that were drawn before.
    leaves
        The leaves that are there now; new ones join.
    shape, batching
        The settings that the window is drawn and cut with.
    seed, step, window, moved
        What the position says of them.
    pass_
        Pass that new leaves begin with.
    """
    shape = with_exclusions(shape, leaves)
    order = order_of_passes(shape)
    present = {moved.get(leaf.key, leaf.key): leaf for leaf in leaves}
    finished = (
        shape.finite
        and bool(entries)
        and not any(entries[key].remaining for key in present if key in entries)
    )
    joined: dict[str, LeafProgress] = dict(entries)
    for key, leaf in present.items():
        if key in entries:
            joined[key] = _brought_up(entries[key], leaf, shape)
        elif not finished:
            digest = leaf.digest(leaf.num_rows)
            sliced = slice_length_of(leaf, shape)
            rows = rows_of_pass(leaf, sliced)
            joined[key] = LeafProgress(
                pass_=pass_,
                done=0,
                rows=rows,
                fingerprint=digest,
                seed=seed,
                order=order,
                slice_length=sliced,
                next_rows=rows,
                next_fingerprint=digest,
                next_slice_length=sliced,
            )
    for key, progress in joined.items():
        if not progress.done:
            joined[key] = replace(
                progress,
                seed=seed,
                order=order,
                rows=progress.next_rows,
                fingerprint=progress.next_fingerprint,
                slice_length=progress.next_slice_length,
            )
    joined = dict(sorted(joined.items()))
    weights = [_weight(present.get(key), shape.finite) for key in joined]
    return Position(
        seed=seed,
        window_draws=shape.window_draws or default_draws(leaves, shape, batching),
        step=step,
        window=window,
        leaves=joined,
        shape=shape,
        weights=reduced(weights),
        order=None if shape.shuffle or not shape.finite else _declared(joined, present),
        moved=moved,
        chain=(Link(batching=batching, add=1, steps=0),),
    )


def _weight(leaf: LeafColumns | None, finite: bool) -> int:
    if leaf is None:
        return 0
    return 1 if finite else leaf.weight


def _brought_up(progress: LeafProgress, leaf: LeafColumns, shape: Shape) -> LeafProgress:
    """Rows that were appended join at the next pass; a finite pass has none after it."""
    sliced = slice_length_of(leaf, shape)
    if progress.next_slice_length == sliced and (
        shape.finite or sliced is not None or leaf.num_rows <= progress.next_rows
    ):
        return progress
    return replace(
        progress,
        next_rows=rows_of_pass(leaf, sliced),
        next_fingerprint=leaf.digest(leaf.num_rows),
        next_slice_length=sliced,
    )


def _declared(
    joined: Mapping[str, LeafProgress], present: Mapping[str, LeafColumns]
) -> tuple[int, ...] | None:
    """Return the declared order of leaves, absent ones last; None where it is that of keys."""
    number = {key: place for place, key in enumerate(joined)}
    order = [number[key] for key in present if key in number]
    order += [place for key, place in number.items() if key not in present]
    return None if order == list(range(len(order))) else tuple(order)


def default_draws(leaves: Sequence[LeafColumns], shape: Shape, batching: Batching) -> int:
    """Draws that make about 100 steps, at most a million samples or so.

    Filters refuse some of the draws, so there are more draws than samples. A window that holds many
    passes over a small corpus puts copies of a sample into one batch, for they have one length:
    such a window takes as many draws as there are rows, but no fewer than ten steps need. Where
    shards are cached, a window takes at most half of the cache.

    Parameters
    ----------
    leaves
        The leaves of the blend.
    shape, batching
        The settings.
    """
    # One float after the other in the order of keys: the same sums on every machine.
    total = accepted = length = squares = size = rows = 0.0
    # What lengths and sizes of batches refuse is little; tokens may refuse most of a leaf.
    asked = batching if batching.needs_tokens else None
    for leaf in sorted(leaves, key=lambda leaf: leaf.key):
        drawn = rows_of_pass(leaf, slice_length_of(leaf, shape))
        weight = float(drawn if shape.finite else leaf.weight)
        if not weight or not leaf.num_rows:
            continue
        facts = leaf_facts(leaf, shape, asked, in_tokens=batching.in_tokens)
        per_row = weight / (leaf.num_rows * facts.copies)
        total += weight
        rows += drawn
        accepted += per_row * facts.accepted
        length += per_row * facts.total
        squares += per_row * facts.squares
        if leaf.shard_bytes is not None:
            size += weight / drawn * float(int(leaf.shard_bytes.sum()))
    if not accepted:
        return 1
    per_batch = float(batching.max_samples)
    unit = 1 if batching.in_tokens else _US_PER_CS
    mean = max(length / accepted, 1.0) * unit
    if batching.limit is not None:
        effort = mean
        if batching.quadratic is not None:
            effort += squares / accepted * unit * unit / batching.quadratic
        per_batch = min(per_batch, max(batching.limit / effort, 1.0))
    if batching.sizes and batching.bins:
        fitting = [s for b, s in zip(batching.bins, batching.sizes, strict=True) if b >= mean]
        per_batch = min(per_batch, float(max(fitting, default=batching.sizes[-1])))
    per_step = batching.micro_batches_per_step * per_batch
    draws = min(_STEPS * per_step, float(_MOST_ITEMS)) * total / accepted
    draws = min(draws, max(rows, _FEWEST_STEPS * per_step * total / accepted), float(_MOST_DRAWS))
    if shape.locality == "shards" and size:
        draws = min(draws, shape.cache_bytes / 2 / (size / total))
    return max(1, int(draws))
