from __future__ import annotations

import gzip
import json
import pickle
from collections import Counter

import numpy as np
import pytest
from lhotse import CutSet, Recording
from lhotse.audio.mixer import audio_energy
from lhotse.cut import MixedCut

from playhead.config import Options
from playhead.errors import AudioError, ConfigError, SourceNotFoundError
from playhead.fetch.augment.noise import Noise, NoiseDraw, mix_noise, open_noise
from playhead.fetch.cuts import to_cut
from support.augmenting import (
    RATE,
    audio_of,
    augmentation,
    augmenter,
    facts_of,
    keyed,
    of_cut,
    prepared,
    sample,
)
from support.corpus import nemo_corpus, tarred_corpus, wav_bytes

DURATIONS = [3.0, 0.4, 1.7, 2.2, 0.3]
ALWAYS = {"noise_path": "x", "noise_mix_prob": 1.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noise")
    nemo_corpus(folder / "nemo", DURATIONS, prefix="noise")
    nemo_corpus(folder / "other", DURATIONS[::-1], rate=8000, prefix="other")
    tarred_corpus(folder / "tarred", DURATIONS, 2)
    cuts = [
        Recording.from_file(folder / f"nemo/wav/noise{i:05d}.wav").to_cut().with_id(f"cut{i}")
        for i in range(len(DURATIONS))
    ]
    CutSet.from_cuts(cuts).to_file(folder / "cuts.jsonl")
    lines = (folder / "cuts.jsonl").read_bytes()
    (folder / "cuts.jsonl.gz").write_bytes(gzip.compress(lines))
    entries = [
        {"type": "nemo", "manifest_filepath": str(folder / "nemo/manifest.json"), "weight": 3},
        {"type": "nemo", "manifest_filepath": str(folder / "other/manifest.json"), "weight": 1},
    ]
    (folder / "blend.yaml").write_text(json.dumps(entries))
    return folder


def opened(folder, path, **options):
    return open_noise(
        Options(noise_path=path, auto_index=True, **options), pack_dir=str(folder / "packs")
    )


@pytest.fixture(scope="module")
def spec(folder):
    return opened(folder, str(folder / "nemo/manifest.json"))


def noise_tracks(cut):
    return [track for track in cut.tracks if track.tag == "noise"]


def forms(folder):
    tars = {
        "manifest_filepath": str(folder / "tarred/manifest__OP_0..1_CL_.json"),
        "tarred_audio_filepaths": str(folder / "tarred/audio__OP_0..1_CL_.tar"),
    }
    return {
        "manifest": str(folder / "nemo/manifest.json"),
        "cuts": str(folder / "cuts.jsonl"),
        "compressed": str(folder / "cuts.jsonl.gz"),
        "yaml": str(folder / "blend.yaml"),
        "keys": tars,
        "list": [{"type": "lhotse", "cuts_path": str(folder / "cuts.jsonl")}],
    }


@pytest.mark.parametrize("form", ["manifest", "cuts", "compressed", "yaml", "keys", "list"])
def test_noise_of_every_form_is_mixed_in(folder, form):
    path = forms(folder)[form]
    made = augmenter(opened(folder, path), noise_path=path, noise_mix_prob=1.0)
    examples = [sample(1.0, f"{i}.wav") for i in range(4)]
    for cut, example in zip(prepared(made, examples, keyed(range(4))), examples, strict=True):
        assert isinstance(cut, MixedCut)
        assert (cut.id, cut.duration) == (example.id, 1.0)
        assert [one.text for one in cut.supervisions] == [example.text]
        assert all(10 <= track.snr < 20 for track in noise_tracks(cut))
        speech = audio_of(to_cut(example, RATE, {}))
        noise = audio_of(cut) - speech
        assert noise[:, :8000].any()
        assert noise[:, -8000:].any()


def test_mixing_is_lhotses(spec):
    made = augmenter(spec, **ALWAYS)
    for key in range(8):
        (cut,) = prepared(made, [sample(1.0)], keyed([key]))
        by_hand = to_cut(sample(1.0), RATE, {})
        for track in noise_tracks(cut):
            by_hand = by_hand.mix(
                track.cut, offset_other_by=track.offset, snr=track.snr, preserve_id="left"
            )
        np.testing.assert_array_equal(audio_of(cut), audio_of(by_hand))


def test_the_ratio_is_what_is_heard(spec):
    made = augmenter(spec, **ALWAYS, noise_snr=(7.0, 7.0))
    example = sample(0.3)
    speech = audio_of(to_cut(example, RATE, {}))
    for key in range(8):
        (cut,) = prepared(made, [example], keyed([key]))
        noise = audio_of(cut) - speech
        ratio = 10 * np.log10(audio_energy(speech) / audio_energy(noise))
        assert ratio == pytest.approx(7, abs=0.01)


def test_a_long_noise_gives_any_stretch_of_itself(folder):
    spec = opened(folder, {"manifest_filepath": str(folder / "nemo/manifest.json")})
    made = augmenter(spec, **ALWAYS)
    starts = []
    for key in range(300):
        (cut,) = made.prepare([sample(0.25)], keyed([key]), [{}])
        for track in noise_tracks(cut):
            assert track.cut.end <= track.cut.recording.duration
            if track.cut.recording.duration == 3.0:
                starts.append(track.cut.start)
    assert len(starts) > 30
    assert min(starts) < 0.2
    assert max(starts) > 2.5


def test_short_noises_follow_one_another(spec):
    made = augmenter(spec, **ALWAYS)
    for key in range(20):
        (cut,) = prepared(made, [sample(4.0)], keyed([key]))
        at = 0.0
        for track in noise_tracks(cut):
            assert track.offset == pytest.approx(at)
            at += track.cut.duration
        assert 3.95 <= at <= 4.0
        assert len({track.snr for track in noise_tracks(cut)}) == 1


def test_noise_that_is_never_long_enough_ends(tmp_path):
    manifest = nemo_corpus(tmp_path, [0.001])
    spec = opened(tmp_path, str(manifest))
    made = augmenter(spec, **ALWAYS)
    (cut,) = prepared(made, [sample(1.0)], keyed([1]))
    assert len(noise_tracks(cut)) == 100
    assert audio_of(cut).shape == (1, RATE)


def test_probability_and_ratio(spec):
    noise = Noise(spec)
    settings = augmentation(noise_path="x", noise_mix_prob=0.3, noise_snr=(-5.0, 15.0))
    draws = [noise.draw(key, 1_000_000, settings) for key in range(2000)]
    ratios = [draw.snr for draw in draws if draw is not None]
    assert len(ratios) / 2000 == pytest.approx(0.3, abs=0.03)
    assert -5 <= min(ratios) < -4.8
    assert 14.8 < max(ratios) < 15
    assert np.mean(ratios) == pytest.approx(5, abs=0.6)


def test_weights_of_a_blend_count(folder):
    noise = Noise(opened(folder, str(folder / "blend.yaml")))
    settings = augmentation(**ALWAYS)
    draws = [noise.draw(key, 100, settings).rows[0] for key in range(2000)]
    leaves = Counter(leaf for leaf, _ in draws)
    assert leaves[0] / 2000 == pytest.approx(0.75, abs=0.03)
    rows = Counter(row for leaf, row in draws if leaf == 0)
    assert sorted(rows) == list(range(len(DURATIONS)))
    assert min(rows.values()) > 240


def test_noise_of_another_rate_is_converted(folder):
    spec = opened(folder, str(folder / "other/manifest.json"))
    (cut,) = prepared(augmenter(spec, **ALWAYS), [sample(0.2)], keyed([3]))
    (track,) = noise_tracks(cut)
    assert track.cut.sampling_rate == RATE
    assert track.cut.recording.transforms


def test_one_channel_of_noise_is_enough(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav_bytes(2.0, channels=2))
    (tmp_path / "n.json").write_text('{"audio_filepath": "a.wav", "duration": 2.0}\n')
    made = augmenter(opened(tmp_path, str(tmp_path / "n.json")), **ALWAYS)
    (cut,) = prepared(made, [sample()], keyed([3]))
    assert audio_of(cut).shape == (1, RATE)
    stereo = prepared(made, [sample(channels=2)], keyed([3]))
    assert audio_of(stereo[0]).shape == (2, RATE)


def test_noise_is_mixed_before_speed_and_only_where_it_is_heard(spec):
    """An hour of which ten seconds are used is not filled with noise from end to end."""
    made = augmenter(spec, **ALWAYS, perturb_speed=True, truncate_duration=1.0)
    batch = keyed([4], speed=900, start_us=20_000_000, span_us=1_000_000)
    (cut,) = prepared(made, [sample(30.0)], batch)
    assert audio_of(cut).shape == (1, RATE)
    tracks = noise_tracks(cut)
    assert 1 <= len(tracks) < 6
    assert sum(track.cut.duration for track in tracks) >= 0.94
    assert all("Speed" in repr(track.cut.recording.transforms) for track in tracks)
    plain = augmenter(perturb_speed=True, truncate_duration=1.0)
    (speech,) = prepared(plain, [sample(30.0)], batch)
    difference = audio_of(cut) - audio_of(speech)
    assert difference[:, :1000].any()


def test_the_same_noise_whatever_the_batch(spec):
    made = augmenter(spec, **ALWAYS)
    examples = [sample(0.5 + i / 10, f"{i}.wav") for i in range(6)]
    keys = [11, 22, 33, 44, 55, 66]
    together = [facts_of(cut) for cut in prepared(made, examples, keyed(keys))]
    again = pickle.loads(pickle.dumps(made))
    for place in (5, 0, 3):
        (alone,) = prepared(again, [examples[place]], keyed([keys[place]]))
        assert facts_of(alone) == together[place]
    (other,) = prepared(again, [examples[0]], keyed([12]))
    assert facts_of(other) != together[0]


def test_mixed_rows_can_be_mixed_on(folder, spec):
    cuts = list(CutSet.from_file(folder / "cuts.jsonl"))
    row = of_cut(cuts[1].append(cuts[4], preserve_id="left"))
    (cut,) = prepared(augmenter(spec, **ALWAYS), [row], keyed([5]))
    assert cut.duration == pytest.approx(0.7)
    assert audio_of(cut).shape == (1, 11200)


def test_nothing_is_left_of_a_noise_that_begins_too_late():
    cut = to_cut(sample(), RATE, {})
    draw = NoiseDraw(snr=3.0, rows=((0, 0), (0, 1)))
    noises = [to_cut(sample(1.0, "n"), RATE, {}), to_cut(sample(1.0, "m"), RATE, {})]
    mixed = mix_noise(cut, draw, noises, 5, slice(0, RATE))
    assert len(noise_tracks(mixed)) == 1


def test_no_noise_is_named():
    assert open_noise(Options()) is None


@pytest.mark.parametrize(("path", "said"), [(5, "noise_path.*int"), ([], "(?i)")])
def test_what_is_no_noise_is_refused(folder, path, said):
    with pytest.raises(ConfigError, match=said):
        opened(folder, path)


def test_noise_that_does_not_exist(folder):
    with pytest.raises(SourceNotFoundError, match=r"none\.json"):
        opened(folder, str(folder / "none.json"))


def test_noise_without_rows(tmp_path):
    (tmp_path / "n.json").write_text("")
    with pytest.raises(ConfigError, match="no row with a length"):
        opened(tmp_path, str(tmp_path / "n.json"))


def test_noise_that_cannot_be_read_says_which(tmp_path):
    manifest = nemo_corpus(tmp_path, [1.0])
    spec = opened(tmp_path, str(manifest))
    (tmp_path / "wav/utt00000.wav").write_bytes(b"broken")
    with pytest.raises(AudioError, match=r"utt00000\.wav"):
        augmenter(spec, **ALWAYS).prepare([sample()], keyed([1]), [{}])
