from __future__ import annotations

import pickle

import numpy as np
import pytest
from lhotse import Recording, RecordingSet
from lhotse.augmentation.utils import FastRandomRIRGenerator
from lhotse.cut import MixedCut

from playhead.errors import ConfigError
from playhead.fetch.augment.reverb import open_impulses, reverberate
from playhead.fetch.augment.rooms import Room
from playhead.fetch.cuts import to_cut
from playhead.fetch.generators import derive
from support.augmenting import RATE, audio_of, augmentation, augmenter, keyed, prepared, sample
from support.corpus import wav_bytes


def settings(**options):
    return augmentation(rir_enabled=True, **{"rir_prob": 1.0, **options})


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """Impulse responses of two channels, with paths relative to the manifest."""
    folder = tmp_path_factory.mktemp("rirs")
    recordings = []
    for i in range(5):
        (folder / f"{i}.wav").write_bytes(wav_bytes(0.05, channels=2, seed=50 + i))
        recording = Recording.from_file(folder / f"{i}.wav")
        recording.sources[0].source = f"{i}.wav"
        recordings.append(recording)
    RecordingSet.from_recordings(recordings).to_file(folder / "rirs.jsonl")
    return str(folder / "rirs.jsonl")


def test_reverberation_is_lhotses(manifest):
    cut = to_cut(sample(), RATE, {})
    wet = reverberate(cut, settings(rir_path=manifest), 5)
    (transform,) = wet.recording.transforms
    by_hand = cut.reverb_rir(transform.rir, affix_id=False)
    np.testing.assert_array_equal(audio_of(wet), audio_of(by_hand))
    assert (wet.id, wet.supervisions) == (cut.id, cut.supervisions)


def test_each_response_is_drawn_alike(manifest):
    cut = to_cut(sample(0.05), RATE, {})
    ids = [
        reverberate(cut, settings(rir_path=manifest), key).recording.transforms[0].rir.id
        for key in range(500)
    ]
    counts = [ids.count(str(i)) for i in range(5)]
    assert min(counts) > 70
    assert sum(counts) == 500


def test_responses_are_brought_to_the_rate(manifest):
    made = augmenter(sample_rate=8000, rir_enabled=True, rir_prob=1.0, rir_path=manifest)
    (cut,) = prepared(made, [sample(rate=8000)], keyed([2]))
    assert cut.recording.transforms[0].rir.sampling_rate == 8000
    assert audio_of(cut).shape == (1, 8000)


def test_the_probability_holds():
    cut = to_cut(sample(0.05), RATE, {})
    wet = [reverberate(cut, settings(rir_prob=0.4), key) is not cut for key in range(1000)]
    assert np.mean(wet) == pytest.approx(0.4, abs=0.04)


def test_a_mix_is_in_one_room():
    cut = to_cut(sample(), RATE, {})
    mix = cut.append(to_cut(sample(name="b"), RATE, {}))
    wet = reverberate(mix, settings(), 5)
    assert isinstance(wet, MixedCut)
    (transform,) = wet.transforms
    np.testing.assert_array_equal(audio_of(wet), transform(audio_of(mix), RATE))


@pytest.mark.parametrize("content", [b"nothing", b"", b'{"id": 1}\n'])
def test_what_is_no_manifest_is_refused(tmp_path, content):
    path = tmp_path / "rirs.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"rir_path.*rirs\.jsonl"):
        open_impulses(str(path))


def test_hearing_a_room_twice_gives_the_same():
    """Lhotse's generator goes on at every call, and draws from torch's global generator."""
    wet = reverberate(to_cut(sample(), RATE, {}), settings(), 5)
    first = audio_of(wet)
    np.testing.assert_array_equal(audio_of(wet), first)
    np.testing.assert_array_equal(audio_of(pickle.loads(pickle.dumps(wet))), first)
    assert (audio_of(reverberate(to_cut(sample(), RATE, {}), settings(), 6)) != first).any()


def test_a_room_is_a_function_of_its_key():
    response = Room(7, RATE)()
    np.testing.assert_array_equal(Room(7, RATE)(), response)
    np.testing.assert_array_equal(Room(**Room(7, RATE).to_dict())(), response)
    assert response.shape != Room(8, RATE)().shape
    assert response.dtype == np.float32


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_rooms_are_rooms(rate):
    """Sound comes at once or a little later, and has gone by the time that it should have."""
    peaks, lengths = [], []
    for i in range(25):
        response = Room(derive(1, str(i)), rate)()[0]
        assert np.isfinite(response).all()
        energy = response**2
        peaks.append(np.argmax(energy) / rate)
        lengths.append(len(response) / rate)
        left = energy[::-1].cumsum()[::-1] / energy.sum()
        assert left[int(0.8 * len(left))] < 0.05
        spectrum = np.abs(np.fft.rfft(response, rate))
        assert spectrum[0] < 0.3 * spectrum[200:2000].mean()
    assert min(peaks) >= 0
    assert max(peaks) < 0.08
    assert 0.1 <= min(lengths) < 0.2
    assert 0.7 < max(lengths) < 0.81


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Lhotse, to NumPy
def test_lhotses_rooms_are_much_the_same():
    """The same model: distances, and how fast the sound dies, are alike on the average."""
    pytest.importorskip("torchaudio", exc_type=ImportError)
    theirs = [FastRandomRIRGenerator(RATE, room_seed=i, source_seed=i)(1)[0] for i in range(30)]
    ours = [Room(derive(2, str(i)), RATE)()[0] for i in range(30)]

    def early(responses):
        """Share of the energy in the first 50 ms after the peak."""
        shares = []
        for response in responses:
            peak = int(np.argmax(np.abs(response)))
            energy = response.astype(float) ** 2
            shares.append(energy[peak : peak + RATE // 20].sum() / energy.sum())
        return np.mean(shares)

    assert early(ours) == pytest.approx(early(theirs), abs=0.1)
