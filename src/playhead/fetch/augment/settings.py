"""What is done to the audio of samples: the options of augmentation, checked."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from playhead.fetch.augment.checks import check

if TYPE_CHECKING:
    from playhead.config import Options

__all__ = ["Augmentation"]

_SWITCHES = (
    "noise_path",
    "perturb_speed",
    "truncate_duration",
    "cut_into_windows_duration",
    "pad_min_duration",
    "concatenate_samples",
    "lowpass_enabled",
    "clipping_enabled",
    "rir_enabled",
    "compression_enabled",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Augmentation:
    """All that happens to samples between their files and the dataset; names and defaults NeMo's.

    The order is that of the fields: noise, speed, truncation, windows, padding; then, batch by
    batch, concatenation, loudness, low-pass filter, clipping, reverberation, compression. What
    changes the length of a sample (speed, truncation, windows, padding) is decided by the plan.
    """

    noise_path: Any = None
    """Noise to mix in: a NeMo manifest, cuts, a YAML blend, or config keys; none if None."""
    noise_snr: tuple[float, ...] = (10.0, 20.0)
    """Range of the signal-to-noise ratio, dB."""
    noise_mix_prob: float = 0.5
    """Probability of mixing noise in."""
    perturb_speed: bool = False
    """Change the speed by 0.9 or 1.1."""
    truncate_duration: float | None = None
    """Cut samples to at most so many seconds."""
    cut_into_windows_duration: float | None = None
    """Split samples into windows of so many seconds."""
    cut_into_windows_hop: float | None = None
    """Seconds from window to window; the window's length if None."""
    keep_excessive_supervisions: bool = True
    """Keep supervisions that truncation or a window cuts through."""
    pad_min_duration: float | None = None
    """Pad samples to at least so many seconds."""
    pad_direction: Literal["left", "right", "both", "random"] = "right"
    """Where padding goes."""
    concatenate_samples: bool = False
    """Join short samples of a batch."""
    concatenate_gap_seconds: float = 0.1
    """Silence between joined samples, seconds."""
    concatenate_duration_factor: float = 1.0
    """Longest joined sample, as a multiple of the longest of the batch."""
    concatenate_merge_supervisions: bool = True
    """Give a joined sample one supervision with all texts."""
    db_norm: float | None = -25.0
    """Loudness of the samples where they are joined, LUFS; None leaves them as they are."""
    lowpass_enabled: bool = False
    """Filter high frequencies out."""
    lowpass_frequencies_interval: tuple[float, ...] = (3500.0, 8000.0)
    """Range of the cut-off frequency, Hz; its logarithm is drawn evenly."""
    lowpass_prob: float = 0.5
    """Probability of the low-pass filter."""
    clipping_enabled: bool = False
    """Clip samples."""
    clipping_gain_db: tuple[float, ...] = (0.0, 24.0)
    """Range of the gain before clipping, dB."""
    clipping_normalize: bool = True
    """Bring the peak to full scale before the gain, and back afterwards."""
    clipping_oversampling: int | None = 2
    """Factor of oversampling while clipping; None is without."""
    clipping_prob: float = 0.5
    """Probability of clipping."""
    clipping_prob_hard: float = 0.5
    """Probability that clipping is hard."""
    rir_enabled: bool = False
    """Add reverberation."""
    rir_path: Any = None
    """Manifest of recordings of impulse responses; synthetic rooms if None."""
    rir_prob: float = 0.5
    """Probability of reverberation."""
    compression_enabled: bool = False
    """Code samples with a lossy codec and back."""
    compression_prob: float = 0.5
    """Probability of compression."""
    compression_level_interval: tuple[float, ...] = (0.8, 0.99)
    """Range of the level of compression, 0 best to 1 worst."""
    compression_codecs: tuple[str, ...] = ("opus",)
    """Codecs to choose from: opus, mp3, vorbis, gsm."""
    compression_codec_weights: tuple[float, ...] | None = None
    """Weights of the codecs; equal if None."""
    compression_enable_for_custom_fields: bool = False
    """Compress custom recordings too."""

    @classmethod
    def from_options(cls, options: Options) -> Augmentation | None:
        """Take the options of augmentation out of a section's; None where nothing is switched on.

        Raises
        ------
        ConfigError
            If a value of what is switched on makes no sense; it names the option.
        SourceNotFoundError
            If the impulse responses do not exist.
        MissingExtraError
            If a package is needed that is not installed.
        """
        names = [item.name for item in fields(cls)]
        found = cls(**{name: getattr(options, name) for name in names})
        if not any(is_on(getattr(found, name)) for name in _SWITCHES):
            return None
        check(found, options.sample_rate)
        return found

    @property
    def only_stretches(self) -> bool:
        """Whether nothing else is done than to take stretches: that needs no Lhotse."""
        others = (name for name in _SWITCHES if not name.startswith(("truncate", "cut_into")))
        return not any(is_on(getattr(self, name)) for name in others)

    @property
    def is_batchwise(self) -> bool:
        """Whether something is done after the samples of a batch are together."""
        return (
            self.concatenate_samples
            or self.lowpass_enabled
            or self.clipping_enabled
            or self.rir_enabled
            or self.compression_enabled
        )


def is_on(value: Any) -> bool:
    """Whether a switch is on: neither unset nor false."""
    return value is not None and value is not False
