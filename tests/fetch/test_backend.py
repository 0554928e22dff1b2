from __future__ import annotations

import io

import lhotse.audio.backend
import numpy as np
import pytest
import soundfile as sf
from lhotse import Recording
from lhotse.audio import AudioLoadingError
from lhotse.audio.backend import (
    LibsndfileBackend,
    audio_backend,
    get_current_audio_backend,
    get_default_audio_backend,
)

from playhead.fetch.backend import LibsndfileFirst, quick_audio_backend
from support.corpus import wav_bytes

DATA = wav_bytes(0.5, channels=2)


def read(source, **stretch):
    with quick_audio_backend():
        return get_current_audio_backend().read_audio(source, **stretch)


@pytest.mark.parametrize("stretch", [{}, {"offset": 0.1}, {"offset": 0.1, "duration": 0.25}])
def test_samples_are_those_of_lhotses_default(tmp_path, stretch):
    path = tmp_path / "a.WAV"
    path.write_bytes(DATA)
    expected, rate = get_default_audio_backend().read_audio(str(path), **stretch)
    for source in (io.BytesIO(DATA), str(path), path):
        samples, got = read(source, **stretch)
        np.testing.assert_array_equal(samples, expected)
        assert got == rate


def test_torchaudio_is_not_looked_for(monkeypatch):
    monkeypatch.setattr(
        lhotse.audio.backend, "is_torchaudio_available", lambda: pytest.fail("looked for it")
    )
    read(io.BytesIO(DATA))


def test_what_libsndfile_refuses_takes_lhotses_way(tmp_path, monkeypatch):
    path = tmp_path / "a.wav"
    path.write_bytes(b"not for libsndfile")
    with pytest.raises(AudioLoadingError):
        read(str(path))
    asked = []

    def other(self, source, *_):
        asked.append(source.read() if isinstance(source, io.BytesIO) else source)
        return np.zeros((1, 1), np.float32), 16000

    monkeypatch.setattr(type(get_default_audio_backend()), "read_audio", other)
    for source in (io.BytesIO(b"not for libsndfile"), str(path), "film.mp4"):
        read(source)
    assert asked == [b"not for libsndfile", str(path), "film.mp4"]


def test_the_default_is_back_afterwards():
    before = get_current_audio_backend()

    def fail():
        with quick_audio_backend():
            assert isinstance(get_current_audio_backend(), LibsndfileFirst)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert get_current_audio_backend() is before


def test_a_backend_that_the_user_chose_stays():
    with audio_backend(LibsndfileBackend()) as chosen, quick_audio_backend():
        assert get_current_audio_backend() is chosen


def test_lhotses_other_uses_of_the_backend_work():
    with quick_audio_backend():
        recording = Recording.from_bytes(DATA, "r")
        buffer = io.BytesIO()
        get_current_audio_backend().save_audio(buffer, recording.load_audio(), 16000, format="wav")
        buffer.seek(0)
    assert sf.info(buffer).frames == 8000
