"""A pool of samples cut into batches and dealt into steps: everything that a link does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from playhead.plan.bins import batch_sizes, bins_by_length, cut_2d, successors
from playhead.plan.classes import class_by_bins, class_by_mass, set_apart
from playhead.plan.cut import (
    Costs,
    Cut,
    PackedCosts,
    PaddedCosts,
    RunningCut,
    cut_by_class,
    cut_evenly,
    cut_fixed,
    shrink,
    split,
)
from playhead.plan.effort import SHORTEST_US, Effort
from playhead.plan.items import Items
from playhead.plan.keyed import Purpose, key, stream
from playhead.plan.packing import Caps, pack
from playhead.plan.permute import ranges
from playhead.plan.refusals import batching_questions, bins_of, without
from playhead.plan.steps import deal_in_order, deal_keyed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching

__all__ = ["Dealt", "Filler", "LinkKey", "count_batches", "deal"]

# A cut by class costs next to nothing; a running one as much as all the rest of a window's plan.
_MANY_CUTS = 14
_FEW_CUTS = 4
_VERY_FEW_CUTS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkKey:
    """What the random choices of a link are keyed by."""

    seed: int
    """The seed of the window."""
    window: int
    """Number of the first window of the chain."""
    link: int
    """Number of the link in the chain."""
    shuffle: bool
    """Whether anything is chosen at random at all."""

    def of(self, purpose: Purpose, *words: int) -> int:
        """Return a key of this link."""
        return key(self.seed, purpose, self.window, self.link, *words)


class Filler(Protocol):
    """Draws beyond the windows of a link, so that its last step becomes full."""

    def __call__(self, need: int, batching: Batching) -> Items:
        """Return so many further samples that `batching` does not refuse.

        A few more where the last of the draws gives several, fewer where a finite pass is over.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Dealt:
    """Batches in the order in which they are handed out, as slices of `order`."""

    items: Items
    """The samples, shape (M,); repeated ones come last."""
    num_real: int
    """How many of them are not repeated."""
    order: NDArray[np.int64]
    """Numbers of samples, batch after batch as they were cut."""
    first: NDArray[np.int64]
    """Where each batch begins in `order`, shape (K,), step after step, slot after slot."""
    size: NDArray[np.int64]
    """Samples of each batch, shape (K,)."""
    per_step: int
    """Micro-batches of a step."""
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    """Samples that this link refuses or leaves out, by reason."""

    @property
    def num_steps(self) -> int:
        """How many steps there are."""
        return len(self.first) // self.per_step

    def batch(self, step: int, slot: int) -> NDArray[np.int64]:
        """Numbers of the samples of a batch."""
        place = step * self.per_step + slot
        start = int(self.first[place])
        return self.order[start : start + int(self.size[place])]

    def only(self, first_step: int, end_step: int) -> Dealt:
        """Return some of the steps; the samples are those of all."""
        batches = slice(first_step * self.per_step, end_step * self.per_step)
        return replace(self, first=self.first[batches], size=self.size[batches])

    def handed_out(self, steps: int) -> NDArray[np.int64]:
        """Numbers of the samples of the first steps, without repeated ones."""
        batches = slice(0, steps * self.per_step)
        numbers = self.order[ranges(self.first[batches], self.size[batches])]
        return numbers[numbers < self.num_real]

    def remaining(self, steps: int) -> Items:
        """Return the samples that are left after the first steps, in canonical order."""
        left = np.ones(self.num_real, dtype=np.bool_)
        left[self.handed_out(steps)] = False
        return self.items.chosen(np.flatnonzero(left))


