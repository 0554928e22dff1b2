"""Loudness: every track to the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from lhotse.augmentation import LoudnessNormalization as LhotseLoudnessNormalization
from lhotse.utils import fastcopy

from playhead.fetch.augment.recordings import change_recordings

if TYPE_CHECKING:
    from lhotse import Recording
    from lhotse.cut import Cut
    from numpy.typing import NDArray

__all__ = ["LoudnessNormalization", "normalize_loudness"]


@dataclass
class LoudnessNormalization(LhotseLoudnessNormalization):
    """Lhotse's transform, which makes NaNs of silence; written to manifests as Lhotse's own."""

    def __call__(self, samples: Any, sampling_rate: int) -> NDArray[np.float32]:
        """Bring audio of shape (channels, samples) to the loudness; silence stays silent."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            normal = super().__call__(samples, sampling_rate)
        return normal if np.isfinite(normal).all() else samples


def normalize_loudness(cut: Cut, target: float) -> Cut:
    """Bring every track of a cut to a loudness in LUFS, before they are mixed."""

    def change(recording: Recording) -> Recording:
        transforms = [*(recording.transforms or ()), LoudnessNormalization(target)]
        return fastcopy(recording, transforms=transforms)

    return change_recordings(cut, change)
