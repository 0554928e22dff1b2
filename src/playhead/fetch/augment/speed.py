"""Speed: the plan draws a factor for each sample, here the sample gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lhotse.cut import Cut

__all__ = ["NORMAL", "change_speed"]

NORMAL = 1000
"""The speed, in thousandths, that changes nothing."""


def change_speed(cut: Any, speed: int, whole_us: int) -> Cut:
    """Play a cut faster or slower, with its pitch; supervisions move along.

    Custom recordings stay as they are.

    Parameters
    ----------
    cut
        The cut.
    speed
        In thousandths: 900 gives a cut that is longer by a ninth.
    whole_us
        Length of the row before it was resampled (µs): the plan knows that one, and what rounding
        to samples twice adds to it is cut off.
    """
    if speed == NORMAL:
        return cut
    from playhead.fetch.augment.recordings import with_mix_transforms  # noqa: PLC0415 - Lhotse, 2 s

    faster = with_mix_transforms(cut.perturb_speed(speed / NORMAL, affix_id=False), cut)
    rate = cut.sampling_rate
    promised_us = -(-whole_us * NORMAL // speed)
    most = (2 * promised_us * rate + 1_000_000) // 2_000_000
    if faster.num_samples <= most:
        return faster
    return with_mix_transforms(faster.truncate(duration=most / rate, preserve_id=True), faster)
