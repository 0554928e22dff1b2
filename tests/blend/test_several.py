"""Configs with several blends: which keys are parts, what reaches them, and what is said."""

from __future__ import annotations

import json

import pytest

from playhead.blend.several import read_blends
from playhead.errors import ConfigError, UnknownOptionError

AUDIO = {
    "manifest_filepath": "/data/a.json", "tarred_audio_filepaths": "/data/a.tar",
    "batch_duration": 20, "sample_rate": 24000,
}  # fmt: skip
TEXT = {
    "input_cfg": [
        {"type": "nemo", "manifest_filepath": "/data/t.json", "name": "t"},
        {"type": "nemo", "manifest_filepath": "/data/u.json", "name": "u"},
    ],
    "batch_size": 4,
}
TOP = {"multi_config": True, "seed": 3, "shard_seed": "trng", "shuffle": True}


def config(**more):
    return {**TOP, "audio": AUDIO, "text": TEXT, **more}


def test_parts_are_the_mappings_and_have_their_own_options():
    blends = read_blends(config(num_workers=2, sampler_fusion="zip"))
    assert list(blends.parts) == ["audio", "text"]
    assert blends.fusion == "zip"
    audio, text = blends.parts.values()
    assert (audio.options.sample_rate, text.options.sample_rate) == (24000, 16000)
    assert (audio.options.batch_duration, text.options.batch_duration) == (20, None)
    for blend in (audio, text):
        options = blend.options
        assert (options.seed, options.shuffle, options.num_workers) == (3, True, 2)
        assert not options.multi_config
    assert [leaf.name for leaf in audio.leaves] == ["audio//data/a.json"]
    assert [leaf.name for leaf in text.leaves] == ["text/t", "text/u"]
    assert blends.notes == ()


def test_the_order_of_parts_is_that_of_their_names():
    turned = {**TOP, "text": TEXT, "audio": AUDIO}
    assert list(read_blends(turned).parts) == list(read_blends(config()).parts)


def test_a_config_of_one_blend_is_one_part():
    blends = read_blends({**AUDIO, "multi_config": False})
    assert list(blends.parts) == [""]
    assert blends.fusion is None
    assert blends.options.batch_duration == 20
    assert [leaf.name for leaf in blends.parts[""].leaves] == ["/data/a.json"]


def test_parts_that_the_config_does_not_mark_are_none():
    with pytest.raises(ConfigError, match=r"has no parts that it marks.*multi_config: true"):
        read_blends(AUDIO, overrides={"multi_config": True, "sampler_fusion": "zip"})


def test_a_section_of_a_training_config(tmp_path):
    valid = {**TOP, "shuffle": False, "clean": AUDIO, "noisy": TEXT}
    whole = {"name": "x", "model": {"train_ds": config(), "validation_ds": valid, "n": 1}}
    (tmp_path / "train.yaml").write_text(json.dumps(whole))
    path = tmp_path / "train.yaml"
    train, other = read_blends(path), read_blends(path, section="validation_ds")
    assert (list(train.parts), list(other.parts)) == (["audio", "text"], ["clean", "noisy"])
    assert [blend.finite for blend in train.parts.values()] == [False, False]
    assert [blend.finite for blend in other.parts.values()] == [True, True]
    assert read_blends(whole).parts.keys() == train.parts.keys()


def test_a_part_is_finite_as_it_would_be_alone():
    alone = {"manifest_filepath": "/data/t.json", "batch_size": 4}
    parts = read_blends(config(text=alone, test_set=TEXT)).parts
    # The name of a part does not make it an evaluation set.
    assert [parts[name].finite for name in ("audio", "test_set", "text")] == [False, False, True]
    parts = read_blends(config(text=alone, force_finite=True)).parts
    assert [blend.finite for blend in parts.values()] == [True, True]


def test_a_part_can_be_read_alone_with_what_the_top_level_hands_down(tmp_path):
    whole = {"model": {"train_ds": config(indexes_root="/idx", seed=9)}}
    for section in ("train_ds.text", "model.train_ds.text"):
        blends = read_blends(whole, section=section)
        assert (list(blends.parts), blends.fusion) == ([""], None)
        assert blends.options.seed == 9
        assert blends.parts[""].leaves[0].options.indexes_root == "/idx"
    assert list(read_blends(config(), section="text").parts) == [""]


def test_what_callers_say_wins_in_every_part():
    blends = read_blends(config(), overrides={"batch_size": 7, "seed": 5, "num_workers": 1})
    for blend in blends.parts.values():
        assert (blend.options.batch_size, blend.options.seed) == (7, 5)
    with pytest.raises(ConfigError, match=r"no training section.*a\.audio, a\.text"):
        read_blends({"a": config()}, overrides={"multi_config": False})


def test_interpolations_see_the_whole_config(tmp_path):
    text = json.dumps({**config(), "rate": 8000, "seed": "${rate}"})
    (tmp_path / "b.yaml").write_text(text.replace("24000", '"${rate}"'))
    with pytest.raises(ConfigError, match="cannot be resolved"):
        read_blends({**config(), "seed": "${nothing}"})
    blends = read_blends(tmp_path / "b.yaml")
    assert blends.options.sample_rate == blends.options.seed == 8000


