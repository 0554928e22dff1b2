"""Speed: the plan draws a factor for each sample, here the sample gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lhotse.cut import Cut

__all__ = ["NORMAL", "change_speed"]

NORMAL = 1000
"""The speed, in thousandths, that changes nothing."""


def change_speed(cut: Cut, speed: int) -> Cut:
    """Play a cut faster or slower, with its pitch; supervisions move along.

    Custom recordings stay as they are.

    Parameters
    ----------
    cut
        The cut.
    speed
        In thousandths: 900 gives a cut that is longer by a ninth.
    """
    if speed == NORMAL:
        return cut
    from playhead.fetch.augment.recordings import with_mix_transforms  # noqa: PLC0415 - Lhotse, 2 s

    return with_mix_transforms(cut.perturb_speed(speed / NORMAL, affix_id=False), cut)
