"""Smaller batches, where a step ran out of memory: what to write into the config."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.plan.effort import Effort

if TYPE_CHECKING:
    from playhead.plan import Batching
    from playhead.plan.stats import Costly

__all__ = ["lowered_limit", "lowered_size", "options_of"]

# A profile is nearly right; where it is not, finding out by how much takes too many steps.
_FIRST_CUT = 0.1
_FIRST_CUTS = 5
_LARGEST_CUT = 0.5
_US = 1_000_000


def lowered_size(batching: Batching, number: int, size: int, times: int) -> Batching | None:
    """Lower the size of a bin, and those of all bins that take more than it.

    Parameters
    ----------
    batching
        Batches of fixed sizes.
    number
        The bin.
    size
        Samples of its batch that did not fit.
    times
        How often it was lowered before: five times by a tenth, then by a fifth and more.

    Returns
    -------
    Batching | None
        None where a batch of one did not fit.

    Examples
    --------
    >>> from playhead.plan import Batching
    >>> given = Batching(bins_us=(5, 10, 20), bucket_batch_size=(40, 30, 28))
    >>> lowered_size(given, 1, 30, 0).sizes
    (40, 27, 27)
    """
    if size <= 1:
        return None
    most = _less(size, times)
    second = batching.bins_tokens
    sizes = [
        min(old, most) if at >= number and (second is None or second[at] >= second[number]) else old
        for at, old in enumerate(batching.sizes)
    ]
    return replace(batching, bucket_batch_size=tuple(sizes))


def lowered_limit(batching: Batching, failed: Costly, times: int) -> Batching | None:
    """Lower the limit of batches without fixed sizes: in lengths if there is one, else in samples.

    Parameters
    ----------
    batching
        Batches of no fixed sizes.
    failed
        The batch that did not fit.
    times
        How often the limit was lowered before.

    Returns
    -------
    Batching | None
        None where a batch of one did not fit.
    """
    if failed.samples <= 1:
        return None
    limit, unit = batching.limit, Effort.of(batching).limit
    if limit is None or unit is None:
        return replace(batching, batch_size=_less(failed.samples, times))
    # A batch that is short of the limit has to become smaller, too.
    lower = max(1, int(limit * min(1.0, failed.cost / unit) * (1 - _cut(times))))
    name = "batch_tokens" if batching.in_tokens else "batch_duration_us"
    return replace(batching, **{name: lower})


def options_of(before: Batching, after: Batching) -> dict[str, Any]:
    """Return the options that differ, as a config has them."""
    options: dict[str, Any] = {}
    if before.sizes != after.sizes:
        options["bucket_batch_size"] = list(after.sizes)
    if before.batch_duration_us != after.batch_duration_us:
        options["batch_duration"] = (after.batch_duration_us or 0) / _US
    for name in ("batch_tokens", "batch_size"):
        if getattr(before, name) != getattr(after, name):
            options[name] = getattr(after, name)
    return options


def _cut(times: int) -> float:
    return min(_FIRST_CUT * 2 ** max(0, times + 1 - _FIRST_CUTS), _LARGEST_CUT)


def _less(size: int, times: int) -> int:
    return max(1, min(size - 1, int(size * (1 - _cut(times)))))
