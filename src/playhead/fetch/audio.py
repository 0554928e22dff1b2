"""Decoding audio to exactly the samples that Lhotse would give, without its detours."""

from __future__ import annotations

import errno
import math
import os
import stat
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import soundfile as sf

from playhead.errors import AudioError
from playhead.fetch.missing_audio import missing
from playhead.paths import scheme
from playhead.storage import local

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.formats.example import Audio, Place

__all__ = ["Header", "count_frames", "count_samples", "decode", "decode_into", "read_header"]

# Lhotse reads a recording to its end where that is so near: it may hold a few samples more.
_NEAR_SECONDS = 1e-3


class Header(NamedTuple):
    """What an audio file says of itself."""

    rate: int
    """Hz."""
    frames: int
    """Samples of each channel."""
    channels: int
    """Number of channels."""

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.frames / self.rate


class _Stretch(NamedTuple):
    samples: NDArray[np.float32]
    """Shape (channels, samples), at the file's rate."""
    header: Header
    """The file's."""
    is_short: bool
    """Whether fewer samples came than the header promised."""


def count_frames(seconds: float, rate: int) -> int:
    """Count the samples in a stretch of time as Lhotse does: rounded, halves up.

    Parameters
    ----------
    seconds
        Length, not negative.
    rate
        Samples a second.

    Examples
    --------
    >>> count_frames(0.1, 44100), count_frames(2.5 / 8000, 8000)
    (4410, 3)
    """
    return math.floor(round(seconds * rate, 8) + 0.5)


def read_header(audio: Audio, place: Place) -> Header:
    """Read a file's header.

    Raises
    ------
    AudioError
        If it is not audio that libsndfile knows.
    """
    with _open(audio.source, audio, place) as file:
        return Header(file.samplerate, file.frames, file.channels)


def count_samples(audio: Audio, sample_rate: int | None, place: Place) -> tuple[int, int]:
    """Count the samples that `decode` gives; opens the file only if it must.

    Parameters
    ----------
    audio
        What to decode.
    sample_rate
        The rate to resample to, in Hz; None keeps the file's.
    place
        For messages.

    Returns
    -------
    samples
        How many.
    rate
        Their rate in Hz.

    Raises
    ------
    AudioError
        If the file's header is needed and cannot be read.
    """
    if audio.duration is not None and sample_rate is not None:
        return count_frames(audio.duration, sample_rate), sample_rate
    header = read_header(audio, place)
    rate = sample_rate or header.rate
    return _expected(audio, header, rate), rate


def decode(audio: Audio, sample_rate: int | None, place: Place) -> tuple[NDArray[np.float32], int]:
    """Decode a stretch of audio.

    A stretch that ends after its file is filled up by mirroring, as far as Lhotse tolerates it
    (half a second, or what its settings say).

    Parameters
    ----------
    audio
        What to decode.
    sample_rate
        The rate to resample to, in Hz; None keeps the file's.
    place
        For messages.

    Returns
    -------
    samples
        Shape (channels, samples), from -1 to 1.
    rate
        In Hz.

    Raises
    ------
    AudioError
        If it cannot be decoded or is too short.
    """
    stretch = _read(audio, place)
    rate = sample_rate or stretch.header.rate
    samples = _resampled(stretch, rate)
    return _fitted(samples, _expected(audio, stretch.header, rate), rate, audio, place), rate


def decode_into(row: NDArray[np.float32], audio: Audio, sample_rate: int, place: Place) -> None:
    """Decode a stretch of one channel into memory that is there already.

    Parameters
    ----------
    row
        Shape (samples,) as `count_samples` says, contiguous; is overwritten.
    audio
        What to decode.
    sample_rate
        The rate of `row` in Hz.
    place
        For messages.

    Raises
    ------
    AudioError
        If it cannot be decoded, is too short, or has several channels.
    """
    stretch = _read(audio, place, row, sample_rate)
    if stretch.samples.shape[0] != 1:
        raise AudioError(
            f"the audio has {stretch.samples.shape[0]} channels and one is wanted",
            where=_where(audio, place),
            fix="Choose one with channel_selector, for instance channel_selector: 0",
        )
    samples = _fitted(_resampled(stretch, sample_rate), len(row), sample_rate, audio, place)
    if not np.may_share_memory(samples, row):
        row[:] = samples[0]


def _read(
    audio: Audio, place: Place, row: NDArray[np.float32] | None = None, row_rate: int = 0
) -> _Stretch:
    """Read a stretch; straight into `row` if it has one channel and that rate."""
    if isinstance(audio.source, bytes):
        return _read_from(audio.source, audio, place, row, row_rate)
    try:
        stretch = _read_from(audio.source, audio, place, row, row_rate)
        if not stretch.is_short:
            return stretch
    except AudioError:
        _check_file(audio.source, audio, place)
    # libsndfile takes an error of the disk for the end of the file. Reading the whole file tells
    # one from the other: that is retried, and raises what the disk says.
    data = local.read_ranges(audio.source, [0], [local.size(audio.source)])[0]
    return _read_from(data, audio, place, row, row_rate)


