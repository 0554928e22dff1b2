"""Synthetic rooms: impulse responses that are functions of a key.

Lhotse's generator draws from generators that advance, torch's global one among them, and needs
torchaudio. This one follows the same model with hashes for its draws.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.plan.keyed import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Room"]

_SOUND = 340.0  # m/s
_OVERSAMPLING = 8
_HIGHPASS = 80.0  # Hz


@dataclass
class Room:
    """A room, a source and a microphone; gives the impulse response between them.

    The model is that of Luo and Yu's FRA-RIR (arXiv 2208.04101): image sources at random distances,
    denser far away, each weaker by its distance and by its number of reflections, of which each
    takes what Eyring's formula says. Reverberation times are 0.1 to 0.8 s, distances 0.2 to 12 m.
    """

    key: int
    """A 64-bit key: the room is a function of it."""
    rate: int
    """Of the response, Hz."""

    def to_dict(self) -> dict[str, Any]:
        """What makes the same room again."""
        return asdict(self)

    def __call__(self, nsource: int = 1) -> NDArray[np.float32]:
        """Compute the response, shape (1, samples); there is one source."""
        assert nsource == 1
        images = 2 * self.rate
        draws = _units(self.key, 3 + 2 * images)
        time = 0.1 + 0.7 * draws[0]  # for the sound to fall by 60 dB, s
        volume_by_surface = 0.1 + 1.1 * draws[1]  # m
        reach = _SOUND * time
        direct = 0.2 + 11.8 * draws[2]
        absorbed = 1 - np.exp(-0.16 * volume_by_surface / time)
        reflected = np.sqrt(1 - absorbed * absorbed)

        # Distances in units of the direct one; their density grows as the square from 1/16 to 1.
        density = np.linspace(0.25, 1.0, images) ** 2
        chosen = np.searchsorted(np.cumsum(density) / density.sum(), draws[3 : 3 + images])
        ratio = np.linspace(1.0, reach / direct - 1.0, images)[np.minimum(chosen, images - 1)]
        distance = direct * ratio
        most = (np.log10(reach) - np.log10(direct) - 3.0) / np.log10(reflected)
        bounces = (distance / reach) ** 2 * (most - 1.0) + 1.0
        bounces += (4.0 * draws[3 + images :] - 2.0) * ratio**0.2
        strength = reflected ** np.maximum(bounces, 1.0) / distance

        fine = self.rate * _OVERSAMPLING
        length = int(np.ceil(time * self.rate)) + 1
        place = np.ceil(distance * (fine / _SOUND)).astype(np.int64)
        place = np.minimum(place, length * _OVERSAMPLING - 1)
        impulses = np.zeros(length * _OVERSAMPLING)
        impulses += np.bincount(place, strength, minlength=len(impulses))
        impulses[int(np.ceil(direct * fine / _SOUND))] += 1.0 / direct
        return _filtered(impulses, length, self.rate)[None]


def _filtered(impulses: NDArray[np.float64], length: int, rate: int) -> NDArray[np.float32]:
    """Bring impulses down to a rate, without what is below 80 Hz or above half the rate."""
    size = 2 * length
    spectrum = np.fft.rfft(impulses, size * _OVERSAMPLING)[: size // 2 + 1]
    # A Butterworth filter of the second order, bilinear, as a function of the frequency.
    warp = np.tan(np.pi * _HIGHPASS / rate)
    square = np.tan(np.pi * np.minimum(np.arange(size // 2 + 1) / size, 0.4999)) / warp
    s = 1j * square
    spectrum *= s * s / (s * s + np.sqrt(2.0) * s + 1.0)
    return np.fft.irfft(spectrum, size)[:length].astype(np.float32)


def _units(key: int, count: int) -> NDArray[np.float64]:
    """Draw from 0 to 1, shape (count,)."""
    words = stream(key, np.arange(count)) >> np.uint64(11)
    return words.astype(np.float64) * 2.0**-53
