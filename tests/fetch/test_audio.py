from __future__ import annotations

import errno
import io
import os

import numpy as np
import pytest
import soundfile as sf
from hypothesis import example, given
from hypothesis import strategies as st
from lhotse import CutSet, MonoCut, Recording
from lhotse.augmentation import Resample
from lhotse.utils import compute_num_samples

from playhead.errors import AudioError, SourceNotFoundError
from playhead.fetch.audio import count_frames, count_samples, decode, decode_into, read_header
from playhead.fetch.resampling import Resample as KernelResample
from playhead.fetch.resampling import resample, resample_cut
from playhead.formats import Audio
from support.fetching import PLACE

KINDS = {
    "wav": ("WAV", "PCM_16"),
    "wav24": ("WAV", "PCM_24"),
    "float": ("WAV", "FLOAT"),
    "flac": ("FLAC", "PCM_16"),
    "ogg": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
}


def encoded(seconds=1.2345, rate=16000, channels=1, kind="wav", seed=0) -> bytes:
    """A sum of tones and noise, different in every channel."""
    rng = np.random.default_rng(seed)
    count = round(seconds * rate)
    time = np.arange(count)[:, None] / rate
    pitch = 200 * (1 + np.arange(channels))
    samples = 0.3 * np.sin(2 * np.pi * pitch * time) + 0.05 * rng.standard_normal((count, channels))
    buffer = io.BytesIO()
    name, subtype = KINDS[kind]
    sf.write(buffer, samples, rate, format=name, subtype=subtype)
    return buffer.getvalue()


def lhotse_cut(data: bytes, start=0.0, duration=None, channel=None):
    recording = Recording.from_bytes(data, "r")
    if channel is None:
        cut = recording.to_cut()
    else:
        cut = MonoCut("c", 0.0, recording.duration, channel, recording=recording)
    if start or duration is not None:
        cut = cut.truncate(offset=start, duration=duration)
    return cut


def decoded(data, start=0.0, duration=None, channel=None, rate=None):
    audio = Audio(source=data, start=start, duration=duration, channel=channel)
    samples, got_rate = decode(audio, rate, PLACE)
    assert samples.dtype == np.float32
    assert count_samples(audio, rate, PLACE) == (samples.shape[1], got_rate)
    if len(samples) == 1:
        row = np.full(samples.shape[1], 9, np.float32)
        decode_into(row, audio, got_rate, PLACE)
        np.testing.assert_array_equal(row, samples[0])
    return samples


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("start", "duration"), [(0.0, None), (0.0, 0.5), (0.25, 0.7001), (0.33337, None), (1.0, 0.2)]
)
def test_samples_are_lhotses(kind, start, duration):
    data = encoded(rate=48000 if kind == "opus" else 16000, kind=kind)
    expected = lhotse_cut(data, start, duration).load_audio()
    np.testing.assert_array_equal(decoded(data, start, duration), expected)


@pytest.mark.parametrize("kind", ["wav", "flac"])
@pytest.mark.parametrize("channel", [None, 0, 1, 2])
def test_channels_are_lhotses(kind, channel):
    data = encoded(channels=3, kind=kind)
    expected = lhotse_cut(data, 0.1, 0.8, channel).load_audio()
    samples = decoded(data, 0.1, 0.8, channel)
    assert samples.shape[0] == (3 if channel is None else 1)
    np.testing.assert_array_equal(samples, expected)


@pytest.mark.parametrize(("source", "target"), [(8000, 16000), (44100, 16000), (16000, 22050)])
@pytest.mark.parametrize(("start", "duration"), [(0.0, None), (0.2, 0.777), (0.0, 1.2341)])
@pytest.mark.parametrize("channels", [1, 2])
def test_resampled_samples_are_those_of_the_cut(source, target, start, duration, channels):
    data = encoded(rate=source, channels=channels, kind="flac")
    expected = resample_cut(lhotse_cut(data, start, duration), target).load_audio()
    np.testing.assert_array_equal(decoded(data, start, duration, rate=target), expected)


