from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from playhead.blend import Blend, Leaf, LeafOptions, read_blend
from playhead.blend.leaf import Concatenation
from playhead.blend.weights import UNIT
from playhead.errors import (
    ConfigError,
    NotSupportedError,
    SourceNotFoundError,
    UnknownOptionError,
)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")


@pytest.fixture
def write(tmp_path):
    """Write a config as YAML and return its path."""

    def to_file(content, name="blend.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return str(path)

    return to_file


def nemo(path="m.json", **keys):
    return {"type": "nemo", "manifest_filepath": path, **keys}


def tarred(number=0, **keys):
    paths = {"manifest_filepath": f"m{number}.json", "tarred_audio_filepaths": f"a{number}.tar"}
    return {"type": "nemo_tarred", **paths, **keys}


def group(*entries, **keys):
    return {"type": "group", "input_cfg": list(entries), **keys}


def by_path(blend: Blend) -> dict[str, Leaf]:
    return {next(iter(leaf.paths.values()))[0]: leaf for leaf in blend.leaves}


def weights(*entries, **options) -> list[int]:
    return [leaf.weight for leaf in read_blend({"input_cfg": list(entries), **options}).leaves]


# What a config may be


def test_a_leaf_has_everything_that_its_entry_says():
    entry = tarred(tags={"task": "asr"}, corpus="libri", language="en", text_field="said")
    blend = read_blend([entry], overrides={"indexed": True})
    (leaf,) = blend.leaves
    assert leaf == Leaf(
        key=leaf.key,
        name="libri/en",
        type="nemo_tarred",
        weight=UNIT,
        paths={"manifest": ("m0.json",), "tar": ("a0.tar",)},
        options=LeafOptions(text_field="said", indexed=True),
        tags={"task": "asr"},
        labels={"corpus": "libri", "language": "en"},
    )
    assert len(leaf.key) == 16
    assert blend.notes == ()
    assert blend.section is None


def test_the_same_blend_in_every_wrapping(write):
    entries = [nemo("a", weight=1), nemo("b", weight=3)]
    section = {"input_cfg": entries}
    whole = {"trainer": {"x": "${nowhere}"}, "model": {"train_ds": section, "name": "???"}}
    expected = read_blend(entries).leaves
    assert [leaf.weight for leaf in expected] == [UNIT // 4, UNIT * 3 // 4]
    for config in (
        section,
        whole,
        write(entries),
        Path(write(section)),
        write(whole),
        OmegaConf.create(entries),
        OmegaConf.create(section),
        OmegaConf.create(whole),
        OmegaConf.create(whole).model,
        OmegaConf.create(whole).model.train_ds,
        OmegaConf.create(section).input_cfg,
        tuple(entries),
        {"train_ds": {"input_cfg": write(entries, "inner.yaml")}},
        {"train_ds": {"input_cfg": Path(write(section, "inner.yaml"))}},
    ):
        assert read_blend(config).leaves == expected


def test_one_entry_is_a_blend(write):
    for config in (nemo(tags={"a": 1}), OmegaConf.create(nemo(tags={"a": 1}))):
        assert [leaf.tags for leaf in read_blend(config).leaves] == [{"a": 1}]
    assert len(read_blend({"input_cfg": nemo()}).leaves) == 1
    assert len(read_blend([group(nemo()), nemo("b")]).leaves) == 2
    assert len(read_blend([{"type": "group", "input_cfg": nemo()}]).leaves) == 1


def test_flat_forms():
    (leaf,) = read_blend({"manifest_filepath": "m_OP_0..1_CL_.json"}).leaves
    assert (leaf.type, leaf.paths) == ("nemo", {"manifest": ("m0.json", "m1.json")})
    tars = {"manifest_filepath": ["m", "n"], "tarred_audio_filepaths": ["a", "b"]}
    (leaf,) = read_blend(tars).leaves
    assert leaf.type == "nemo_tarred"
    assert leaf.paths == {"manifest": ("m", "n"), "tar": ("a", "b")}
    (leaf,) = read_blend({"cuts_path": "c.jsonl", "text_field": "x"}).leaves
    assert (leaf.type, leaf.paths) == ("lhotse", {"cuts": ("c.jsonl",)})
    several = read_blend({"manifest_filepath": [["m", 1], ["n", 3]]}).leaves
    assert [leaf.weight for leaf in several] == [UNIT // 4, UNIT * 3 // 4]


def test_a_flat_form_and_its_entry_are_the_same_leaf():
    flat = read_blend({"manifest_filepath": "m", "tarred_audio_filepaths": "a"})
    assert flat.leaves == read_blend([{**nemo("m"), "tarred_audio_filepaths": "a"}]).leaves


def test_which_form_wins():
    section = {"manifest_filepath": "m", "cuts_path": "c", "input_cfg": [nemo("e")]}
    blend = read_blend({"train_ds": section})
    assert list(by_path(blend)) == ["e"]
    said = "input_cfg of config: train_ds wins over cuts_path and manifest_filepath"
    assert blend.notes == (said,)
    del section["input_cfg"]
    assert list(by_path(read_blend(section))) == ["c"]
    placeholder = {"manifest_filepath": "???", "input_cfg": [nemo("e")]}
    assert read_blend(placeholder).notes == ()


@pytest.mark.parametrize("config", [5, None, object()])
def test_what_is_no_config(config):
    with pytest.raises(ConfigError, match=r"a config cannot be a|A config cannot be a"):
        read_blend(config)


def test_no_data():
    with pytest.raises(ConfigError, match=r"No data are named \(config: train_ds\)"):
        read_blend({"train_ds": {"manifest_filepath": "???"}})
    for empty in ([], {"input_cfg": []}, [group()], [{"type": "group"}]):
        with pytest.raises(ConfigError, match="There are no entries"):
            read_blend(empty)
    with pytest.raises(ConfigError, match="is not a list of entries"):
        read_blend({"input_cfg": {"a": 1}})
    with pytest.raises(ConfigError, match="is not a list of entries"):
        read_blend({"input_cfg": 5})


# Sections


def test_sections(write):
    config = {
        "model": {
            "train_ds": {"input_cfg": [nemo("t")], "batch_size": 4},
            "validation_ds": {"manifest_filepath": "v", "batch_size": 2},
        }
    }
    blend = read_blend(write(config))
    assert (blend.section, blend.options.batch_size) == ("model.train_ds", 4)
    blend = read_blend(write(config), section="validation_ds")
    assert (blend.section, blend.options.batch_size) == ("model.validation_ds", 2)
    with pytest.raises(ConfigError, match=r"blend\.yaml\)\. Choose one.*: model\.train_ds, model"):
        read_blend(write(config), section="test_ds")


def test_data_sets_share_the_options_around_them():
    config = {
        "data": {
            "validation_ds": {
                "batch_size": 8,
                "text_field": "a",
                "datasets": {
                    "one": {"cuts_path": "one", "batch_size": 2},
                    "two": {"cuts_path": "two"},
                },
            }
        }
    }
    one = read_blend(config, section="one")
    two = read_blend(config, section="data.validation_ds.datasets.two")
    assert (one.options.batch_size, two.options.batch_size) == (2, 8)
    assert one.leaves[0].options.text_field == "a"
    assert list(by_path(one)) == ["one"]
    assert one.finite
    assert one.notes == ()


def test_a_part_of_an_omegaconf_knows_its_name_and_resolves_against_the_whole():
    config = OmegaConf.create(
        {"rate": 8000, "model": {"validation_ds": {**nemo_section(), "sample_rate": "${rate}"}}}
    )
    blend = read_blend(config.model.validation_ds)
    assert blend.section == "model.validation_ds"
    assert blend.options.sample_rate == 8000
    assert blend.finite
    broken = OmegaConf.create({"model": {"train_ds": {"cuts_path": "${nowhere}"}}})
    with pytest.raises(ConfigError, match=r"cannot be resolved: .*nowhere.*\(model.train_ds\)"):
        read_blend(broken.model.train_ds)


def nemo_section():
    return {"input_cfg": [nemo("a"), nemo("b")]}


# Options


def test_overrides_win(write):
    config = write({"train_ds": {"batch_size": 4, "shuffle": True, "manifest_filepath": "m"}})
    options = read_blend(config, overrides={"batch_size": 8, "seed": 3}).options
    assert (options.batch_size, options.shuffle, options.seed) == (8, True, 3)
    assert by_path(read_blend(config, overrides={"input_cfg": [nemo("o")]})).keys() == {"o"}


@pytest.mark.parametrize(
    ("name", "said"),
    [("batch_sise", "`batch_size` is"), ("anything", "`anything` is not known")],
)
def test_an_override_that_is_no_option_is_an_error(name, said):
    with pytest.raises(UnknownOptionError, match=said):
        read_blend(nemo(), overrides={name: 1})


def test_options_are_handed_down_and_overridden():
    leaves = by_path(
        read_blend(
            {
                "text_field": "one",
                "indexes_root": "/idx",
                "channel_selector": 1,
                "input_cfg": [
                    nemo("a"),
                    group(
                        nemo("b"),
                        nemo("c", text_field="three", indexed=False, channel_selector=None),
                        text_field="two",
                        input_sampling_rate=8000,
                        indexed=True,
                    ),
                ],
            }
        )
    )
    assert leaves["a"].options == LeafOptions(
        text_field="one", indexes_root="/idx", channel_selector=1
    )
    assert leaves["b"].options == LeafOptions(
        text_field="two",
        indexes_root="/idx",
        channel_selector=1,
        input_sampling_rate=8000,
        indexed=True,
    )
    assert leaves["c"].options == LeafOptions(
        text_field="three", indexes_root="/idx", input_sampling_rate=8000, indexed=False
    )


def test_a_pack_is_relative_to_its_root(tmp_path):
    entry = nemo(indexed=True, index_pack="p.idxpack")
    (leaf,) = read_blend({"index_pack_root": "/packs", "input_cfg": [entry]}).leaves
    assert leaf.options.index_pack == "/packs/p.idxpack"
    (leaf,) = read_blend([entry]).leaves
    assert leaf.options.index_pack == str(tmp_path / "cwd/p.idxpack")
    with pytest.raises(ConfigError, match=r"`indexed` is not true \(config: \[0\]\)"):
        read_blend([nemo(index_pack="p.idxpack")])


def test_a_loaders_tolerance_wins_over_an_entrys():
    entry = nemo(fault_tolerant_audio_loading=True)
    with pytest.raises(NotSupportedError, match=r"\[0\].fault_tolerant_audio_loading"):
        read_blend([entry])
    with pytest.raises(NotSupportedError, match=r"`fault_tolerant_audio_loading`"):
        read_blend([group(nemo("b"), fault_tolerant_audio_loading=True)])
    section = {"fault_tolerant_audio_loading": False, "input_cfg": [entry]}
    assert len(read_blend(section).leaves) == 1
    assert len(read_blend([nemo(fault_tolerant_audio_loading=False)]).leaves) == 1


def test_tags_and_labels_are_handed_down_and_the_inner_wins():
    leaves = by_path(
        read_blend(
            [
                group(
                    nemo("a", tags={"task": "st", "x": 1}, language="de"),
                    nemo("b"),
                    tags={"task": "asr", "context": "c"},
                    language="en",
                    corpus="libri",
                ),
                nemo("c"),
            ]
        )
    )
    assert leaves["a"].tags == {"task": "st", "context": "c", "x": 1}
    assert leaves["b"].tags == {"task": "asr", "context": "c"}
    assert leaves["c"].tags == {}
    assert leaves["a"].labels == {"language": "de", "corpus": "libri"}
    assert leaves["b"].labels == {"language": "en", "corpus": "libri"}


def test_strict():
    section = {"input_cfg": [nemo(corpus="x")], "trim_silence": True}
    blend = read_blend(section)
    assert blend.notes == ("keys of config that mean nothing here: trim_silence",)
    with pytest.raises(UnknownOptionError, match="`trim_silence` is not known"):
        read_blend(section, strict=True)
    del section["trim_silence"]
    with pytest.raises(UnknownOptionError, match=r"`corpus` is not known \(config: input_cfg\[0\]"):
        read_blend(section, strict=True)


def test_notes_are_said_once_however_many_entries_there_are():
    entries = [nemo(f"{i}", shuffle=True, weight=1) for i in range(50)]
    section = {"input_cfg": entries, "concurrent_bucketing": False, "sorting": 1}
    assert len(read_blend(section).notes) == 3


# References


def test_references_nest_and_are_relative_to_the_file_that_makes_them(write, tmp_path):
    write([nemo("deep", weight=1), nemo("deeper", weight=3)], "a/b/inner.yaml")
    write({"input_cfg": [{"type": "group", "input_cfg": "b/inner.yaml"}]}, "a/middle.yaml")
    outer = write([group(weight=1) | {"input_cfg": "a/middle.yaml"}, nemo("own", weight=1)])
    (tmp_path / "a/b/deep").touch()
    blend = read_blend(outer)
    assert {path: leaf.weight for path, leaf in by_path(blend).items()} == {
        str(tmp_path / "a/b/deep"): UNIT // 8,
        "deeper": UNIT * 3 // 8,
        "own": UNIT // 2,
    }


def test_a_reference_in_the_working_directory(write, tmp_path):
    write([nemo("there")], "cwd/inner.yaml")
    assert by_path(read_blend({"input_cfg": "inner.yaml"})).keys() == {"there"}
    write([nemo("beside")], "inner.yaml")
    assert by_path(read_blend(write({"input_cfg": "inner.yaml"}))).keys() == {"beside"}
    with pytest.raises(SourceNotFoundError, match=r"gone.yaml, named by .*blend\.yaml"):
        read_blend(write({"input_cfg": "gone.yaml"}))


def test_one_file_may_be_named_twice(write):
    write([nemo("x")], "inner.yaml")
    blend = read_blend(write([{"type": "group", "input_cfg": "inner.yaml"}] * 2))
    first, second = blend.leaves
    assert second.key == f"{first.key}-2"
    assert second.paths == first.paths


def test_circles_are_named(write, tmp_path):
    write({"input_cfg": [{"type": "group", "input_cfg": "b.yaml"}]}, "a.yaml")
    write([{"type": "group", "input_cfg": "../" + tmp_path.name + "/a.yaml"}], "b.yaml")
    with pytest.raises(ConfigError) as caught:
        read_blend(str(tmp_path / "a.yaml"))
    chain = " → ".join(str(tmp_path / name) for name in ("a.yaml", "b.yaml", "a.yaml"))
    assert f"The config names itself: {chain}" in str(caught.value)
    assert "b.yaml: [0].input_cfg" in str(caught.value)


def test_a_group_that_holds_itself():
    config = OmegaConf.create([nemo()])
    entry = group(nemo())
    for _ in range(150):
        entry = group(entry)
    with pytest.raises(ConfigError, match="nested more than 100 deep"):
        read_blend([entry])
    assert len(read_blend(config).leaves) == 1


def test_a_config_that_holds_itself():
    entries: list = [nemo()]
    entries.append({"type": "group", "input_cfg": entries})
    with pytest.raises(ConfigError, match=r"The config holds itself \(config\)"):
        read_blend({"train_ds": {"input_cfg": entries}})


def test_a_remote_reference():
    with pytest.raises(NotSupportedError, match=r"s3://b/x.yaml .*\(config: input_cfg\)"):
        read_blend({"input_cfg": "s3://b/x.yaml"})


def test_interpolation(write, monkeypatch):
    monkeypatch.setenv("DATA", "/env")
    inner = [
        nemo("${data_blend_dir}/x", weight="${oc.env:SHARE,1}"),
        nemo("${.corpus}", corpus="c", weight=1),
    ]
    write(inner, "sub/inner.yaml")
    config = {
        "where": "sub",
        "other": "${nowhere}",
        "train_ds": {
            "input_cfg": "${where}/inner.yaml",
            "text_field": "${oc.env:DATA}",
            "batch_size": "${oc.env:SIZE,12}",
            "reweight_temperature": 1,
        },
    }
    blend = read_blend(write(config), data_blend_dir="/d")
    assert list(by_path(blend)) == ["/d/x", "c"]
    assert blend.options.batch_size == 12
    assert blend.leaves[0].options.text_field == "/env"
    with pytest.raises(ConfigError, match=r"inner\.yaml\)\. Give `data_blend_dir`"):
        read_blend(write(config))
    assert list(by_path(read_blend(write({**config, "data_blend_dir": "/own"})))) == ["/own/x", "c"]


def test_a_relative_expression_in_a_bare_list():
    assert list(by_path(read_blend([nemo("${.corpus}/x", corpus="c")]))) == ["c/x"]


def test_a_whole_entry_may_be_an_expression(write):
    config = {"base": nemo("x", weight=3), "input_cfg": ["${base}", nemo("y", weight=1)]}
    assert {p: leaf.weight for p, leaf in by_path(read_blend(config)).items()} == {
        "x": UNIT * 3 // 4,
        "y": UNIT // 4,
    }
    config = {
        "train_ds": {"input_cfg": "${validation_ds.input_cfg}"},
        "validation_ds": nemo_section(),
    }
    assert by_path(read_blend(config)).keys() == {"a", "b"}


# Weights


def test_weights_multiply_down():
    entries = (
        group(nemo("a", weight=1), nemo("b", weight=3), weight=0.25),
        group(nemo("c"), nemo("d"), weight=0.25),
        nemo("e", weight=0.5),
    )
    assert weights(*entries) == [UNIT // 16, UNIT * 3 // 16, UNIT // 8, UNIT // 8, UNIT // 2]


def test_one_child_passes_through_whatever_its_weight():
    assert weights(group(nemo("a", weight=0.001))) == [UNIT]
    assert weights(group(nemo("a", weight=7), weight=1), nemo("b", weight=1)) == [UNIT // 2] * 2


def test_a_group_of_weight_zero_leaves_all_its_leaves_out():
    assert weights(group(nemo("a"), nemo("b"), weight=0), nemo("c", weight=1)) == [0, 0, UNIT]


def test_weighted_paths_are_a_group_without_a_temperature():
    listed = nemo([["a", 1], ["b", 3]], weight=1)
    assert weights(listed, nemo("c", weight=1), reweight_temperature=0) == [
        UNIT // 8,
        UNIT * 3 // 8,
        UNIT // 2,
    ]
    assert weights(listed, nemo("c", weight=3), reweight_temperature=[1]) == [
        UNIT // 16,
        UNIT * 3 // 16,
        UNIT * 3 // 4,
    ]


def test_a_temperature_for_every_level():
    entries = (
        group(nemo("a", weight=1), nemo("b", weight=16), weight=1),
        nemo("c", weight=4),
    )
    assert weights(*entries, reweight_temperature=[0.5, 0]) == [
        round(UNIT / 6),
        round(UNIT / 6),
        round(UNIT * 2 / 3),
    ]
    assert weights(*entries, reweight_temperature=0.5) == [
        round(UNIT / 15),
        round(UNIT * 4 / 15),
        round(UNIT * 2 / 3),
    ]
    assert weights(*entries, reweight_temperature=[1, 1]) == weights(*entries)


def test_siblings_share_what_is_left_of_the_temperatures(write):
    write([nemo("x", weight=1), nemo("y", weight=3)], "inner.yaml")
    entries = [
        group(group(nemo("a", weight=1), nemo("b", weight=4)), weight=1),
        {"type": "group", "input_cfg": "inner.yaml", "weight": 1},
    ]
    section = {"input_cfg": entries, "reweight_temperature": [1, 0, 0.5]}
    found = by_path(read_blend(write(section)))
    assert found["x"].weight == found["y"].weight == UNIT // 4
    assert found["b"].weight == round(UNIT / 3)


def test_a_temperature_list_fits_the_deepest_nesting():
    entries = [group(group(nemo("a"), nemo("b"))), nemo("c")]
    for wrong in ([1], [1, 1], [1, 1, 1, 1]):
        with pytest.raises(
            ConfigError,
            match=rf"has {len(wrong)} numbers, and input_cfg has 3 levels.*reweight_temperature\)",
        ):
            weights(*entries, reweight_temperature=wrong)


def test_a_group_may_have_temperatures_of_its_own():
    inner = [nemo("a", weight=1), nemo("b", weight=16)]
    entries = (group(*inner, weight=1, reweight_temperature=0), nemo("c", weight=4))
    assert weights(*entries, reweight_temperature=0.5) == [
        round(UNIT / 6),
        round(UNIT / 6),
        round(UNIT * 2 / 3),
    ]
    deeper = group(group(*inner), weight=1, reweight_temperature=[1, 0.5])
    assert weights(deeper, nemo("c", weight=4)) == [
        round(UNIT / 25),
        round(UNIT * 4 / 25),
        round(UNIT * 4 / 5),
    ]
    with pytest.raises(ConfigError, match=r"has 2 numbers, and input_cfg has 1 level .*\[0\]"):
        weights(group(*inner, reweight_temperature=[1, 1]), nemo("c"))


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (
            [nemo("a", weight=1), nemo("b")],
            r"1 of 2 siblings have no weight \(config: input_cfg\[1\]\)",
        ),
        (
            [group(nemo("a", weight=-1), nemo("b", weight=1))],
            r"weight -1 is not .*\(config: input_cfg\[0\].input_cfg\[0\]\)",
        ),
        ([nemo("a", weight=math.nan), nemo("b", weight=1)], "weight nan is not"),
        ([nemo("a", weight=0), nemo("b", weight=0)], r"All weights are 0 \(config: input_cfg\)"),
        ([nemo([["a", 0], ["b", 0]])], "All weights are 0"),
        ([nemo([["a", 1], ["b", -2]])], "weight -2 is not"),
        ([nemo([["a", -2]])], "weight -2 is not"),
    ],
)
def test_impossible_weights_are_named_with_their_place(entries, said):
    with pytest.raises(ConfigError, match=said):
        weights(*entries)


numbers = st.integers(1, 10**6) | st.floats(1e-3, 1e6)
trees = st.recursive(
    numbers,
    lambda inner: st.tuples(numbers, st.lists(inner, min_size=1, max_size=4)),
    max_leaves=20,
)


@given(st.lists(trees, min_size=1, max_size=4))
def test_weights_multiply_down_every_tree(tree):
    fresh = itertools.count()
    expected: list[Fraction] = []

    def entries_of(nodes, share):
        total = sum(Fraction(str(n[0] if isinstance(n, tuple) else n)) for n in nodes)
        entries = []
        for node in nodes:
            weight = node[0] if isinstance(node, tuple) else node
            own = share * Fraction(str(weight)) / total
            if isinstance(node, tuple):
                entries.append(group(*entries_of(node[1], own), weight=weight))
            else:
                expected.append(own)
                entries.append(nemo(f"/m{next(fresh)}", weight=weight))
        return entries

    leaves = read_blend(entries_of(tree, Fraction(1))).leaves
    assert [leaf.weight for leaf in leaves] == [max(1, round(own * UNIT)) for own in expected]


# Keys and names


@given(st.permutations(range(7)))
def test_keys_do_not_depend_on_the_order_of_the_entries(order):
    entries = [
        nemo("/a"),
        nemo("/b", weight=None),
        tarred(1, tags={"x": 1}),
        nemo(["/c", "/d"]),
        nemo([["/e", 1], ["/f", 2]]),
        {"type": "lhotse", "cuts_path": "/g", "name": "mine"},
        group(nemo("/h"), nemo("/a")),
    ]

    def keys(blend):
        return {(path, leaf.key[:16]) for path, leaf in by_path(blend).items()}

    shuffled = read_blend([entries[place] for place in order])
    assert keys(shuffled) == keys(read_blend(entries))
    assert len({leaf.key for leaf in shuffled.leaves}) == 9
    assert sorted(leaf.key for leaf in shuffled.leaves) == sorted(
        leaf.key for leaf in read_blend(entries).leaves
    )


def test_keys_do_not_depend_on_weights_options_tags_or_files(write):
    (leaf,) = read_blend([nemo("x")]).leaves
    for other in (
        [nemo("x", weight=5, text_field="y", tags={"a": 1}, corpus="z")],
        [group(nemo("x"))],
        {"manifest_filepath": "x"},
        write([nemo("x")]),
    ):
        assert read_blend(other).leaves[0].key == leaf.key
    assert read_blend([nemo("y")]).leaves[0].key != leaf.key
    assert read_blend([{"type": "lhotse", "cuts_path": "x"}]).leaves[0].key != leaf.key


def test_the_same_data_twice_are_numbered_in_declared_order():
    leaves = read_blend([nemo("a"), group(nemo("a"), nemo("b")), nemo("a")]).leaves
    key = leaves[0].key
    assert [leaf.key for leaf in leaves if leaf.paths["manifest"] == ("a",)] == [
        key,
        f"{key}-2",
        f"{key}-3",
    ]


def test_a_name_is_the_key_and_comes_once():
    leaves = read_blend([nemo("a", name="mine"), nemo("b", name="x" * 25)]).leaves
    assert leaves[0].key == leaves[0].name == "mine"
    assert leaves[1].name == "x" * 25
    assert len(leaves[1].key) == 16
    with pytest.raises(
        ConfigError, match=r"name 'mine' is taken by config: \[0\] \(config: \[1\].input_cfg\[0\]\)"
    ):
        read_blend([nemo("a", name="mine"), group(nemo("b", name="mine"))])
    taken = read_blend([nemo("a")]).leaves[0].key
    with pytest.raises(ConfigError, match="is taken by"):
        read_blend([nemo("a"), nemo("b", name=taken)])
    with pytest.raises(ConfigError, match="is taken by"):
        read_blend([nemo("b", name=taken), nemo("a")])


def test_names_for_people():
    def names(*entries):
        return [leaf.name for leaf in read_blend(list(entries)).leaves]

    assert names(nemo("a{0..1}")) == ["a{0..1}"]
    assert names(nemo("a", language="en", corpus="libri", split="dev")) == ["libri/en/dev"]
    assert names(nemo("a", hours=5)) == ["a"]
    assert names(group(nemo("a", language="en"), nemo("b", name="n"), name="g")) == ["g/en", "g/n"]
    assert names(nemo("a", corpus="c"), nemo("b", corpus="c")) == ["c (a)", "c (b)"]
    assert names(nemo([["a", 1], ["b", 2]], name="n")) == ["n/a", "n/b"]
    assert names(nemo("a"), nemo("a")) == ["a (a)", "a (a)"]


def test_weighted_paths_keep_their_keys_whatever_their_entry_is_called():
    def keys(**labels):
        return [leaf.key for leaf in read_blend([nemo([["a", 1], ["b", 2]], **labels)]).leaves]

    assert keys(name="n") == keys() == [read_blend(nemo(p)).leaves[0].key for p in ("a", "b")]


# Finite or infinite


@pytest.mark.parametrize(
    ("config", "section", "finite"),
    [
        ([nemo()], None, True),
        ({"cuts_path": "c"}, None, True),
        ({"manifest_filepath": "m{0..3}"}, None, True),
        ([group(group(nemo()))], None, True),
        ([tarred()], None, False),
        ({"manifest_filepath": "m", "tarred_audio_filepaths": "t"}, None, False),
        ([nemo("a"), nemo("b")], None, False),
        ([nemo("a", weight=1), nemo("b", weight=0)], None, False),
        ({"manifest_filepath": ["a", "b"]}, None, False),
        ({"manifest_filepath": [["a"]]}, None, False),
        ({"manifest_filepath": [["a", 1], ["b", 1]]}, None, False),
        ({"input_cfg": [tarred()], "force_finite": True}, None, True),
        ([tarred(force_finite=True)], None, True),
        ([group(tarred(0), tarred(1), force_finite=True)], None, True),
        ({"a": {"validation_ds": {"input_cfg": [tarred()]}}}, "validation_ds", True),
        ({"a": {"test_ds": {"input_cfg": [tarred()]}}}, "a.test_ds", True),
        ({"input_cfg": [tarred()]}, "validation_ds", True),
        ({"input_cfg": [tarred()]}, "train_ds", False),
    ],
)
def test_what_ends(config, section, finite):
    assert read_blend(config, section=section).finite is finite


def test_a_part_of_a_blend_that_ends():
    with pytest.raises(NotSupportedError, match=r"\(config: \[1\].force_finite\)"):
        read_blend([tarred(0), tarred(1, force_finite=True)])


def test_a_pass_that_ends_says_that_weights_mean_nothing():
    entries = [nemo("a", weight=1), nemo("b", weight=2)]
    section = {"input_cfg": entries, "force_finite": True}
    assert "weights mean nothing" in read_blend(section).notes[0]
    assert read_blend({"input_cfg": entries}).notes == ()
    even = [nemo("a"), nemo("b"), nemo("c")]
    assert read_blend({"input_cfg": even, "force_finite": True}).notes == ()


def test_a_blend_goes_to_other_processes():
    blend = read_blend([group(nemo("a", tags={"x": 1}), tarred()), nemo("c")])
    assert pickle.loads(pickle.dumps(blend)) == blend


def test_thousands_of_entries_take_no_time(write):
    import time

    entries = [tarred(i, weight=i + 1, corpus=f"c{i}", language="en") for i in range(4000)]
    for entry in entries:
        entry["manifest_filepath"] = "${data_blend_dir}/" + entry["manifest_filepath"]
    path = write("\n".join(f"- {entry}" for entry in entries))
    start = time.process_time()
    assert len(read_blend(path, data_blend_dir="/d").leaves) == 4000
    assert time.process_time() - start < 10


def test_leaves_of_the_further_types(tmp_path):
    (tmp_path / "lines.txt").write_text("a\n")
    path = tmp_path / "blend.yaml"
    path.write_text(
        """
- type: lhotse_shar
  shar_path: [[/data/a, 3], [/data/b, 1]]
  slice_length: 5
- type: parquet
  manifest_filepath: [/data/x.parquet, /data/y.parquet]
  id_field: key
- type: lhotse_concat
  max_duration: 2.5
  gap: 0.5
  name: joined
  tags: {task: long}
  input_cfg:
  - type: nemo
    manifest_filepath: /data/m.json
    slice_length: 5
    extra_fields: [{type: text_iter, name: more, path: lines.txt}]
"""
    )
    blend = read_blend(path, overrides={"batch_size": 1})
    a, b, parquet, joined = blend.leaves
    assert (a.type, dict(a.paths), a.options.slice_length) == (
        "lhotse_shar",
        {"shar": ("/data/a",)},
        5,
    )
    assert a.weight == pytest.approx(3 * b.weight)
    assert parquet.paths == {"parquet": ("/data/x.parquet", "/data/y.parquet")}
    assert parquet.own["id_field"] == "key"
    assert joined.concatenation == Concatenation(max_duration=2.5, gap=0.5)
    assert joined.tags == {"task": "long"}
    # A manifest of plain files has no shards to take slices of.
    assert joined.options.slice_length is None
    assert [field.path for field in joined.extra_fields] == [str(tmp_path / "lines.txt")]
    assert parquet.concatenation is None
    assert not blend.finite


@pytest.mark.parametrize(
    ("entry", "finite"),
    [
        ({"type": "lhotse_shar", "shar_path": "/data/a"}, False),
        ({"type": "parquet", "manifest_filepath": "/data/a.parquet"}, False),
        ({"type": "lhotse_concat", "max_duration": 5, "cuts_path": "/data/c.jsonl"}, True),
    ],
)
def test_what_of_the_further_types_ends(entry, finite):
    assert read_blend([entry], overrides={"batch_size": 1}).finite is finite
    assert read_blend({"input_cfg": [entry], "batch_size": 1, "metadata_only": True}).finite


def test_a_section_may_name_shar_itself():
    blend = read_blend({"shar_path": "/data/a", "cuts_path": "/data/c.jsonl", "batch_size": 1})
    assert [leaf.type for leaf in blend.leaves] == ["lhotse_shar"]
    assert any("shar_path of config wins over cuts_path" in note for note in blend.notes)


CUTS = {"type": "lhotse", "cuts_path": "c.jsonl"}
TALKS = {"type": "multimodal_conversation", "manifest_filepath": "m.jsonl"}


@pytest.mark.parametrize(
    ("inner", "tags", "outer"),
    [
        # Speech has them all.
        ({**CUTS, "tags": {"b": 2}}, {"a": 1, "b": 2}, {}),
        # Of a conversation its own are turns, those of groups around it are not.
        ({**TALKS, "tags": {"b": 2}}, {"b": 2}, {"a": 1}),
        (TALKS, {}, {"a": 1}),
        ({**TALKS, "tags": {"a": 3}}, {"a": 3}, {}),
        # What makes conversations, and all inside it.
        (
            {
                "type": "lhotse_as_conversation",
                "tags": {"b": 2},
                "input_cfg": [
                    {"type": "group", "tags": {"c": 3}, "input_cfg": [{**CUTS, "tags": {"d": 4}}]}
                ],
            },
            {"b": 2, "c": 3, "d": 4},
            {"a": 1},
        ),
        # Speech stays speech.
        (
            {"type": "s2s_duplex_reverse_role", "tags": {"b": 2}, "input_cfg": [CUTS]},
            {"a": 1, "b": 2},
            {},
        ),
    ],
)
def test_tags_of_groups_make_no_turns(inner, tags, outer):
    (leaf,) = read_blend([{"type": "group", "tags": {"a": 1}, "input_cfg": [inner]}]).leaves
    assert dict(leaf.tags) == tags
    assert dict(leaf.outer_tags) == outer


def test_progress_of_the_same_data_made_something_else():
    blend = read_blend([CUTS, {"type": "lhotse_as_conversation", "input_cfg": [CUTS]}])
    plain, made = blend.leaves
    assert plain.key != made.key
    again = read_blend([{"type": "lhotse_as_conversation", "cuts_path": "c.jsonl"}, CUTS])
    assert [leaf.key for leaf in again.leaves] == [made.key, plain.key]
    assert (plain.kind, made.kind) == ("cut", "conversation")
