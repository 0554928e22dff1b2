"""All of it at once: a sample's augmentation is a function of its key."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import pickle
import random
import subprocess
import sys
from pathlib import Path

import lhotse.utils
import numpy as np
import pytest
import torch
from lhotse import MultiCut, Recording, SupervisionSegment
from lhotse.cut import MixedCut
from lhotse.dataset.cut_transforms import LowpassUsingResampling

from playhead.config import Options
from playhead.errors import AudioError, ManifestError
from playhead.fetch.augment.noise import open_noise
from playhead.fetch.cuts import to_cut
from playhead.fetch.generators import derive
from playhead.fetch.waveforms import pad_waveforms, waveform
from support.augmenting import (
    RATE,
    audio_of,
    augmenter,
    facts_of,
    keyed,
    of_cut,
    prepared,
    sample,
)
from support.corpus import nemo_corpus, wav_bytes

EVERYTHING = {
    "noise_mix_prob": 0.7,
    "perturb_speed": True,
    "truncate_duration": 0.5,
    "pad_min_duration": 0.45,
    "pad_direction": "random",
    "lowpass_enabled": True,
    "clipping_enabled": True,
    "rir_enabled": True,
    "compression_enabled": True,
    "compression_codecs": ("opus", "mp3", "vorbis", "gsm"),
}
KEYS = [derive(3, str(i)) for i in range(12)]
SPEED = np.array([900, 1000, 1100] * 4)
START = np.array([0, 100_000, 5_000, 0] * 3)
SPAN = np.array([500_000, -1, 500_000, 300_000] * 3)


def examples():
    return [sample(0.45 + i / 20, f"{i}.wav") for i in range(12)]


def batch_of(places):
    places = list(places)
    return keyed(
        [KEYS[i] for i in places],
        part=np.zeros(len(places)),
        speed=SPEED[places],
        start_us=START[places],
        span_us=SPAN[places],
    )


def digests(made, places) -> list[str]:
    rows = examples()
    torch.set_num_threads(1)
    cuts = prepared(made, [rows[i] for i in places], batch_of(places))
    return [hashlib.sha256(repr(facts_of(cut)).encode()).hexdigest() for cut in cuts]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noise")
    path = str(nemo_corpus(folder, [0.3, 0.7, 1.5, 0.2]))
    spec = open_noise(Options(noise_path=path, auto_index=True), pack_dir=str(folder / "packs"))
    return augmenter(spec, noise_path=path, **EVERYTHING)


@pytest.fixture(scope="module")
def expected(made):
    return digests(made, range(12))


def test_neither_batch_nor_order_matter(made, expected):
    places = list(range(12))
    random.Random(1).shuffle(places)
    assert digests(made, places) == [expected[i] for i in places]
    for place in (0, 7, 11):
        assert digests(made, [place]) == [expected[place]]


def test_neither_global_randomness_nor_history_matter(made, expected):
    random.seed(4)
    np.random.seed(4)
    torch.manual_seed(4)
    lhotse.utils.fix_random_seed(4)
    before = random.getstate(), torch.get_rng_state()
    digests(made, [3, 4])
    assert digests(pickle.loads(pickle.dumps(made)), range(12)) == expected
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    lhotse.utils._lhotse_uuid = None


def test_other_keys_give_others(made):
    rows = [sample(0.5, "a.wav")] * 8
    cuts = prepared(made, rows, keyed(KEYS[:8]))
    assert len({audio_of(cut).tobytes() for cut in cuts}) > 5


def test_everything_happens(made):
    seen = set()
    for cut in prepared(made, examples(), batch_of(range(12))):
        tracks = [track.cut for track in cut.tracks] if isinstance(cut, MixedCut) else [cut]
        seen |= {track.tag for track in cut.tracks} if isinstance(cut, MixedCut) else set()
        recordings = [one.recording for one in tracks if hasattr(one, "recording")]
        for transforms in [getattr(cut, "transforms", None), *(r.transforms for r in recordings)]:
            seen |= {type(transform).__name__ for transform in transforms or ()}
    wanted = {"noise", "Speed", "Resample", "Clipping", "ReverbWithImpulseResponse", "Compress"}
    assert wanted <= seen | {"Resample"}


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_processes_started_any_way_make_the_same(made, expected, start):
    with multiprocessing.get_context(start).Pool(1) as pool:
        assert pool.apply(digests, (made, [5, 0, 9])) == [expected[i] for i in (5, 0, 9)]


def test_another_program_makes_the_same(made, expected):
    folders = [str(parent) for parent in Path(__file__).parents[:3]]
    code = (
        f"import sys; sys.path[:0] = {folders}\n"
        "import json, pickle, random\n"
        "random.seed(1)\n"
        "from test_apply import digests\n"
        f"print(json.dumps(digests(pickle.loads({pickle.dumps(made)!r}), [1, 2, 10])))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [expected[i] for i in (1, 2, 10)]


def test_lhotses_own_transform_would_not_do():
    """It draws sample after sample: who comes first in the batch changes what one becomes."""
    cuts = [to_cut(one, RATE, {}) for one in examples()[:4]]

    def theirs(order):
        transform = LowpassUsingResampling(p=0.5, seed=1)
        filtered = transform([cuts[i] for i in order])
        return {cut.id.partition("_")[0]: cut.id for cut in filtered}

    assert theirs([0, 1, 2, 3]) != theirs([3, 2, 1, 0])


def test_datasets_of_examples_hear_the_same(made):
    rows, batch = examples(), batch_of(range(12))
    augmented, members = made.of_examples(rows, batch, [{}] * 12)
    assert members == [(i,) for i in range(12)]
    assert [one.id for one in augmented] == [one.id for one in rows]
    assert [one.text for one in augmented] == [one.text for one in rows]
    cuts = prepared(made, rows, batch)
    audio, lengths = pad_waveforms(augmented, RATE)
    for one, cut, row, length in zip(augmented, cuts, audio.numpy(), lengths, strict=True):
        np.testing.assert_array_equal(row[:length], audio_of(cut)[0])
        samples, rate = waveform(one, RATE)
        assert rate == RATE
        np.testing.assert_array_equal(samples, audio_of(cut))


def test_a_sample_whose_cut_cannot_be_heard_says_where_it_is():
    example = sample()
    recording = Recording.from_bytes(wav_bytes(1.0), "r")
    recording.sources[0].source = b"broken"
    example.cut = recording.to_cut()
    with pytest.raises(AudioError, match=r"Lhotse cannot load.*row 7"):
        pad_waveforms([example], RATE)


def test_windows_of_samples_keep_tags_and_ids():
    made = augmenter(cut_into_windows_duration=0.25, pad_min_duration=0.5)
    batch = keyed([1, 2], part=[0, 3], start_us=[0, 750_000], span_us=250_000)
    cuts = made.prepare([sample()] * 2, batch, [{"corpus": "x"}] * 2)
    assert [cut.id for cut in cuts] == ["a.wav-0", "a.wav-3"]
    assert [cut.corpus for cut in cuts] == ["x", "x"]
    assert [audio_of(cut).shape for cut in cuts] == [(1, 8000)] * 2


def test_a_rate_of_its_own():
    made = augmenter(sample_rate=16000, perturb_speed=True)
    made.sample_rate = None
    (cut,) = made.prepare([sample(rate=8000)], keyed([1], speed=900), [{}])
    assert (cut.sampling_rate, cut.num_samples) == (8000, 8889)


def test_a_cut_without_a_recording_cannot_be_augmented():
    cut = to_cut(sample(), RATE, {})
    cut.recording = None
    with pytest.raises(ManifestError, match=r"no recording to augment.*row 7"):
        augmenter(perturb_speed=True).prepare([of_cut(cut)], keyed([1]), [{}])


@pytest.fixture
def stereo(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav_bytes(1.0, channels=2, seed=3))
    recording = Recording.from_file(tmp_path / "a.wav", recording_id="r")
    supervisions = [
        SupervisionSegment(f"s{i}", "r", 0, 1.0, channel=i, text=f"channel {i}") for i in range(2)
    ]
    return MultiCut("two", 0, 1.0, [0, 1], supervisions, recording=recording, custom={"best": 1})


@pytest.mark.parametrize("selector", [0, 1, "best"])
def test_one_channel_is_a_slice_of_both(stereo, selector):
    made = augmenter(truncate_duration=0.5)
    batch = keyed([1], span_us=500_000)
    (both,) = made.prepare([of_cut(stereo)], batch, [{}])
    (one,) = made.prepare([of_cut(stereo)], batch, [{}], [selector])
    index = 1 if selector == "best" else selector
    np.testing.assert_array_equal(audio_of(one), audio_of(both)[index : index + 1])
    assert one.id == "two"
    assert [s.text for s in one.supervisions] == [f"channel {index}"]
