"""What either order of passes costs at the storage, worked out without reading anything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import PlayheadError
from playhead.fetch.asking import Asking
from playhead.fetch.freshness import Freshness
from playhead.fetch.kept import Kept, kept_among
from playhead.loader.locality import shard_bytes_of
from playhead.plan.slices import rows_of_pass, slice_length_of
from playhead.report.figures import LocalityFigures
from playhead.report.reads import Reads, reads_of

if TYPE_CHECKING:
    from playhead.loader.part import Part
    from playhead.loader.run import Planning
    from playhead.plan import WindowPlan
    from playhead.plan.settings import Locality

__all__ = ["localities_of"]

# Micro-batches whose reads are worked out, and samples in them.
_MOST_BATCHES = 64
_MOST_SAMPLES = 8192
_FEWEST_BATCHES = 4
_BOTH: tuple[Locality, ...] = ("rows", "shards")


def localities_of(part: Part, seed: int) -> tuple[LocalityFigures, ...]:
    """Return what a blend's reads cost with either locality, over its first window.

    Parameters
    ----------
    part
        The blend, opened.
    seed
        The seed to plan with.
    """
    planning = part.planning
    found: list[LocalityFigures] = []
    for locality in _BOTH:
        other = replace(planning, shape=replace(planning.shape, locality=locality))
        is_used = planning.shape.locality == locality
        try:
            found.append(_figures(part, other, seed, is_used=is_used))
        except (PlayheadError, OSError) as error:
            found.append(
                LocalityFigures(
                    locality=locality,
                    is_used=is_used,
                    requests=0.0,
                    bytes=0.0,
                    shards=0.0,
                    kept_bytes=None,
                    note=f"not known: {error}",
                )
            )
    return tuple(found)


def _figures(part: Part, planning: Planning, seed: int, *, is_used: bool) -> LocalityFigures:
    plan = planning.window(planning.start(seed=seed, pass_=0, step=0))
    per_step = planning.micro_batches_per_step
    batches = (plan.num_steps - plan.first_step) * per_step
    locality = planning.shape.locality
    whole = _whole_files(part, planning, plan, batches)
    reads = _mean_reads(part, plan, per_step)
    return LocalityFigures(
        locality=locality,
        is_used=is_used,
        requests=reads.requests + whole.requests,
        bytes=reads.num_bytes + whole.bytes,
        shards=reads.files,
        kept_bytes=whole.kept_bytes,
        note=_note(planning, whole, reads),
    )


@dataclass(slots=True)
class _Whole:
    """Files that are read whole, once a pass, by micro-batch."""

    requests: float = 0.0
    bytes: float = 0.0
    kept_bytes: int | None = None


def _whole_files(part: Part, planning: Planning, plan: WindowPlan, batches: int) -> _Whole:
    whole = _Whole()
    by_shards = planning.shape.locality == "shards"
    draws = plan.stats.draws
    kept_bytes = 0.0
    for pack, columns in zip(part.packs, planning.leaves, strict=True):
        rows = rows_of_pass(columns, slice_length_of(columns, planning.shape))
        drawn = draws.get(columns.key, 0)
        if not rows or not drawn:
            continue
        if pack.groups is not None:
            if not by_shards:
                continue
            sizes = pack.groups.num_bytes
        else:
            has_shards = columns.shard is not None
            kept = kept_among(pack.shards.uris, by_shard=by_shards and has_shards)
            sizes = shard_bytes_of(pack)[kept] if kept else None
        if sizes is None:
            continue
        passes = drawn / rows
        whole.requests += passes * len(sizes) / max(batches, 1)
        whole.bytes += passes * float(sizes.sum()) / max(batches, 1)
        kept_bytes += min(passes, 1.0) * float(sizes.sum())
    if whole.requests:
        whole.kept_bytes = round(min(kept_bytes, planning.shape.cache_bytes))
    return whole


def _mean_reads(part: Part, plan: WindowPlan, per_step: int) -> Reads:
    """What reading a few micro-batches of a window takes, on average."""
    spec = part.spec
    kept = Kept(spec.cache)
    asking = Asking(spec.leaves, part.packs.__getitem__, kept, Freshness(kept), spec.access)
    places = np.arange(plan.first_step * per_step, plan.num_steps * per_step)
    mean_size = plan.stats.num_samples / max(plan.num_steps * per_step, 1)
    count = int(min(_MOST_BATCHES, max(_MOST_SAMPLES / max(mean_size, 1.0), _FEWEST_BATCHES)))
    if len(places) > count:
        places = places[np.linspace(0, len(places) - 1, count).astype(np.int64)]
    found = [
        reads_of(asking, plan.micro_batch(*divmod(place, per_step)), spec)
        for place in places.tolist()
    ]
    return Reads.mean_of(found)


def _note(planning: Planning, whole: _Whole, reads: Reads) -> str:
    notes: list[str] = []
    by_shards = planning.shape.locality == "shards"
    if by_shards and all(leaf.shard is None for leaf in planning.leaves):
        notes.append("no source has shards: this is the order of rows")
    if whole.requests:
        times = "once a pass" if by_shards else "at least once a pass"
        notes.append(f"files that are kept are read whole {times}, by every machine")
    if reads.unknown:
        notes.append(
            f"{reads.unknown:,.1f} of the requests are for files of one sample, whose bytes the"
            " index does not know"
        )
    return "; ".join(notes)
