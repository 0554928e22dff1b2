"""The search that NeMo's OOMptimizer does, for counting its probes beside ours.

Buckets from the longest to the shortest; the first begins with `start`, every other with twice the
answer before it. Double until it fails, halve until it fits, then bisect until the relative gap is
within the threshold or the sizes are neighbours. Whether to stop is asked before the newest result
counts, so that every bucket has one probe whose result nobody uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def original_search(
    buckets: int,
    fits: Callable[[int, int], bool],
    *,
    start: int = 32,
    threshold: float = 0.05,
    largest: int = 4096,
) -> tuple[list[int], int]:
    """Return the size of each bucket and the number of probes.

    Parameters
    ----------
    buckets
        How many buckets there are, shortest first.
    fits
        Whether a batch of a bucket (first) and of a size (second) fits.
    start, threshold
        Its options.
    largest
        Where to stop doubling; the original does not stop, and so never ends for a tiny model.
    """
    sizes, probes = [0] * buckets, 0
    for bucket in reversed(range(buckets)):
        current, good, bad = start, None, None
        while True:
            stop = (good is not None and bad is not None) and (
                (bad - good) / bad <= threshold or bad - good <= 1
            )
            probes += 1
            fitted = fits(bucket, current)
            if stop:
                break
            if fitted:
                good = current
                if current >= largest:
                    break
            else:
                bad = current
            if good is None:
                if current <= 1:
                    break
                current = round(current / 2)
            elif bad is None:
                current *= 2
            else:
                current = round((good + bad) / 2)
        sizes[bucket] = good or 0
        start = max(1, 2 * (good or 0))
    return sizes, probes
