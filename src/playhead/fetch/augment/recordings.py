"""Changing the recordings of a cut, of one track or many, so that no earlier change is lost.

Lhotse's mixed cuts apply most changes track by track, and forget what was to be done to the mix;
padding between tracks knows some changes not at all. Here a change is a function of a recording,
and goes where it keeps its place in the order.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

import lhotse.utils
import numpy as np
import soundfile as sf
from lhotse import Recording
from lhotse.augmentation import AudioTransform
from lhotse.cut import MixedCut, PaddingCut
from lhotse.utils import fastcopy

from playhead.fetch.generators import derive
from playhead.fetch.resampling import with_own_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from lhotse.cut import Cut
    from numpy.typing import NDArray

__all__ = ["SameLength", "change_recordings", "keyed_ids", "silence", "with_mix_transforms"]

_UTILS: Any = lhotse.utils


@dataclass
class SameLength(AudioTransform):
    """Several transforms one after another, whose result is as long as what they began with.

    A recording sees to that itself; a mix does not.
    """

    transforms: list[Any]
    """Lhotse's transforms, in order."""

    def __call__(self, samples: NDArray[np.float32], sampling_rate: int) -> NDArray[np.float32]:
        """Transform audio of shape (channels, samples)."""
        length = samples.shape[1]
        for transform in self.transforms:
            samples = transform(samples, sampling_rate)
        missing = length - samples.shape[1]
        if missing > 0:
            return np.pad(samples, ((0, 0), (0, missing)))
        return samples[:, :length]

    def reverse_timestamps(
        self,
        offset: float,
        duration: float | None,
        sampling_rate: int | None,  # noqa: ARG002 - Lhotse's signature
    ) -> tuple[float, float | None]:
        """Return both times as they are."""
        return offset, duration


def change_recordings(cut: Any, change: Callable[[Recording], Recording]) -> Cut:
    """Change the recording of a cut, or of every track that has one; padding stays silent.

    A mix to which something was done as a whole is changed as a whole, after that.

    Parameters
    ----------
    cut
        The cut; it is not changed itself.
    change
        Gives a recording with further transforms, of the same rate and length.
    """
    if isinstance(cut, PaddingCut):
        return cut
    if not isinstance(cut, MixedCut):
        return fastcopy(cut, recording=with_own_kernel(change(cut.recording)), features=None)
    if cut.transforms:
        more = with_own_kernel(change(_stand_in(cut))).transforms or []
        return fastcopy(cut, transforms=[*cut.transforms, SameLength(more)]) if more else cut
    return fastcopy(
        cut,
        tracks=[fastcopy(track, cut=change_recordings(track.cut, change)) for track in cut.tracks],
    )


def silence(cut: Any, num_samples: int) -> Cut:
    """Make a cut of silence with the id, the rate, the channels and the custom fields of another.

    Parameters
    ----------
    cut
        The other.
    num_samples
        How long it is.
    """
    buffer = BytesIO()
    zeros = np.zeros((num_samples, cut.num_channels), np.int16)
    sf.write(buffer, zeros, cut.sampling_rate, format="WAV")
    silent: Any = Recording.from_bytes(buffer.getvalue(), f"{cut.id}-silence").to_cut()
    return fastcopy(silent, id=cut.id, custom=dict(cut.custom or {}))


def _stand_in(mix: Any) -> Recording:
    """A recording that shows what a change adds to it."""
    return Recording(
        id=mix.id,
        sources=[],
        sampling_rate=mix.sampling_rate,
        num_samples=mix.num_samples,
        duration=mix.duration,
        channel_ids=list(range(mix.num_channels)),
    )


def with_mix_transforms(changed: Any, before: Cut) -> Cut:
    """Give a changed cut what was to be done to the mix that it was, if Lhotse forgot it."""
    transforms = before.transforms if isinstance(before, MixedCut) else None
    if not transforms or isinstance(changed, PaddingCut):
        return changed
    if isinstance(changed, MixedCut):
        return fastcopy(changed, transforms=list(changed.transforms or transforms))
    recording = changed.recording
    return fastcopy(
        changed,
        recording=fastcopy(recording, transforms=[*(recording.transforms or ()), *transforms]),
    )


@contextmanager
def keyed_ids(key: int) -> Generator[None]:
    """Let the ids that Lhotse makes up depend on a sample's key alone."""
    source = Random(derive(key, "ids"))  # noqa: S311 - ids of cuts, not secrets
    kept = _UTILS._lhotse_uuid  # noqa: SLF001 - where `lhotse.utils.fix_random_seed` puts it
    _UTILS._lhotse_uuid = lambda: UUID(int=source.getrandbits(128), version=4)  # noqa: SLF001
    try:
        yield
    finally:
        _UTILS._lhotse_uuid = kept  # noqa: SLF001
