from __future__ import annotations

import pytest

from playhead.blend.section import Section, find_section
from playhead.config import Spot
from playhead.errors import ConfigError

HERE = Spot("train.yaml")
DATA = {"input_cfg": [{}]}
TRAINING = {
    "trainer": {"max_steps": 5, "strategy": {"name": "ddp"}},
    "model": {
        "train_ds": {"shuffle": True, **DATA},
        "validation_ds": {"manifest_filepath": ["a.json"]},
        "test_ds": {"manifest_filepath": None},
        "optim": {"sched": {"name": "x"}},
    },
}
SPEECHLM = {
    "data": {
        "train_ds": DATA,
        "validation_ds": {
            "batch_size": 1,
            "datasets": {"clean": {"cuts_path": "c"}, "other": {"cuts_path": "o"}},
        },
    }
}


def name(content, wanted=None):
    return find_section(content, wanted, HERE).name


def test_a_blend_that_stands_alone_is_its_own_section():
    assert find_section([{}], None, HERE) == Section((), None)
    for key in ("input_cfg", "manifest_filepath", "cuts_path", "shar_path"):
        assert find_section({key: "x"}, None, HERE) == Section((), None)
    assert find_section([{}], "validation_ds", HERE) == Section((), "validation_ds")


def test_the_training_section_is_the_default():
    assert name(TRAINING) == "model.train_ds"
    assert find_section(TRAINING, None, HERE).keys == ("model", "train_ds")
    assert name(SPEECHLM) == "data.train_ds"
    assert name({"train_ds": DATA, "validation_ds": DATA}) == "train_ds"


def test_the_only_section_needs_no_name_unless_it_is_for_validation():
    assert name({"x": {"my_data": DATA}}) == "x.my_data"
    with pytest.raises(ConfigError, match=r"no training section.*: model.validation_ds"):
        name({"model": {"validation_ds": DATA}})


@pytest.mark.parametrize(
    ("content", "wanted", "found"),
    [
        (TRAINING, "model.validation_ds", "model.validation_ds"),
        (TRAINING, "validation_ds", "model.validation_ds"),
        (SPEECHLM, "data.validation_ds.datasets.clean", "data.validation_ds.datasets.clean"),
        (SPEECHLM, "datasets.other", "data.validation_ds.datasets.other"),
        (SPEECHLM, "other", "data.validation_ds.datasets.other"),
        ({"a": {"validation_ds": {"datasets": {"x": DATA}}}}, "validation_ds", None),
        ({"train_ds": DATA, "a": {"train_ds": DATA}}, "train_ds", "train_ds"),
    ],
)
def test_sections_by_path_and_by_the_end_of_it(content, wanted, found):
    assert name(content, wanted) == (found or "a.validation_ds.datasets.x")


@pytest.mark.parametrize(
    ("content", "wanted", "said"),
    [
        (
            TRAINING,
            "test_ds",
            "There is no section 'test_ds' with data .*: model.train_ds, model.validation_ds",
        ),
        (TRAINING, "ain_ds", "no section 'ain_ds' with data"),
        (SPEECHLM, "validation_ds", "more than one section .*datasets.clean, .*datasets.other"),
        (
            {"a": {"train_ds": DATA}, "b": {"train_ds": DATA}},
            None,
            r"more than one training section with data \(train.yaml\).*: a.train_ds, b.train_ds",
        ),
        ({"a": DATA, "b": DATA}, None, "no training section with data .*: a, b"),
        ({"trainer": {"max_steps": 5}}, None, "nothing has input_cfg, manifest_filepath or cuts"),
        ({}, "train_ds", "no section 'train_ds' with data: nothing has"),
    ],
)
def test_missing_and_ambiguous_sections_list_those_there_are(content, wanted, said):
    with pytest.raises(ConfigError, match=said):
        name(content, wanted)


@pytest.mark.parametrize(
    ("called", "evaluates"),
    [
        (None, False),
        ("model.train_ds", False),
        ("model.validation_ds", True),
        ("test_ds", True),
        ("data.validation_ds.datasets.clean", True),
        ("val", True),
        ("dev_set", True),
        ("model.testimony", False),
        ("devices", False),
    ],
)
def test_which_sections_evaluate(called, evaluates):
    assert Section((), called).is_evaluation is evaluates


def test_data_sets_share_the_section_around_them():
    found = find_section(SPEECHLM, "clean", HERE)
    assert found.shared_keys == ("data", "validation_ds")
    assert find_section(SPEECHLM, None, HERE).shared_keys is None
    assert find_section(TRAINING, None, HERE).shared_keys is None
