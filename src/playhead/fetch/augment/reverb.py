"""Reverberation: a room, measured or made up, around a sample."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from lhotse import RecordingSet
from lhotse.augmentation import ReverbWithImpulseResponse
from lhotse.cut import MixedCut, PaddingCut
from lhotse.utils import fastcopy

from playhead.errors import ConfigError
from playhead.fetch.augment.draws import below, happens
from playhead.fetch.augment.rooms import Room
from playhead.fetch.generators import derive
from playhead.fetch.resampling import with_own_kernel
from playhead.formats.rows import resolve_path

if TYPE_CHECKING:
    from lhotse import Recording
    from lhotse.cut import Cut

    from playhead.fetch.augment.settings import Augmentation

__all__ = ["open_impulses", "reverberate"]


def reverberate(cut: Any, augmentation: Augmentation, key: int) -> Cut:
    """Put a cut into a room, with the probability of the options.

    The response is one of the recordings of `rir_path`, of which the first channel counts, or a
    synthetic one. A mix of several tracks is one sound in one room. The energy stays as it was.
    """
    if isinstance(cut, PaddingCut) or not happens(key, "reverb", augmentation.rir_prob):
        return cut
    rate = cut.sampling_rate
    if augmentation.rir_path is None:
        transform = ReverbWithImpulseResponse(rir_generator=Room(derive(key, "room"), rate))
    else:
        impulses = open_impulses(augmentation.rir_path)
        impulse: Any = impulses[below(key, "impulse response", len(impulses))]
        if impulse.sampling_rate != rate:
            impulse = with_own_kernel(impulse.resample(rate))
        transform = ReverbWithImpulseResponse(rir=impulse)
    if isinstance(cut, MixedCut):
        return fastcopy(cut, transforms=[*(cut.transforms or ()), transform])
    transforms = [*(cut.recording.transforms or ()), transform]
    recording = fastcopy(cut.recording, transforms=transforms)
    return fastcopy(cut, recording=recording, features=None)


@functools.lru_cache(maxsize=4)
def open_impulses(path: str) -> list[Recording]:
    """Read a manifest of impulse responses, once a process.

    Relative paths are looked for beside the manifest first.

    Raises
    ------
    ConfigError
        If it is no manifest of recordings, or has none.
    """
    try:
        found = RecordingSet.from_file(path)
        impulses = list(found)
        for impulse in impulses:
            _resolve(impulse, os.path.dirname(path))  # noqa: PTH120 - a text, as in manifests
    except Exception as error:
        raise ConfigError(
            f"`rir_path` cannot be read: {type(error).__name__}: {str(error).splitlines()[:1]}",
            where=path,
            fix="Give a manifest of recordings, as Lhotse's RecordingSet.to_file writes them",
        ) from error
    if not impulses:
        raise ConfigError(
            "`rir_path` has no recordings", where=path, fix="Add some, or write rir_path: null"
        )
    return impulses


def _resolve(impulse: Any, folder: str) -> None:
    for source in impulse.sources:
        if source.type == "file":
            source.source = resolve_path(str(source.source), folder)
