from __future__ import annotations

import json

import numpy as np
import pytest

from playhead.errors import ConfigError, ManifestError, PlayheadError
from playhead.formats import BadRowError
from support.fetching import leaf_of
from support.shar import write_shar
from support.transforming import (
    apply,
    cut,
    cut_of,
    dropped,
    example_of,
    index,
    read,
    recording,
    said,
    with_transforms,
    written,
)

NAME = "lhotse_magpietts_data_as_continuation"


def synthetic(folder, name="m", seconds=0.8234, rate=16000, speaker="Speaker:1", **scores):
    source = recording(folder, f"{name}-s", 0.5)
    target = recording(folder, f"{name}-t", seconds, rate=rate, seed=1)
    context = recording(folder, f"{name}-c", 0.5, seed=2)
    segment = said(name, source, 0.0, 0.5, "spoken", speaker)
    segment.custom = scores or None
    return cut(name, source, [segment], target_audio=target, context_audio=context, number=4)


def test_a_silent_source_and_the_target_at_one_rate(tmp_path):
    one = synthetic(tmp_path)
    leaf = written(tmp_path, one)
    example = apply(leaf, example_of(leaf, one), NAME)
    made = cut_of(example)
    # As NeMo 3.0 makes them.
    assert (made.id, made.duration, made.num_samples) == ("m_source", 18155 / 22050, 18155)
    assert [(s.start, s.duration, s.text, s.speaker) for s in made.supervisions] == [
        (0.0, 0.08, "dummy text", "user"),
        (0.0, pytest.approx(one.target_audio.duration - 0.08), "spoken", "agent"),
    ]
    assert not made.load_audio().any()
    assert (made.target_audio.num_samples, made.context_audio.num_samples) == (18155, 11025)
    assert made.target_audio.sampling_rate == made.context_audio.sampling_rate == 22050
    assert (made.task, made.number) == (NAME, 4)
    # The same sound, at another rate.
    target = one.target_audio.load_audio()[0, 1000:9000]
    there = made.target_audio.load_audio()[0]
    again = np.interp(np.arange(1000, 9000) / 16000, np.arange(len(there)) / 22050, there)
    assert np.corrcoef(target, again)[0, 1] > 0.7
    assert example.audio is None


def test_a_target_that_has_the_rate_is_left_encoded(tmp_path):
    one = synthetic(tmp_path)
    leaf = written(tmp_path, one)
    made = cut_of(apply(leaf, example_of(leaf, one), NAME, sample_rate=16000))
    assert made.target_audio.sources[0].type == "file"
    assert np.array_equal(made.load_target_audio(), one.target_audio.load_audio())


def test_what_is_dropped(tmp_path):
    cuts = [
        synthetic(tmp_path, "good", cer=0.03, context_speaker_similarity=0.6),
        synthetic(tmp_path, "cer", cer=0.031),
        synthetic(tmp_path, "voice", context_speaker_similarity=0.59),
        synthetic(tmp_path, "other", speaker="Speaker:2"),
        synthetic(tmp_path, "status"),
        synthetic(tmp_path, "silent"),
    ]
    cuts[4].validation_status = "fail"
    cuts[0].validation_status = "pass"
    leaf = with_transforms(written(tmp_path, *cuts), (NAME, {"target_speaker": "Speaker:1"}))
    pack = index(leaf, tmp_path)
    assert pack.dropped == {
        "max_cer": 1,
        "min_context_speaker_similarity": 1,
        "target_speaker": 1,
        "validation_status": 1,
    }
    assert [example.id for example in read(leaf, pack)] == ["good_source", "silent_source"]
    assert pack.duration_us.tolist() == [round(18155 / 22050 * 1e6)] * 2
    options = {"max_cer": 0.1, "min_context_speaker_similarity": 0.1}
    assert dropped(leaf, example_of(leaf, cuts[1]), NAME, **options) is None
    assert dropped(leaf, example_of(leaf, cuts[2]), NAME, **options) is None
    cuts[5].supervisions[0].speaker = None
    unknown = example_of(leaf, cuts[5])
    assert dropped(leaf, unknown, NAME, target_speaker="x") == "target_speaker"
    assert dropped(leaf, unknown, NAME) is None


@pytest.mark.parametrize(("key", "value"), [("speaker", 7), ("speaker", []), ("custom", 7)])
def test_supervisions_of_other_types_are_named(tmp_path, key, value):
    one = synthetic(tmp_path, "m")
    leaf = written(tmp_path, one)
    example = example_of(leaf, one)
    example.cut_data["supervisions"][0][key] = value
    with pytest.raises(BadRowError, match=f"(?i)the {key} of a supervision is"):
        dropped(leaf, example, NAME, target_speaker="x")


