"""What is done once the samples of a batch are together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.fetch.augment.clipping import clip
from playhead.fetch.augment.compression import compress
from playhead.fetch.augment.concatenate import Joined, join_cuts, merge_texts
from playhead.fetch.augment.loudness import normalize_loudness
from playhead.fetch.augment.lowpass import filter_low
from playhead.fetch.augment.reverb import reverberate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lhotse.cut import Cut

    from playhead.fetch.augment.settings import Augmentation

__all__ = ["after"]


def after(cuts: Sequence[Cut], keys: Sequence[int], augmentation: Augmentation) -> list[Joined]:
    """Join cuts, even out their loudness, and treat each as its own key says.

    Parameters
    ----------
    cuts
        The cuts of a batch, prepared one by one.
    keys
        The keys of their samples; of joined ones the first one's counts.
    augmentation
        What to do.

    Returns
    -------
    list[Joined]
        The cuts in their order, or longest first where samples are joined.
    """
    joined = [Joined(cut, (place,)) for place, cut in enumerate(cuts)]
    if augmentation.concatenate_samples:
        joined = join_cuts(
            cuts,
            keys,
            gap=augmentation.concatenate_gap_seconds,
            duration_factor=augmentation.concatenate_duration_factor,
        )
    return [
        Joined(_treated(cut, keys[members[0]], augmentation), members) for cut, members in joined
    ]


def _treated(cut: Cut, key: int, augmentation: Augmentation) -> Cut:
    if augmentation.concatenate_samples:
        if augmentation.db_norm is not None:
            cut = normalize_loudness(cut, augmentation.db_norm)
        if augmentation.concatenate_merge_supervisions:
            cut = merge_texts(cut)
    if augmentation.lowpass_enabled:
        cut = filter_low(cut, augmentation, key)
    if augmentation.clipping_enabled:
        cut = clip(cut, augmentation, key)
    if augmentation.rir_enabled:
        cut = reverberate(cut, augmentation, key)
    if augmentation.compression_enabled:
        cut = compress(cut, augmentation, key)
    return cut