def deal(pool: Items, batching: Batching, link: LinkKey, fill: Filler) -> Dealt:
    """Cut a pool into batches, a multiple of the step many, and deal these into steps.

    Where a pool is too small to make a whole number of steps even from batches of one sample,
    `fill` gives more; what a finite pass cannot give is made up for by repeating samples, or with
    `drop_last` the step that is not full is left out. So it is in mid-pass or in an endless blend
    only where draws give several samples that no number of draws makes whole steps of, and no batch
    may take two.

    Parameters
    ----------
    pool
        Samples in canonical order.
    batching
        What they are cut with.
    link
        What random choices are keyed by.
    fill
        Gives further samples.
    """
    dropped: dict[str, int] = {}
    pool = without(pool, batching_questions(batching), dropped)
    per_step = batching.micro_batches_per_step
    cut, recut = _cut(pool, batching, link)
    wanted = -(-max(len(cut.starts), 1) // per_step) * per_step
    missing = len(pool) < wanted
    if missing:
        pool = Items.joined([pool, fill(wanted - len(pool), batching)])
        if len(pool) > wanted:
            cut, recut = _cut(pool, batching, link)
            wanted = -(-len(cut.starts) // per_step) * per_step
            missing = len(pool) < wanted
    num_real = len(pool)
    if missing:
        if 0 < num_real < wanted and not batching.drop_last:
            pool = Items.joined([pool, _repeats(pool, wanted - num_real, link)])
        kept = len(pool) // per_step * per_step
        if kept < len(pool):
            dropped["drop_last"] = len(pool) - kept
        cut = Cut(_order(len(pool), None, link)[:kept], list(range(kept)))
    elif len(cut.starts) < wanted:
        cut = recut(wanted)
    costs = _costs(pool, cut.order, batching)
    if not missing and len(cut.starts) < wanted:
        cut = cut._replace(starts=split(cut.starts, len(cut.order), costs, wanted))
    order = cut.order
    first = np.array(cut.starts, dtype=np.int64)
    size = np.diff(first, append=np.int64(len(order)))
    sequence = _sequence(costs, order, first, batching, link)
    return Dealt(
        items=pool,
        num_real=num_real,
        order=order,
        first=first[sequence],
        size=size[sequence],
        per_step=per_step,
        dropped=dropped,
    )


def count_batches(pool: Items, batching: Batching, link: LinkKey) -> int:
    """How many batches a pool makes at the limit itself."""
    return len(_cut(without(pool, batching_questions(batching), {}), batching, link)[0].starts)


def _order(count: int, classes: NDArray[np.uint16] | None, link: LinkKey) -> NDArray[np.int64]:
    """Return samples class after class, in keyed (or declared) order inside a class."""
    order = np.arange(count)
    if link.shuffle:
        # 16 bits of the hash sort four times faster than all; ties keep the canonical order,
        # which is harmless as a class has far fewer samples than there are hashes.
        hashes = stream(link.of(Purpose.POOL), order) >> np.uint64(48)
        order = np.argsort(hashes.astype(np.uint16), kind="stable")
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    return order


def _cut(pool: Items, batching: Batching, link: LinkKey) -> tuple[Cut, Callable[[int], Cut]]:
    """Cut a pool at the limit itself; return with it a way to cut so many batches, or fewer."""
    if not len(pool):
        nothing = Cut(np.arange(0), [])
        return nothing, lambda _: nothing
    if batching.packed:
        return _cut_packed(pool, batching, link)
    if batching.bucketing and batching.sizes:
        fixed = _cut_sizes(pool, batching, link)
        return fixed, lambda _: fixed
    limit, most = Effort.of(batching).limit, batching.max_samples
    if limit is None:
        classes = _classes(pool, batching) if batching.bucketing else None
        order = _order(len(pool), classes, link)
        whole = Cut(order, list(range(0, len(order), most)))
        return whole, lambda wanted: Cut(order, cut_evenly(len(order), wanted))
    if batching.bucketing:
        order, cutting = _by_class(pool, batching, link)
        attempts = _MANY_CUTS
    else:
        order = _order(len(pool), None, link)
        effort = Effort.of(batching)(_lengths(pool, batching)[order])
        cutting = RunningCut(effort, limit, most)
        attempts = _FEW_CUTS

    def at(limit: int) -> Cut:
        return Cut(order, cutting(limit))

    whole = at(limit)
    return whole, lambda wanted: shrink(at, whole, limit, wanted, attempts)


def _lengths(pool: Items, batching: Batching) -> NDArray[np.int64]:
    return pool.lengths(in_tokens=batching.in_tokens)


def _costs(pool: Items, order: NDArray[np.int64], batching: Batching) -> Costs:
    lengths, effort = _lengths(pool, batching)[order], Effort.of(batching)
    return PackedCosts(effort(lengths)) if batching.packed else PaddedCosts(lengths, effort)


def _classes(pool: Items, batching: Batching) -> NDArray[np.uint16]:
    lengths = _lengths(pool, batching)
    if batching.bins is not None:
        classes = class_by_bins(lengths, batching.bins)
    else:
        # A token weighs what the shortest length does: 10 ms.
        weights = lengths * SHORTEST_US if batching.in_tokens else lengths
        classes = class_by_mass(weights, batching.num_classes)
    return set_apart(classes, lengths, Effort.of(batching).longest)


def _by_class(
    pool: Items, batching: Batching, link: LinkKey
) -> tuple[NDArray[np.int64], Callable[[int], list[int]]]:
    """Samples class after class, and a way to slice them."""
    classes = _classes(pool, batching)
    order = _order(len(pool), classes, link)
    counts = np.bincount(classes)
    ends = np.cumsum(counts)[counts > 0]
    longest = np.maximum.reduceat(_lengths(pool, batching)[order], ends - counts[counts > 0])
    efforts = list(map(Effort.of(batching).one, longest.tolist()))
    most = batching.max_samples
    return order, partial(cut_by_class, ends.tolist(), efforts, max_samples=most)


def _cut_sizes(pool: Items, batching: Batching, link: LinkKey) -> Cut:
    bins, sizes = batching.bins or (), batch_sizes(batching)
    in_2d = batching.bins_tokens
    found = (
        bins_by_length(_lengths(pool, batching), bins) if in_2d is None else bins_of(pool, batching)
    )
    classes = found.astype(np.uint16)
    order = _order(len(pool), classes, link)
    counts = np.bincount(classes, minlength=len(bins))
    if in_2d is None:
        return Cut(order, cut_fixed(np.cumsum(counts).tolist(), sizes))
    return Cut(*cut_2d(order, counts.tolist(), sizes, successors(bins, in_2d, sizes)))


def _cut_packed(pool: Items, batching: Batching, link: LinkKey) -> tuple[Cut, Callable[[int], Cut]]:
    effort = Effort.of(batching)
    limit = effort.limit
    assert limit is not None
    order = _order(len(pool), None, link)
    cost = effort(_lengths(pool, batching)[order])
    caps = Caps(borders=[limit], sizes=[batching.max_samples])
    if batching.sizes:
        borders = [effort.one(border) for border in batching.bins or ()]
        caps = Caps(borders=borders, sizes=batch_sizes(batching))

    def at(limit: int) -> Cut:
        packed, starts = pack(cost, limit, caps)
        return Cut(order[packed], starts)

    whole = at(limit)
    return whole, lambda wanted: shrink(at, whole, limit, wanted, _VERY_FEW_CUTS)


def _repeats(pool: Items, need: int, link: LinkKey) -> Items:
    order = np.arange(len(pool))
    if link.shuffle:
        order = np.argsort(stream(link.of(Purpose.REPEATS), order), kind="stable")
    return pool.chosen(order[np.arange(need) % len(order)])


def _sequence(
    costs: Costs,
    order: NDArray[np.int64],
    first: NDArray[np.int64],
    batching: Batching,
    link: LinkKey,
) -> NDArray[np.int64]:
    """Return the order in which batches are handed out."""
    in_order = not link.shuffle and (batching.packed or not batching.bucketing)
    if not len(first) or in_order:
        return np.arange(len(first))
    effort, cost = costs.likeness(first), costs.many(first)
    per_step = batching.micro_batches_per_step
    if not link.shuffle:
        return deal_in_order(effort, cost, per_step, np.minimum.reduceat(order, first))
    keys = link.of(Purpose.STEPS), link.of(Purpose.SLOTS)
    return deal_keyed(effort, cost, per_step, *keys)