@pytest.mark.parametrize("rate", [-5, 3_000_000_000])
def test_rates_that_are_none_are_named(tmp_path, rate):
    one = synthetic(tmp_path, "m")
    leaf = with_transforms(written(tmp_path, one), "s2s_duplex_reverse_role")
    path = tmp_path / "cuts.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["custom"]["target_audio"]["sampling_rate"] = rate
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(PlayheadError, match="sampling"):
        index(leaf, tmp_path)


def test_silence_at_the_end_depends_on_the_id_alone(tmp_path):
    options = {"add_extra_end_silence": True, "extra_end_silence_range": [0.5, 1.5]}
    cuts = [synthetic(tmp_path, f"m{n}", 0.5) for n in range(12)]
    leaf = with_transforms(written(tmp_path, *cuts), (NAME, options))
    pack = index(leaf, tmp_path)
    lengths = pack.duration_us.tolist()
    assert len(set(lengths)) == 12
    assert all(1_000_000 <= length <= 2_000_000 for length in lengths)
    for length, example in zip(lengths, read(leaf, pack), strict=True):
        made = cut_of(example)
        assert made.duration == pytest.approx(length / 1e6, abs=1e-6)
        assert made.target_audio.duration == made.duration
        more = made.duration - 0.5
        user, agent = made.supervisions
        assert user.duration == pytest.approx(0.08 + more, abs=1e-4)
        assert agent.duration == pytest.approx(0.5 - 0.08 + more + 1.0, abs=1e-4)
        target = made.load_target_audio()[0]
        assert target[:11025].any()
        assert not target[11025 + 10 :].any()
    (tmp_path / "again").mkdir()
    turned = with_transforms(written(tmp_path, *cuts[::-1]), (NAME, options))
    assert index(turned, tmp_path / "again").duration_us.tolist() == lengths[::-1]
    # What the hash of this id has chosen once it has to choose for ever.
    assert lengths[0] == 1_258_413


def test_a_silence_of_one_length_is_that_of_nemo_3_0(tmp_path):
    one = synthetic(tmp_path)
    leaf = written(tmp_path, one)
    options = {"add_extra_end_silence": True, "extra_end_silence_range": [0.7, 0.7]}
    made = cut_of(apply(leaf, example_of(leaf, one), NAME, sample_rate=16000, **options))
    assert made.num_samples == 13174 + 11200
    assert [s.duration for s in made.supervisions] == [
        pytest.approx(0.78),
        pytest.approx(13174 / 16000 - 0.08 + 1.7),
    ]


def test_a_shar_of_it(tmp_path):
    one = synthetic(tmp_path, seconds=0.5)
    fields = {"recording": "wav", "target_audio": "wav", "context_audio": "wav"}
    write_shar(tmp_path / "shar", [one], fields)
    leaf = with_transforms(leaf_of("lhotse_shar", shar=tmp_path / "shar"), NAME)
    (example,) = read(leaf, index(leaf, tmp_path))
    assert cut_of(example).target_audio.num_samples == 11025


def test_the_context_may_be_missing_and_the_target_may_not(tmp_path):
    one = synthetic(tmp_path)
    leaf = written(tmp_path, one)
    del one.custom["context_audio"]
    assert "context_audio" not in cut_of(apply(leaf, example_of(leaf, one), NAME)).custom
    del one.custom["target_audio"]
    with pytest.raises(ManifestError, match="no target_audio"):
        apply(leaf, example_of(leaf, one), NAME)
    one.supervisions = []
    with pytest.raises(ManifestError, match="no supervision"):
        apply(leaf, example_of(leaf, one), NAME)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("sample_rate", 0),
        ("sample_rate", 22050.5),
        ("extra_end_silence_range", [2, 1]),
        ("extra_end_silence_range", [-1, 1]),
        ("extra_end_silence_range", 1.0),
        ("max_cer", None),
        ("target_speaker", 1),
        ("add_extra_end_silence", "yes"),
    ],
)
def test_options_that_cannot_be_used_are_named(tmp_path, option, value):
    leaf = with_transforms(written(tmp_path, synthetic(tmp_path)), (NAME, {option: value}))
    with pytest.raises(ConfigError, match=f"`{option}`"):
        index(leaf, tmp_path)
