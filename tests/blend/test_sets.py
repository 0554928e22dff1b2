"""Which sets a section of a config names, and what they share."""

from __future__ import annotations

import pytest

from playhead.blend.sets import read_sets
from playhead.errors import ConfigError


def sets(config, **arguments):
    return read_sets(config, **arguments)


def test_the_sets_under_datasets_share_the_options_of_their_section():
    found = sets(
        {
            "model": {
                "train_ds": {"manifest_filepath": "train.json"},
                "validation_ds": {
                    "batch_size": 8,
                    "sample_rate": 8000,
                    "datasets": {
                        "noisy": {"manifest_filepath": "noisy.json", "batch_size": 2},
                        "clean": {"manifest_filepath": "clean.json"},
                    },
                },
            }
        }
    )
    assert list(found) == ["noisy", "clean"]
    assert [blend.options.batch_size for blend in found.values()] == [2, 8]
    assert [blend.options.sample_rate for blend in found.values()] == [8000, 8000]
    assert all(blend.finite and not blend.options.shuffle for blend in found.values())


def test_the_sets_of_a_list_bear_their_names():
    listed = [
        {"name": "b", "manifest_filepath": "${root}/b.json", "batch_size": 2},
        {"name": "a", "input_cfg": [{"type": "nemo", "manifest_filepath": "a.json"}]},
    ]
    config = {"root": "/data", "validation_ds": {"batch_size": 8, "datasets": listed}}
    found = sets(config, strict=True)
    assert list(found) == ["b", "a"]
    assert found["b"].options.manifest_filepath == "/data/b.json"
    assert [blend.options.batch_size for blend in found.values()] == [2, 8]


def test_options_of_the_call_win_over_those_of_every_set():
    section = {
        "batch_size": 8,
        "datasets": {
            "a": {"manifest_filepath": "a.json", "batch_size": 2},
            "b": {"manifest_filepath": "b.json"},
        },
    }
    found = sets({"validation_ds": section}, overrides={"batch_size": 3})
    assert [blend.options.batch_size for blend in found.values()] == [3, 3]
    assert list(sets(section)) == ["a", "b"]


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ({"manifest_filepath": "dev.json"}, ["validation_ds"]),
        ({"manifest_filepath": "dev.json", "name": "dev"}, ["dev"]),
        ({"manifest_filepath": ["x/dev-a.json", "y/dev.b.json"]}, ["dev-a", "dev.b"]),
        ({"manifest_filepath": ["x/m.json", "y/m.json"], "name": ["x", "y"]}, ["x", "y"]),
        ({"manifest_filepath": [["a.json"], ["b.json"]]}, ["validation_ds"]),
        (
            {
                "manifest_filepath": ["a.json", "b.json"],
                "tarred_audio_filepaths": ["a.tar", "b.tar"],
            },
            ["validation_ds"],
        ),
        ({"cuts_path": "cuts.jsonl", "manifest_filepath": None}, ["validation_ds"]),
    ],
)  # fmt: skip
def test_a_section_that_names_data_is_one_set_and_a_list_of_manifests_several(section, names):
    assert list(sets({"model": {"validation_ds": section}})) == names


def test_a_set_of_a_list_has_its_own_manifest_alone():
    found = sets({"validation_ds": {"manifest_filepath": ["a.json", "b.json"], "batch_size": 4}})
    assert [blend.options.manifest_filepath for blend in found.values()] == ["a.json", "b.json"]
    assert [blend.options.batch_size for blend in found.values()] == [4, 4]


@pytest.mark.parametrize(
    ("config", "section", "names"),
    [
        ([{"type": "nemo", "manifest_filepath": "a.json"}], None, ["validation_ds"]),
        ([{"type": "nemo", "manifest_filepath": "a.json"}], "dev", ["dev"]),
        ({"manifest_filepath": "a.json"}, "model.test_ds", ["test_ds"]),
        (
            {
                "validation_ds": {"manifest_filepath": "a.json"},
                "test_ds": {"datasets": {"t": {"manifest_filepath": "t.json"}}},
            },
            "test_ds",
            ["t"],
        ),
        (
            {"data": {"validation_ds": {"datasets": {"t": {"manifest_filepath": "t.json"}}}}},
            "validation_ds.datasets.t",
            ["t"],
        ),
        ({"anything": {"manifest_filepath": "a.json"}}, "anything", ["anything"]),
    ],
)
def test_a_section_is_found_by_the_end_of_its_path_and_a_config_may_be_one(config, section, names):
    found = sets(config, section=section)
    assert list(found) == names
    assert all(blend.finite for blend in found.values())


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"train_ds": {"manifest_filepath": "a.json"}}, "no section 'validation_ds'.*train_ds"),
        ({"model": {}}, "no section 'validation_ds'.*Add a section"),
        (
            {
                "a": {"validation_ds": {"manifest_filepath": "a.json"}},
                "b": {"validation_ds": {"manifest_filepath": "b.json"}},
            },
            "more than one section 'validation_ds'.*a.validation_ds, b.validation_ds",
        ),
        ({"validation_ds": {"batch_size": 4}}, "validation_ds names no data"),
        ({"validation_ds": {"datasets": {}}}, "`datasets` names no sets"),
        ({"validation_ds": {"datasets": []}}, "`datasets` names no sets"),
        ({"validation_ds": {"datasets": ["a.json"]}}, "A set cannot be called None"),
        (
            {"validation_ds": {"datasets": [{"name": "a", "cuts_path": "a"}, {"name": "a"}]}},
            "Two sets are called a",
        ),
        ({"validation_ds": {"datasets": {"a": {"batch_size": 3}}}}, "The set a names no data"),
        ({"validation_ds": {"datasets": {"a": None}}}, "The set a names no data"),
        (
            {
                "validation_ds": {
                    "manifest_filepath": "x.json",
                    "datasets": {"a": {"manifest_filepath": "a.json"}},
                }
            },
            "has datasets and names data itself: manifest_filepath",
        ),
        (
            {"validation_ds": {"manifest_filepath": ["x/m.json", "y/m.json"]}},
            "Two sets are called m: x/m.json and y/m.json.*`name:`",
        ),
        (
            {"validation_ds": {"manifest_filepath": ["x.json", "y.json"], "name": ["x"]}},
            "There is 1 name for 2 manifests",
        ),
        (
            {"validation_ds": {"manifest_filepath": ["x.json", "y.json"], "name": "x"}},
            "There is 1 name for 2 manifests",
        ),
        ({"validation_ds": {"manifest_filepath": "x.json", "name": ["x"]}}, "cannot be called"),
        (
            {"validation_ds": {"manifest_filepath": "x.json", "drop_last": True}},
            "has drop_last, and a set is evaluated whole",
        ),
        (
            {"validation_ds": {"manifest_filepath": "x.json", "multi_config": True}},
            "has multi_config",
        ),
    ],
)
def test_what_names_no_sets_is_refused(config, said):
    with pytest.raises(ConfigError, match=said) as refused:
        sets(config)
    assert "\n" not in str(refused.value)
