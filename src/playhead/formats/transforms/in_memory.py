"""Recordings that Lhotse reads from memory: silence, and samples that are there already."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import soundfile

if TYPE_CHECKING:
    from lhotse import Recording
    from numpy.typing import NDArray

__all__ = ["recorded", "resampled", "silence"]


def silence(name: str, num_samples: int, rate: int) -> Recording:
    """Make a recording of one channel in which nothing is heard."""
    return _recording(name, np.zeros((1, num_samples), np.int16), rate, [0], "PCM_16")


def recorded(name: str, samples: NDArray[np.float32], rate: int, channels: list[int]) -> Recording:
    """Make a recording of samples of shape (channels, samples), without any loss."""
    return _recording(name, samples, rate, channels, "FLOAT")


def resampled(recording: Recording, rate: int) -> NDArray[np.float32]:
    """Decode a recording at another rate, with the kernel of Lhotse's `Recording.resample`.

    Returns
    -------
    NDArray[np.float32]
        Shape (channels, samples); as many samples as Lhotse says that the resampled recording has.
    """
    import torch  # noqa: PLC0415 - seconds
    from lhotse.augmentation.torchaudio import get_or_create_resampler  # noqa: PLC0415 - same
    from lhotse.utils import compute_num_samples  # noqa: PLC0415 - same

    samples: Any = recording.load_audio()
    if recording.sampling_rate == rate:
        return samples
    kernel: Any = get_or_create_resampler(int(recording.sampling_rate), rate)
    there = kernel(torch.from_numpy(samples)).numpy()
    wanted = compute_num_samples(recording.duration, rate)
    # The kernel rounds up where the count is rounded to the nearest.
    return np.pad(there[:, :wanted], ((0, 0), (0, max(0, wanted - there.shape[1]))))


def _recording(
    name: str, samples: NDArray[Any], rate: int, channels: list[int], encoding: str
) -> Recording:
    from lhotse import Recording  # noqa: PLC0415 - 2 s
    from lhotse.audio import AudioSource  # noqa: PLC0415 - same

    file = BytesIO()
    soundfile.write(file, samples.T, rate, subtype=encoding, format="WAV")
    num_samples = samples.shape[1]
    return Recording(
        id=name,
        sources=[AudioSource(type="memory", channels=channels, source=file.getvalue())],
        sampling_rate=rate,
        num_samples=num_samples,
        duration=num_samples / rate,
    )