def test_resampling_is_lhotses_own(monkeypatch):
    """With torchaudio installed Lhotse uses the kernel that is also used without it."""
    import lhotse.augmentation.torchaudio

    monkeypatch.setattr(lhotse.augmentation.torchaudio, "is_torchaudio_available", lambda: True)
    samples = np.random.default_rng(0).standard_normal((2, 1000)).astype(np.float32)
    expected = Resample(8000, 16000)(samples)
    np.testing.assert_array_equal(KernelResample(8000, 16000)(samples), expected)
    monkeypatch.setattr("playhead.fetch.resampling._LHOTSE_CAN", True)
    np.testing.assert_array_equal(resample(samples, 8000, 16000), expected)


def test_a_resampled_cut_is_written_as_lhotses_and_pickled():
    import pickle

    cut = resample_cut(lhotse_cut(encoded()), 8000)
    (transform,) = cut.recording.to_dict()["transforms"]
    assert transform == {
        "name": "Resample",
        "kwargs": {"source_sampling_rate": 16000, "target_sampling_rate": 8000},
    }
    again = pickle.loads(pickle.dumps(CutSet([cut])))[0]
    np.testing.assert_array_equal(again.load_audio(), cut.load_audio())


def test_every_track_of_a_mixed_cut_is_resampled():
    one, two = lhotse_cut(encoded(seed=1)), lhotse_cut(encoded(seed=2))
    mixed = one.append(two).pad(duration=3.0)
    assert resample_cut(mixed, 8000).load_audio().shape == (1, 24000)
    assert resample_cut(mixed, 16000) is mixed


@given(
    seconds=st.one_of(
        st.floats(0, 1e5),
        st.builds(
            lambda n, r: (n + 0.5) / r, st.integers(0, 10**7), st.sampled_from([8000, 44100])
        ),
        st.builds(lambda n: n / 1000, st.integers(0, 10**8)),
    ),
    rate=st.sampled_from([8000, 11025, 16000, 22050, 44100, 48000]),
)
@example(seconds=0.35, rate=22050)
@example(seconds=500.5 / 16000, rate=16000)
def test_frames_are_counted_as_lhotse_does(seconds, rate):
    assert count_frames(seconds, rate) == compute_num_samples(seconds, rate)


def test_a_file_that_is_a_little_short_is_filled_up_as_lhotse_does():
    data = encoded(seconds=1.0)
    cut = lhotse_cut(data)
    cut.recording.duration = cut.duration = 1.25
    np.testing.assert_array_equal(decoded(data, duration=1.25), cut.load_audio())
    assert decoded(data, duration=1.25).shape == (1, 20000)


def test_a_little_more_audio_than_declared_is_left_out():
    data = encoded(seconds=1.0)
    np.testing.assert_array_equal(decoded(data, duration=0.9996), decoded(data)[:, :15994])


def test_a_tolerance_that_lhotse_was_given_holds(monkeypatch):
    data = encoded(seconds=1.0)
    monkeypatch.setenv("LHOTSE_AUDIO_DURATION_MISMATCH_TOLERANCE", "0.1")
    assert decoded(data, duration=1.1).shape == (1, 17600)
    with pytest.raises(AudioError, match=r"ends 0\.200 s before"):
        decoded(data, duration=1.2)


@pytest.mark.parametrize(
    ("data", "arguments", "said"),
    [
        (b"no audio at all", {}, "cannot be decoded: Format not recogni"),
        (b"", {}, "cannot be decoded"),
        (encoded(seconds=1.0), {"duration": 1.6}, "ends 0.600 s before the sample does"),
        (
            encoded(seconds=1.0),
            {"start": 1.5, "duration": 0.1},
            "begins at 1.5 s of audio of 1.000",
        ),
        (encoded(seconds=1.0), {"start": 1.0, "duration": 0.1}, "ends 0.100 s before"),
        (encoded(channels=2), {"channel": 2}, "has 2 channels and channel 2 is wanted"),
        (encoded(kind="flac")[:20_000], {}, "cannot be decoded: flac decoder lost sync"),
        (encoded(seconds=2.0, kind="mp3")[:4000], {}, "s before the sample does"),
        (encoded(kind="ogg")[:4000], {}, "sample is empty"),
        (encoded(), {"start": 1.0, "duration": 0.0}, "sample is empty"),
    ],
)
def test_bad_audio_says_where_it_is(data, arguments, said):
    with pytest.raises(AudioError, match=said) as caught:
        decode(Audio(source=data, **arguments), None, PLACE)
    for part in ("leaf train", "/data/manifest.json", "row 7", "byte 123"):
        assert part in str(caught.value)