def test_omegaconf_nodes_as_frameworks_pass_them():
    omegaconf = pytest.importorskip("omegaconf")
    whole = omegaconf.OmegaConf.create(
        {
            "rate": 8000,
            "model": {"validation_ds": config(audio={**AUDIO, "sample_rate": "${rate}"})},
        }
    )
    blends = read_blends(whole.model.validation_ds)
    assert blends.parts["audio"].options.sample_rate == 8000
    assert [blend.finite for blend in blends.parts.values()] == [True, True]


@pytest.mark.parametrize(
    "mapping",
    [
        {"audio_token_estimator": {"preprocessor": {}}},
        {"noise_path": {"input_cfg": [{"type": "nemo", "manifest_filepath": "x"}]}},
        {"sampler_weights": None},
        {"excluded_speaker_ids": {"excluded_speaker_ids": ["x"]}},
    ],
)
def test_options_that_are_mappings_are_no_parts(mapping):
    assert list(read_blends(config(**mapping)).parts) == ["audio", "text"]


def test_a_mapping_without_data_is_named():
    tokenizer = {"dir": "/tok", "type": "bpe"}
    blends = read_blends(config(tokenizer={"dir": "/tok"}))
    assert list(blends.parts) == ["audio", "text"]
    assert "`tokenizer` is a mapping, which multi_config takes for a sub-config" in blends.notes[0]
    with pytest.raises(ConfigError, match=r"`tokenizer`.*names no data"):
        read_blends(config(tokenizer=tokenizer), strict=True)
    # What has options of a blend is one, and lacks its data.
    with pytest.raises(ConfigError, match=r"`more` is a mapping.*names no data \(config: more\)"):
        read_blends(config(more={"batch_size": 4}))
    with pytest.raises(ConfigError, match=r"`more`.*names no data"):
        read_blends(config(more={}))


def test_what_does_not_reach_the_parts_is_said():
    (note,) = read_blends(config(sample_rate=24000, batch_tokens=100)).notes
    assert "sample_rate (not in text), batch_tokens (not in audio, text)" in note
    assert read_blends(config(sample_rate=16000)).notes == ()


def test_what_the_top_level_decides_is_said_where_a_part_says_otherwise():
    blends = read_blends(config(audio={**AUDIO, "num_workers": 8, "shuffle": False, "seed": 3}))
    (note,) = blends.notes
    assert note == "options of config: audio that the top level decides: num_workers, shuffle"
    assert blends.options.num_workers == 0


@pytest.mark.parametrize("key", ["seed", "shuffle"])
def test_what_all_parts_need_must_be_there(key):
    whole = config()
    del whole[key]
    with pytest.raises(ConfigError, match=f"multi_config and no {key} of its own"):
        read_blends(whole)
    assert read_blends(whole, overrides={key: TOP[key]}).options.seed == 3


def test_a_loader_has_but_one_of_some():
    parts = {
        "audio": {**AUDIO, "micro_batches_per_step": 4},
        "text": {**TEXT, "micro_batches_per_step": 8},
    }
    with pytest.raises(ConfigError, match="`micro_batches_per_step` is 4 in audio, 8 in text"):
        read_blends(config(**parts))
    assert (
        read_blends(config(**parts, micro_batches_per_step=2)).options.micro_batches_per_step == 2
    )


def test_weights_are_whole_numbers_by_name():
    def read(weights, **more):
        given = {"sampler_fusion": "randomized_round_robin", "sampler_weights": weights, **more}
        return read_blends(config(**given))

    assert read({"text": 3, "audio": 1}).weights == (1 << 30, 3 << 30)
    assert read({"text": 0, "audio": 0.5}).weights == (1 << 32, 0)
    assert read(None).weights == (1, 1)
    for weights, said in (
        ([1, 2], "is a list, and has to be a mapping"),
        ({"text": 1}, "no weight for audio"),
        ({"text": 1, "audio": 1, "video": 1}, "one for video, which is no part"),
        ({"text": 0, "audio": 0}, "All weights are 0"),
        ({"text": -1, "audio": 2}, "not a number of at least 0"),
    ):
        with pytest.raises(ConfigError, match=said):
            read(weights)
    (note,) = read({"text": 1, "audio": 1}, sampler_fusion="zip").notes
    assert note == "sampler_weights has no effect with sampler_fusion: zip"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"manifest_filepath": "/data/x.json"}, "names data itself: manifest_filepath"),
        ({"sampler_fusion": "zipped"}, "sampler_fusion"),
        ({"audio": 1, "text": None}, "no sub-config"),
        ({"audio": {**AUDIO, "batch_durration": 3}}, r"batch_durration.*config: audio"),
    ],
)
def test_what_cannot_be_used_is_refused(change, said):
    with pytest.raises(ConfigError, match=said):
        read_blends(config(**change))


def test_misspelt_keys_at_the_top_level():
    with pytest.raises(UnknownOptionError, match=r"`sampler_fusoin`.*`sampler_fusion`"):
        read_blends(config(sampler_fusoin="zip"))
    (note,) = read_blends(config(my_label=3)).notes
    assert note == "keys of config that mean nothing here: my_label"


def test_notes_of_a_part_bear_its_name():
    parts = read_blends(config(text={**TEXT, "bucket_buffer_size": 3})).parts
    (note,) = parts["text"].notes
    assert note.startswith("part text: options of config: text that have no meaning here")