def _read_from(
    source: str | bytes,
    audio: Audio,
    place: Place,
    row: NDArray[np.float32] | None,
    row_rate: int,
) -> _Stretch:
    with _open(source, audio, place) as file:
        header = Header(file.samplerate, file.frames, file.channels)
        start = count_frames(audio.start, header.rate)
        left = header.frames - start
        if left < 0:
            raise AudioError(
                f"the sample begins at {audio.start} s of audio of {header.seconds:.3f} s",
                where=_where(audio, place),
                fix="Correct the row's offset",
            )
        count = left
        if audio.duration is not None and abs(audio.duration - header.seconds) > _NEAR_SECONDS:
            count = min(count_frames(audio.duration, header.rate), left)
        try:
            if start:
                file.seek(start)
            samples: Any
            if row is not None and header.rate == row_rate and header.channels == 1:
                count = min(count, len(row))
                samples = file.read(dtype="float32", out=row[:count])[None]
            else:
                samples = file.read(count, "float32", always_2d=True).T
        except (RuntimeError, ValueError) as error:
            raise _undecodable(error, audio, place) from error
    is_short = samples.shape[1] < count
    if audio.channel is not None and (header.channels > 1 or audio.channel != 0):
        samples = _one_channel(samples, audio.channel, audio, place)
    return _Stretch(samples, header, is_short)


def _open(source: str | bytes, audio: Audio, place: Place) -> sf.SoundFile:
    try:
        if isinstance(source, bytes):
            return sf.SoundFile(BytesIO(source))
        if "\0" in source:
            # libsndfile would open what stands before it.
            _check_file(source, audio, place)
        return sf.SoundFile(source)
    except (RuntimeError, TypeError, UnicodeError) as error:
        if isinstance(source, str):
            _check_file(source, audio, place)
        raise _undecodable(error, audio, place) from error


def _check_file(path: str, audio: Audio, place: Place) -> None:
    """Refuse a path behind which there is no file that can be read; errors of a disk are not that.

    Raises
    ------
    SourceNotFoundError
        If nothing is there; what URLs name was read before, if it is there.
    AudioError
        If it is a folder, no path at all, or may not be read.
    """
    where = _where(audio, place)
    if scheme(path):
        raise missing(path, place)
    said = ""
    try:
        is_file = stat.S_ISREG(Path(path).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise missing(path, place) from None
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES):
            return
        said = f"the audio file cannot be opened: {error.strerror}"
    except ValueError as error:
        said = f"the path of the audio cannot be one: {error}"
    else:
        if not is_file:
            said = "the path of the audio is a folder or a device, not a file"
        elif not os.access(path, os.R_OK):
            said = "the audio file may not be read"
    if said:
        raise AudioError(said, where=where, fix="Correct the row's path, or the rights of the file")


def _one_channel(
    samples: NDArray[np.float32], channel: int, audio: Audio, place: Place
) -> NDArray[np.float32]:
    if not 0 <= channel < len(samples):
        raise AudioError(
            f"the audio has {len(samples)} channels and channel {channel} is wanted",
            where=_where(audio, place),
            fix="Count channels from 0 in channel_selector",
        )
    return samples[channel : channel + 1]


def _resampled(stretch: _Stretch, rate: int) -> NDArray[np.float32]:
    if stretch.header.rate == rate or stretch.samples.shape[1] == 0:
        return stretch.samples
    from playhead.fetch.resampling import resample  # noqa: PLC0415 - imports Lhotse, 2 s

    return resample(stretch.samples, stretch.header.rate, rate)


def _expected(audio: Audio, header: Header, rate: int) -> int:
    seconds = audio.duration
    return count_frames(header.seconds - audio.start if seconds is None else seconds, rate)


def _fitted(
    samples: NDArray[np.float32], expected: int, rate: int, audio: Audio, place: Place
) -> NDArray[np.float32]:
    """Cut what resampling and a near end have too much, mirror what is missing."""
    if expected == 0:
        raise AudioError(
            "the sample is empty",
            where=_where(audio, place),
            fix="Restore its audio, or correct the row's offset and duration",
        )
    missing = expected - samples.shape[1]
    if missing <= 0:
        return samples[:, :expected]
    from lhotse.audio.utils import get_audio_duration_mismatch_tolerance  # noqa: PLC0415 - 2 s

    if missing > math.ceil(get_audio_duration_mismatch_tolerance() * rate) or samples.size == 0:
        raise AudioError(
            f"the audio ends {missing / rate:.3f} s before the sample does",
            where=_where(audio, place),
            fix="Correct the row's offset and duration, or restore the file",
        )
    return np.pad(samples, ((0, 0), (0, missing)), mode="reflect")


def _undecodable(error: Exception, audio: Audio, place: Place) -> AudioError:
    reason = str(error).rpartition(": ")[2].rstrip(".") or type(error).__name__
    return AudioError(
        f"the audio cannot be decoded: {reason}",
        where=_where(audio, place),
        fix="Restore the file, or mark its row with _skipme",
    )


def _where(audio: Audio, place: Place) -> str:
    if isinstance(audio.source, str) and place.member is None:
        path = audio.source if scheme(audio.source) else Path(audio.source).absolute()
        return f"{place}, audio {path}"
    return str(place)
