"""Clipping, as of a microphone that is shouted at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.fetch.augment.draws import between, happens
from playhead.fetch.augment.recordings import change_recordings

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from playhead.fetch.augment.settings import Augmentation

__all__ = ["clip"]


def clip(cut: Cut, augmentation: Augmentation, key: int) -> Cut:
    """Clip a cut, with the probability, the gain and the hardness of the options."""
    if not happens(key, "clipping", augmentation.clipping_prob):
        return cut
    hard = happens(key, "clipping is hard", augmentation.clipping_prob_hard)
    gain = between(key, "clipping gain", augmentation.clipping_gain_db)
    return change_recordings(
        cut,
        lambda recording: recording.clip_amplitude(
            hard=hard,
            gain_db=gain,
            normalize=augmentation.clipping_normalize,
            oversampling=augmentation.clipping_oversampling,
            affix_id=False,
        ),
    )
