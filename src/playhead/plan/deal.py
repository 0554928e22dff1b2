"""A pool of samples cut into batches and dealt into steps: everything that a link does."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from playhead.plan.bins import batch_sizes, bins_by_length, cut_2d, successors
from playhead.plan.classes import class_by_bins, class_by_mass, set_apart
from playhead.plan.cut import (
    RunningCut,
    cut_by_class,
    cut_evenly,
    cut_fixed,
    shrink,
    split,
)
from playhead.plan.effort import effective, effective_one, longest_allowed
from playhead.plan.items import Items
from playhead.plan.keyed import Purpose, key, stream
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
    order, starts, recut = _cut(pool, batching, link)
    wanted = -(-max(len(starts), 1) // per_step) * per_step
    missing = len(pool) < wanted
    if missing:
        pool = Items.joined([pool, fill(wanted - len(pool), batching)])
        if len(pool) > wanted:
            order, starts, recut = _cut(pool, batching, link)
            wanted = -(-len(starts) // per_step) * per_step
            missing = len(pool) < wanted
    num_real = len(pool)
    if missing:
        if 0 < num_real < wanted and not batching.drop_last:
            pool = Items.joined([pool, _repeats(pool, wanted - num_real, link)])
        kept = len(pool) // per_step * per_step
        if kept < len(pool):
            dropped["drop_last"] = len(pool) - kept
        order = _order(len(pool), None, link)[:kept]
        starts = list(range(kept))
    elif len(starts) < wanted:
        starts = recut(wanted)
        if len(starts) < wanted:
            lengths = pool.length[order]
            starts = split(starts, lengths, batching.quadratic_duration_us, wanted)
    first = np.array(starts, dtype=np.int64)
    size = np.diff(first, append=np.int64(len(order)))
    sequence = _sequence(pool.length[order], order, first, batching, link)
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
    return len(_cut(without(pool, batching_questions(batching), {}), batching, link)[1])


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


def _cut(
    pool: Items, batching: Batching, link: LinkKey
) -> tuple[NDArray[np.int64], list[int], Callable[[int], list[int]]]:
    """Return the order that is cut, the starts of batches, and a way to cut more batches."""
    limit, most = batching.batch_duration_us, batching.max_samples
    if not len(pool):
        return np.arange(0), [], lambda _: []
    if batching.bucketing and batching.sizes:
        order, starts = _cut_sizes(pool, batching, link)
        return order, starts, lambda _: starts
    if batching.bucketing:
        order, ends, efforts = _by_class(pool, batching, link)
        if limit is not None:
            by_class = partial(cut_by_class, ends, efforts, max_samples=most)
            starts = by_class(limit)
            return order, starts, partial(shrink, by_class, starts, limit, attempts=_MANY_CUTS)
    else:
        order = _order(len(pool), None, link)
        if limit is not None:
            effort = effective(pool.length[order], batching.quadratic_duration_us)
            running = RunningCut(effort, limit, most)
            starts = running(limit)
            return order, starts, partial(shrink, running, starts, limit, attempts=_FEW_CUTS)
    return order, list(range(0, len(order), most)), partial(cut_evenly, len(order))


def _by_class(
    pool: Items, batching: Batching, link: LinkKey
) -> tuple[NDArray[np.int64], list[int], list[int]]:
    if batching.bins_us is not None:
        classes = class_by_bins(pool.length, batching.bins_us)
    else:
        classes = class_by_mass(pool.length, batching.num_classes)
    classes = set_apart(classes, pool.length, longest_allowed(batching))
    order = _order(len(pool), classes, link)
    counts = np.bincount(classes)
    ends = np.cumsum(counts)[counts > 0]
    longest = np.maximum.reduceat(pool.length[order], ends - counts[counts > 0])
    efforts = [effective_one(length, batching.quadratic_duration_us) for length in longest.tolist()]
    return order, ends.tolist(), efforts


def _cut_sizes(
    pool: Items, batching: Batching, link: LinkKey
) -> tuple[NDArray[np.int64], list[int]]:
    bins, sizes = batching.bins_us or (), batch_sizes(batching)
    in_2d = batching.bins_tokens
    found = bins_by_length(pool.length, bins) if in_2d is None else bins_of(pool, batching)
    classes = found.astype(np.uint16)
    order = _order(len(pool), classes, link)
    counts = np.bincount(classes, minlength=len(bins))
    if in_2d is None:
        return order, cut_fixed(np.cumsum(counts).tolist(), sizes)
    return cut_2d(order, counts.tolist(), sizes, successors(bins, in_2d, sizes))


def _repeats(pool: Items, need: int, link: LinkKey) -> Items:
    order = np.arange(len(pool))
    if link.shuffle:
        order = np.argsort(stream(link.of(Purpose.REPEATS), order), kind="stable")
    return pool.chosen(order[np.arange(need) % len(order)])


def _sequence(
    length_us: NDArray[np.int64],
    order: NDArray[np.int64],
    first: NDArray[np.int64],
    batching: Batching,
    link: LinkKey,
) -> NDArray[np.int64]:
    """Return the order in which batches are handed out; lengths are in the order of `order`."""
    if not len(first) or (not link.shuffle and not batching.bucketing):
        return np.arange(len(first))
    longest = np.maximum.reduceat(length_us, first)
    effort = effective(longest, batching.quadratic_duration_us)
    cost = effort * np.diff(first, append=np.int64(len(order)))
    per_step = batching.micro_batches_per_step
    if not link.shuffle:
        return deal_in_order(effort, cost, per_step, np.minimum.reduceat(order, first))
    keys = link.of(Purpose.STEPS), link.of(Purpose.SLOTS)
    return deal_keyed(effort, cost, per_step, *keys)