def test_several_channels_are_not_one():
    row = np.zeros(1600, np.float32)
    with pytest.raises(AudioError, match=r"2 channels and one is wanted.*channel_selector: 0"):
        decode_into(row, Audio(source=encoded(channels=2), duration=0.1), 16000, PLACE)


def test_plain_files_are_read_and_named(tmp_path):
    path = tmp_path / "a.flac"
    path.write_bytes(encoded(kind="flac"))
    np.testing.assert_array_equal(decoded(str(path), 0.5), decoded(path.read_bytes(), 0.5))
    assert read_header(Audio(source=str(path)), PLACE) == (16000, 19752, 1)
    path.write_bytes(b"broken")
    with pytest.raises(AudioError, match=f"audio {path}"):
        decode(Audio(source=str(path)), None, PLACE)
    path.unlink()
    for read in (read_header, lambda audio, place: decode(audio, None, place)):
        with pytest.raises(SourceNotFoundError, match=f"{PLACE}, audio {path}"):
            read(Audio(source=str(path)), PLACE)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        (".", AudioError, "is a folder"),
        ("x" * 300, AudioError, "File name too long"),
        ("loop/a.wav", AudioError, "symbolic links"),
        ("a.wav\0b", AudioError, "cannot be one: embedded null"),
        ("a.wav/b", SourceNotFoundError, "does not exist"),
        ("s3://bucket/a.wav", SourceNotFoundError, "does not exist"),
    ],
)
@pytest.mark.parametrize(
    "read",
    [
        read_header,
        lambda audio, place: decode(audio, None, place),
        lambda audio, place: decode_into(np.zeros(1600, np.float32), audio, 16000, place),
    ],
)
def test_paths_that_are_no_files_are_refused_with_their_place(tmp_path, name, kind, said, read):
    (tmp_path / "a.wav").write_bytes(encoded())
    (tmp_path / "loop").symlink_to("loop")
    path = name if "://" in name else f"{tmp_path}/{name}"
    with pytest.raises(kind, match=said) as caught:
        read(Audio(source=path, duration=0.1), PLACE)
    for part in ("leaf train", "/data/manifest.json", "row 7", "byte 123"):
        assert part in str(caught.value)


def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    path = tmp_path / "a.wav"
    path.write_bytes(b"")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(AudioError, match=rf"may not be read \({PLACE}, audio {path}"):
        decode(Audio(source=str(path)), None, PLACE)


@pytest.fixture
def failing_disk(monkeypatch):
    """libsndfile gets half of what it reads from files by name, and says nothing."""
    read = sf.SoundFile.read

    def half(self, frames=-1, *arguments, out=None, **keywords):
        if isinstance(self.name, str):
            frames = (self.frames if frames < 0 else frames) // 2
            out = None if out is None else out[: len(out) // 2]
        return read(self, frames, *arguments, out=out, **keywords)

    monkeypatch.setattr(sf.SoundFile, "read", half)


@pytest.mark.usefixtures("failing_disk")
def test_an_error_of_the_disk_is_not_the_end_of_the_file(tmp_path):
    """Filled up as if the file ended there, a run would depend on the weather."""
    path = tmp_path / "a.wav"
    data = encoded(seconds=0.9)
    path.write_bytes(data)
    np.testing.assert_array_equal(decoded(str(path), duration=0.9), decoded(data, duration=0.9))


@pytest.mark.usefixtures("failing_disk")
def test_an_error_of_the_disk_that_stays_is_raised(tmp_path, monkeypatch):
    path = tmp_path / "a.wav"
    path.write_bytes(encoded(seconds=0.9))

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    monkeypatch.setattr("playhead.storage.retries.PAUSES", (0.0,))
    with pytest.raises(OSError, match=r"a\.wav") as caught:
        decode(Audio(source=str(path), duration=0.9), None, PLACE)
    assert caught.value.errno == errno.EIO
