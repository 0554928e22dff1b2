"""A low-pass filter: down to a lower rate and up again."""

from __future__ import annotations

from math import exp, floor, log
from typing import TYPE_CHECKING

from playhead.fetch.augment.draws import between, happens
from playhead.fetch.augment.recordings import change_recordings

if TYPE_CHECKING:
    from lhotse import Recording
    from lhotse.cut import Cut

    from playhead.fetch.augment.settings import Augmentation

__all__ = ["filter_low", "lower_rate"]

# Two rates without a large common divisor need a kernel of hundreds of megabytes, for each pair.
_COARSEST_STEP = 100


def filter_low(cut: Cut, augmentation: Augmentation, key: int) -> Cut:
    """Take the high frequencies out of a cut, with the probability of the options."""
    if not happens(key, "lowpass", augmentation.lowpass_prob):
        return cut
    low, high = augmentation.lowpass_frequencies_interval
    cutoff = exp(between(key, "lowpass cut-off", (log(low), log(high))))

    def change(recording: Recording) -> Recording:
        rate = recording.sampling_rate
        return recording.resample(lower_rate(cutoff, rate)).resample(rate)

    return change_recordings(cut, change)


def lower_rate(cutoff: float, rate: int) -> int:
    """Find the rate that holds frequencies up to a cut-off: its double, in coarse steps.

    The steps are the largest divisor of `rate` up to 100 Hz, so that the cut-off is met to within
    50 Hz and resampling stays cheap.

    Examples
    --------
    >>> lower_rate(3512.3, 16000), lower_rate(8000, 16000), lower_rate(3512.3, 22050)
    (7000, 16000, 6958)
    """
    step = max(divisor for divisor in range(1, _COARSEST_STEP + 1) if rate % divisor == 0)
    return min(rate, max(1, floor(2 * cutoff / step)) * step)
