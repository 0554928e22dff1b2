"""Options of augmentation that make no sense, found before anything is read."""

from __future__ import annotations

from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import ConfigError, MissingExtraError, NotSupportedError, SourceNotFoundError
from playhead.paths import scheme

if TYPE_CHECKING:
    from playhead.fetch.augment.settings import Augmentation

__all__ = ["CODECS", "check"]

CODECS = {
    "opus": (8000, 12000, 16000, 24000, 48000),
    "mp3": (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000),
    "vorbis": (),
    "gsm": (),
}
"""Name of each codec to the rates (Hz) that it takes; any if none is listed."""


def check(augmentation: Augmentation, sample_rate: int) -> None:
    """Refuse what makes no sense; only what is switched on is looked at.

    Parameters
    ----------
    augmentation
        The options.
    sample_rate
        What all audio is resampled to, Hz.

    Raises
    ------
    ConfigError
        It names the option and says what to write.
    SourceNotFoundError
        If the impulse responses do not exist.
    MissingExtraError
        If a package is needed that is not installed.
    """
    if augmentation.noise_path is not None:
        _probability(augmentation, "noise_mix_prob")
        _interval(augmentation, "noise_snr", "dB")
    _check_lengths(augmentation)
    if augmentation.concatenate_samples:
        _check_concatenation(augmentation)
    if augmentation.lowpass_enabled:
        _probability(augmentation, "lowpass_prob")
        _interval(augmentation, "lowpass_frequencies_interval", "Hz", 1.0, sample_rate / 2)
    if augmentation.clipping_enabled:
        _probability(augmentation, "clipping_prob")
        _probability(augmentation, "clipping_prob_hard")
        _interval(augmentation, "clipping_gain_db", "dB")
        oversampling = augmentation.clipping_oversampling
        if oversampling is not None and oversampling < 1:
            raise _refused("clipping_oversampling", oversampling, "a whole number from 1, or null")
    if augmentation.rir_enabled:
        _probability(augmentation, "rir_prob")
        _check_impulses(augmentation)
    if augmentation.compression_enabled:
        _check_compression(augmentation, sample_rate)


def _check_lengths(augmentation: Augmentation) -> None:
    for name in ("truncate_duration", "pad_min_duration"):
        seconds = getattr(augmentation, name)
        # Everything is counted in microseconds.
        if seconds is not None and not (isfinite(seconds) and seconds >= 1e-6):
            raise _refused(name, seconds, "seconds above 0, or null")
    for name in ("cut_into_windows_duration", "cut_into_windows_hop"):
        seconds = getattr(augmentation, name)
        if seconds is not None and not (isfinite(seconds) and seconds >= 0.01):
            raise _refused(name, seconds, "seconds from 0.01, or null")


def _check_concatenation(augmentation: Augmentation) -> None:
    gap, factor = augmentation.concatenate_gap_seconds, augmentation.concatenate_duration_factor
    if not (isfinite(gap) and gap >= 0):
        raise _refused("concatenate_gap_seconds", gap, "seconds from 0")
    if not (isfinite(factor) and factor > 0):
        raise _refused("concatenate_duration_factor", factor, "a factor above 0, such as 1.0")
    target = augmentation.db_norm
    if target is None:
        return
    if not isfinite(target):
        raise _refused("db_norm", target, "LUFS, such as -25, or null")
    if find_spec("pyloudnorm") is None:
        raise MissingExtraError(
            f"`db_norm` is {target} and `concatenate_samples` is on, which needs pyloudnorm",
            fix="Run `pip install playhead[augment]`, or write db_norm: null to leave the loudness"
            " as it is",
        )


def _check_impulses(augmentation: Augmentation) -> None:
    path = augmentation.rir_path
    if path is None:
        return
    if not isinstance(path, str):
        raise _refused("rir_path", path, "the path of a manifest of recordings, or null")
    if scheme(path):
        raise NotSupportedError(
            "`rir_path` is on an object store, which is not supported yet",
            where=path,
            fix="Copy the impulse responses to a disk",
        )
    if not Path(path).is_file():
        raise SourceNotFoundError(
            "`rir_path` does not exist",
            where=path,
            fix="Correct it, or write null for synthetic rooms",
        )


def _check_compression(augmentation: Augmentation, sample_rate: int) -> None:
    _probability(augmentation, "compression_prob")
    _interval(augmentation, "compression_level_interval", "", 0.0, 1.0)
    codecs, weights = augmentation.compression_codecs, augmentation.compression_codec_weights
    known = ", ".join(CODECS)
    if not codecs or len(set(codecs)) < len(codecs) or not CODECS.keys() >= set(codecs):
        raise _refused("compression_codecs", list(codecs), f"a list of some of {known}, each once")
    for codec in codecs:
        if CODECS[codec] and sample_rate not in CODECS[codec]:
            rates = ", ".join(map(str, CODECS[codec]))
            raise ConfigError(
                f"`compression_codecs` has {codec}, which cannot code {sample_rate} Hz",
                fix=f"Set sample_rate to one of {rates}, or leave {codec} out",
            )
    if weights is None:
        return
    if len(weights) != len(codecs):
        raise ConfigError(
            f"`compression_codec_weights` has {len(weights)} weights for {len(codecs)} codecs",
            fix="Write one weight for each of compression_codecs, or null",
        )
    if not all(isfinite(weight) and weight >= 0 for weight in weights) or sum(weights) <= 0:
        raise _refused(
            "compression_codec_weights", list(weights), "numbers from 0 that are not all 0"
        )


def _probability(augmentation: Augmentation, name: str) -> None:
    value = getattr(augmentation, name)
    if not 0 <= value <= 1:
        raise _refused(name, value, "a probability from 0 to 1")


def _interval(
    augmentation: Augmentation,
    name: str,
    unit: str,
    least: float = float("-inf"),
    most: float = float("inf"),
) -> None:
    bounds = getattr(augmentation, name)
    if len(bounds) == 2 and all(map(isfinite, bounds)):
        low, high = bounds
        if least <= low <= high <= most:
            return
    wanted = f"two numbers of {unit}, the lower first" if unit else "two numbers, the lower first"
    if isfinite(most):
        wanted += f", from {least:g} to {most:g}"
    raise _refused(name, list(bounds), wanted)


def _refused(name: str, value: object, wanted: str) -> ConfigError:
    return ConfigError(f"`{name}` is {value!r}", fix=f"Write {wanted}")
