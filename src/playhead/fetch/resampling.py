"""Resampling as Lhotse does it, also where the packages that Lhotse asks for are missing.

Lhotse's `Resample` wants torchaudio or SciPy. With torchaudio it only uses a kernel that is part of
Lhotse itself; without either, the same kernel is used here.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from lhotse.augmentation import Resample as LhotseResample
from lhotse.augmentation.torchaudio import get_or_create_resampler

if TYPE_CHECKING:
    import numpy as np
    from lhotse import Recording
    from lhotse.cut import Cut
    from numpy.typing import NDArray

__all__ = ["Resample", "resample", "resample_cut", "with_own_kernel"]

_LHOTSE_CAN = any(find_spec(name) is not None for name in ("torchaudio", "scipy"))


class Resample(LhotseResample):
    """Lhotse's transform without its need for torchaudio; written to manifests as Lhotse's own."""

    def __call__(self, samples: NDArray[np.float32], *_: Any) -> NDArray[np.float32]:
        """Resample audio of shape (channels, samples)."""
        kernel = get_or_create_resampler(self.source_sampling_rate, self.target_sampling_rate)
        return kernel(torch.from_numpy(samples)).numpy()


def resample(
    samples: NDArray[np.float32], source_rate: int, target_rate: int
) -> NDArray[np.float32]:
    """Resample audio of shape (channels, samples); the rates are in Hz."""
    transform = LhotseResample if _LHOTSE_CAN else Resample
    return transform(source_rate, target_rate)(samples)


def resample_cut(cut: Cut, sample_rate: int) -> Cut:
    """Return a cut that is resampled when it is loaded; itself if it has that rate or no audio."""
    if not cut.has_recording or cut.sampling_rate == sample_rate:
        return cut
    resampled = cut.resample(sample_rate)
    if not _LHOTSE_CAN:
        for part in getattr(resampled, "tracks", None) or [resampled]:
            recording: Any = getattr(getattr(part, "cut", part), "recording", None)
            if recording is not None:
                with_own_kernel(recording)
    return resampled


def with_own_kernel(recording: Recording) -> Recording:
    """Return the recording; where Lhotse cannot resample, its transforms are exchanged for ours."""
    transforms: list[Any] = recording.transforms or []
    for place, transform in enumerate(transforms):
        if type(transform) is LhotseResample and not _LHOTSE_CAN:
            transforms[place] = Resample(
                transform.source_sampling_rate, transform.target_sampling_rate
            )
    return recording
