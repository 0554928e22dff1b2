"""What is done once the samples of a batch are together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lhotse.cut import Cut

from playhead.fetch.augment.clipping import clip
from playhead.fetch.augment.compression import compress
from playhead.fetch.augment.concatenate import Joined, join_cuts, merge_texts
from playhead.fetch.augment.loudness import normalize_loudness
from playhead.fetch.augment.lowpass import filter_low
from playhead.fetch.augment.reverb import reverberate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fetch.augment.settings import Augmentation

__all__ = ["after"]


def after(cuts: Sequence[Any], keys: Sequence[int], augmentation: Augmentation) -> list[Joined]:
    """Join cuts, even out their loudness, and treat each as its own key says.

    Parameters
    ----------
    cuts
        The cuts of a batch, prepared one by one. What is no cut among them stays as it is; where
        cuts are joined, it follows them.
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
        heard = [place for place, cut in enumerate(cuts) if isinstance(cut, Cut)]
        among = join_cuts(
            [cuts[place] for place in heard],
            [keys[place] for place in heard],
            gap=augmentation.concatenate_gap_seconds,
            duration_factor=augmentation.concatenate_duration_factor,
        )
        written = [one for one in joined if not isinstance(one.cut, Cut)]
        joined = [Joined(cut, tuple(heard[at] for at in members)) for cut, members in among]
        joined += written
    return [
        Joined(
            _treated(cut, keys[members[0]], augmentation) if isinstance(cut, Cut) else cut, members
        )
        for cut, members in joined
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
