from __future__ import annotations

import numpy as np
import pytest
import soundfile as sf
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError, ManifestError
from support.corpus import tone, write_jsonl, write_tar
from support.fetching import leaf_of
from support.transforming import (
    apply,
    cut,
    cut_of,
    example_of,
    index,
    read,
    recording,
    said,
    with_transforms,
    written,
)

NAME = "nemo_tarred_to_duplex"


@pytest.fixture
def leaf(tmp_path):
    """Two rows of a manifest; the second is a stretch of a file of two channels."""
    sf.write(tmp_path / "a.wav", tone(1.0), 16000)
    sf.write(tmp_path / "b.wav", tone(2.0, 8000, channels=2), 8000)
    rows = [
        {"audio_filepath": "a.wav", "duration": 1.0, "text": "hello", "lang": "en"},
        {"audio_filepath": "b.wav", "duration": 0.5, "offset": 0.25, "text": "part"},
    ]
    return leaf_of("nemo", manifest=write_jsonl(tmp_path / "m.json", rows))


def segments(one):
    return [(s.id, s.start, s.duration, s.text, s.speaker) for s in one.supervisions]


def test_the_agent_is_silent_in_the_last_of_the_audio(leaf, tmp_path):
    leaf = with_transforms(leaf, NAME)
    pack = index(leaf, tmp_path)
    assert pack.duration_us.tolist() == [1_000_000, 500_000]
    first, second = read(leaf, pack)
    made = cut_of(first)
    assert segments(made) == [
        ("a.wav_user", 0.0, 1.0, "hello", "user"),
        ("a.wav_agent", 0.92, 0.08, "", "agent"),
    ]
    assert [s.language for s in made.supervisions] == ["en", "en"]
    assert (made.task, made.target_audio.id) == ("asr", "a.wav_target")
    assert (made.target_audio.num_samples, made.target_audio.sampling_rate) == (16000, 16000)
    assert not made.target_audio.load_audio().any()
    assert np.array_equal(made.load_audio(), sf.read(tmp_path / "a.wav", dtype="float32")[0][None])
    part = cut_of(second)
    assert (part.start, part.duration, part.num_channels) == (0.25, 0.5, 2)
    assert part.target_audio.num_samples == 4000


def test_silence_behind_the_audio_makes_the_sample_longer(leaf, tmp_path):
    leaf = with_transforms(leaf, (NAME, {"agent_silence_duration": 0.5}))
    pack = index(leaf, tmp_path)
    assert pack.duration_us.tolist() == [1_500_000, 1_000_000]
    first, second = map(cut_of, read(leaf, pack))
    assert segments(first) == [
        ("a.wav_user", 0.0, 1.0, "hello", "user"),
        ("a.wav_agent", 1.0, 0.5, "", "agent"),
    ]
    samples = first.load_audio()
    assert samples.shape == (1, 24000)
    assert np.array_equal(samples[0, :16000], sf.read(tmp_path / "a.wav", dtype="float32")[0])
    assert not samples[0, 16000:].any()
    assert first.target_audio.num_samples == 24000
    stereo = second.load_audio()
    heard = sf.read(tmp_path / "b.wav", dtype="float32")[0].T
    assert (second.start, stereo.shape) == (0.0, (2, 8000))
    assert np.array_equal(stereo[:, :4000], heard[:, 2000:6000])
    assert not stereo[:, 4000:].any()


def test_lengths_that_only_headers_say_grow_too(tmp_path):
    sf.write(tmp_path / "a.wav", tone(1.0), 16000)
    manifest = write_jsonl(tmp_path / "m.json", [{"audio_filepath": "a.wav", "text": "x"}] * 2)
    leaf = with_transforms(
        leaf_of("nemo", manifest=manifest), (NAME, {"agent_silence_duration": 0.25})
    )
    pack = index(leaf, tmp_path)
    assert pack.duration_us.tolist() == [1_250_000] * 2
    assert [cut_of(example).duration for example in read(leaf, pack)] == [1.25] * 2


def test_members_of_tars(tmp_path):
    sf.write(tmp_path / "a.flac", tone(1.0), 16000)
    rows = [{"audio_filepath": "a.flac", "duration": 1.0, "text": "x", "sampling_rate": 16000}]
    manifest = write_jsonl(tmp_path / "manifest_0.json", rows)
    write_tar(tmp_path / "audio_0.tar", [("a.flac", (tmp_path / "a.flac").read_bytes())])
    leaf = leaf_of("nemo_tarred", manifest=manifest, tar=tmp_path / "audio_0.tar")
    leaf = with_transforms(leaf, (NAME, {"agent_silence_duration": 0.1}))
    pack = index(leaf, tmp_path)
    assert (pack.duration_us.tolist(), pack.num_samples.tolist()) == ([1_100_000], [17600])
    (example,) = read(leaf, pack)
    assert cut_of(example).num_samples == 17600


def test_cuts_have_one_supervision_or_stay_as_they_are(tmp_path):
    source = recording(tmp_path, "r", 1.0)
    one = cut("c", source, [said("s", source, 0.1, 0.5, "hm", "x")])
    leaf = written(tmp_path, one)
    duplex = apply(leaf, example_of(leaf, one), NAME, agent_silence_duration=0.5)
    made = cut_of(duplex)
    assert segments(made)[0] == ("c_user", 0.0, 1.0, "hm", "user")
    assert (made.duration, duplex.audio) == (1.5, None)
    assert apply(leaf, example_of(leaf, one), NAME).audio is not None
    for said_otherwise in ([], [*one.supervisions, *one.supervisions]):
        other = example_of(leaf, cut("c", source, said_otherwise))
        assert apply(leaf, other, NAME) is other
    with pytest.raises(ManifestError, match="MixedCut"):
        apply(leaf, example_of(leaf, one.pad(2.0)), NAME)


def test_the_other_side_of_a_silent_agent_is_silent(tmp_path, leaf):
    leaf = with_transforms(leaf, NAME, "s2s_duplex_reverse_role")
    made = cut_of(read(leaf, index(leaf, tmp_path))[0])
    assert not made.load_audio().any()
    assert made.load_target_audio().any()
    assert [s.speaker for s in made.supervisions] == ["agent", "user"]
    assert made.task == "s2s_duplex_reverse_role"


def test_the_silence_is_a_number(leaf, tmp_path):
    with pytest.raises(ConfigError, match="`agent_silence_duration` is '2 s'"):
        index(with_transforms(leaf, (NAME, {"agent_silence_duration": "2 s"})), tmp_path)


@given(st.floats(0.01, 2.0), st.floats(0.001, 3.0), st.sampled_from([8000, 16000, 22050]))
def test_what_the_index_says_is_what_the_cut_lasts(tmp_path_factory, seconds, more, rate):
    folder = tmp_path_factory.mktemp("silence")
    source = recording(folder, "r", seconds, rate=rate)
    one = cut("c", source, [said("s", source, 0.0, source.duration, "hm", "x")])
    leaf = leaf_of("lhotse", cuts=folder / "cuts.jsonl")
    duplex = apply(leaf, example_of(leaf, one), NAME, agent_silence_duration=more)
    (step,) = duplex.cut_steps
    made = cut_of(duplex)
    assert made.duration == step.seconds(one.duration, rate)
    assert abs(made.duration - one.duration - more) <= 0.51 / rate
    assert made.target_audio.num_samples == made.num_samples
