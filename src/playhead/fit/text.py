"""The lines that people read of a search and of what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.fit.amounts import shown_amount
from playhead.fit.problem import Probe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fit.bucket import Bound, Bucket
    from playhead.fit.problem import Mix
    from playhead.fit.profile import Profile
    from playhead.fit.record import MixRecord, ProbeRecord, Status
    from playhead.fit.search import FoundBucket
    from playhead.fit.training import Training

__all__ = [
    "VERDICTS",
    "about",
    "begin_line",
    "final_lines",
    "found_lines",
    "merge_lines",
    "mix_line",
    "probe_line",
    "settings_lines",
    "shown_bound",
]

VERDICTS: dict[Status, str] = {"ok": "OK!", "oom": "OOM!", "lost": "NO ANSWER!"}
"""What became of a try, in a word that its line has."""
# CUDA has a whole paragraph to say.
_MOST_REASON = 160


def begin_line(action: Probe | Mix, buckets: Sequence[Bucket]) -> str:
    """Return what will be tried.

    Parameters
    ----------
    action
        A size of one bucket, or a mix of all.
    buckets
        The buckets.
    """
    if isinstance(action, Probe):
        return f"{about(buckets[action.bucket])} batch_size={action.batch_size}:"
    sizes = [size for size in action.sizes if size]
    return f"{action.steps} steps over a mix of {len(sizes)} buckets, at {_ends(sizes)}:"


def probe_line(record: ProbeRecord) -> str:
    """Return what became of a size of one bucket: its memory, how long it took, the verdict.

    Examples
    --------
    >>> from playhead.fit.record import ProbeRecord
    >>> probe_line(ProbeRecord(bucket=0, batch_size=8, budget=9 << 30, status="ok",
    ...     allocated=5 << 30, reserved=6 << 30, predicted=5 << 30, seconds=2))
    '  tensors 5.00 GiB (predicted 5.00 GiB), allocator 6.00 GiB of 9.00 GiB, 2.0 s  OK!'
    """
    predicted = None if record.predicted is None else f"predicted {shown_amount(record.predicted)}"
    tensors = None if record.allocated is None else f"tensors {shown_amount(record.allocated)}"
    both = f"{tensors} ({predicted})" if tensors and predicted else tensors or predicted
    return _outcome(both, record)


def mix_line(record: MixRecord, buckets: Sequence[Bucket]) -> str:
    """Return what became of a mix of all buckets.

    Parameters
    ----------
    record
        The mix.
    buckets
        The buckets.
    """
    most = max(record.allocated or (), default=None)
    said = [f"{record.done} of {record.steps} steps"]
    if record.failed is not None:
        said.append(f"then {about(buckets[record.failed])}")
    if most is not None:
        said.append(f"tensors {shown_amount(most)}")
    return _outcome(", ".join(said), record)


def found_lines(found: Sequence[FoundBucket]) -> list[str]:
    """Return the largest size of each bucket, the longest first, as searches by hand print them.

    Parameters
    ----------
    found
        Every bucket, in the order of the config.
    """
    best = [
        f"=> Optimal setting for {about(one.bucket)} is max_batch_size={one.batch_size}"
        if one.batch_size
        else f"=> Not even one sample fits for {about(one.bucket)}"
        for one in reversed(found)
    ]
    stage = [f"{about(one.bucket)} => batch_size={one.batch_size}" for one in found]
    return [*best, "The 1st stage profile is:", *stage]


def merge_lines(profile: Profile) -> list[str]:
    """Return which buckets of one length became part of their longer neighbours.

    Parameters
    ----------
    profile
        The profile.
    """
    if isinstance(profile.found[0].bucket.bound, tuple):
        return []
    return [
        "Bucket merging stage...",
        *(
            f"Merging bucket {shown_bound(merge.bound)} into {shown_bound(merge.into)}: both take"
            f" batch_size={merge.batch_size}"
            for merge in profile.merges
        ),
    ]


def final_lines(profile: Profile) -> list[str]:
    """Return the lists as one pastes them into a config.

    Parameters
    ----------
    profile
        The profile.
    """
    return ["The final profile is:", *(f"\t{line}" for line in profile.lines)]


def settings_lines(training: Training, *, memory: int, fraction: float, budget: int) -> list[str]:
    """Return what the sizes hold for: memory, copies of the gradients, dtype.

    Parameters
    ----------
    training
        How the model is trained.
    memory
        Memory of the device (bytes).
    fraction
        Share of it that was asked for.
    budget
        Most that the allocator might hold (bytes).
    """
    copies = "one copy of the gradients is counted" if training.ddp else "not counted"
    average = ", and an average of the weights" if training.ema else ""
    times = f", {training.accumulate} micro-batches a step" if training.accumulate > 1 else ""
    return [
        f"Memory: {shown_amount(budget)}, for a share of {fraction:g} of {shown_amount(memory)}",
        f"DDP: {copies}{average}{times}",
        f"dtype: {training.dtype}",
    ]


def shown_bound(bound: Bound) -> str:
    """Return a bucket as a config has it.

    Examples
    --------
    >>> shown_bound(2.5), shown_bound((5, 40))
    ('2.5', '[5,40]')
    """
    return f"[{bound[0]},{bound[1]}]" if isinstance(bound, tuple) else str(bound)


def about(bucket: Bucket) -> str:
    """Return what a bucket is called, and how long its samples are at most.

    Examples
    --------
    >>> from playhead.fit.bucket import Bucket
    >>> about(Bucket(bound=2.5, input_length=40_000, output_length=30))
    'bucket=2.5 (input=40000 output=30)'
    """
    lengths = f"(input={bucket.input_length} output={bucket.output_length})"
    return f"bucket={shown_bound(bucket.bound)} {lengths}"


def _outcome(said: str | None, record: ProbeRecord | MixRecord) -> str:
    parts = [] if said is None else [said]
    if record.reserved is not None:
        parts.append(f"allocator {shown_amount(record.reserved)} of {shown_amount(record.budget)}")
    parts.append(f"{record.seconds:.1f} s")
    why = f"  {_short(record.reason)}" if record.reason else ""
    return f"  {', '.join(parts)}  {VERDICTS[record.status]}{why}"


def _ends(sizes: Sequence[int]) -> str:
    return f"batch sizes from {max(sizes)} to {min(sizes)}" if sizes else "no size"


def _short(reason: str) -> str:
    return reason if len(reason) <= _MOST_REASON else f"{reason[:_MOST_REASON]}…"
