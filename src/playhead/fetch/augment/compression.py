"""Lossy codecs: samples are coded and decoded again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lhotse import Recording
from lhotse.cut import MixedCut, PaddingCut
from lhotse.utils import fastcopy

from playhead.fetch.augment.draws import between, happens, pick
from playhead.fetch.augment.recordings import change_recordings
from playhead.fetch.resampling import with_own_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from lhotse.cut import Cut

    from playhead.fetch.augment.settings import Augmentation

__all__ = ["compress"]


def compress(cut: Cut, augmentation: Augmentation, key: int) -> Cut:
    """Code a cut with one of the codecs, with the probability and the level of the options."""
    if not happens(key, "compression", augmentation.compression_prob):
        return cut
    codecs = augmentation.compression_codecs
    weights = augmentation.compression_codec_weights or (1.0,) * len(codecs)
    codec: Any = codecs[pick(key, "compression codec", weights)]
    level = between(key, "compression level", augmentation.compression_level_interval)

    def change(recording: Recording) -> Recording:
        return with_own_kernel(recording.compress(codec, level))

    if augmentation.compression_enable_for_custom_fields:
        cut = _change_custom(cut, change)
    return change_recordings(cut, change)


def _change_custom(cut: Any, change: Callable[[Recording], Recording]) -> Cut:
    if isinstance(cut, PaddingCut):
        return cut
    if isinstance(cut, MixedCut):
        tracks = [fastcopy(track, cut=_change_custom(track.cut, change)) for track in cut.tracks]
        return fastcopy(cut, tracks=tracks)
    if not cut.custom:
        return cut
    custom = {
        name: change(value) if isinstance(value, Recording) else value
        for name, value in cut.custom.items()
    }
    return fastcopy(cut, custom=custom)
