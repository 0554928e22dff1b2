from __future__ import annotations

import pytest

from playhead.blend.sources import sources_of
from playhead.config import Spot
from playhead.errors import ConfigError

WHERE = Spot("blend.yaml", ("input_cfg", 2))


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")


def paths(manifest, tar=None, base=None):
    specs = {"manifest": manifest} | ({} if tar is None else {"tar": tar})
    return [dict(s.paths) for s in sources_of("nemo", specs, base=base, where=WHERE)]


def identities(manifest, tar=None, type_="nemo"):
    specs = {"manifest": manifest} | ({} if tar is None else {"tar": tar})
    return [s.identity for s in sources_of(type_, specs, base=None, where=WHERE)]


def test_a_pattern_is_one_source():
    assert paths("m_OP_0..1_CL_.json", "a_OP_0..1_CL_.tar") == [
        {"manifest": ("m0.json", "m1.json"), "tar": ("a0.tar", "a1.tar")}
    ]


def test_lists_are_one_source_and_their_items_are_expanded():
    expected = [{"manifest": ("m0.json", "m1.json", "n.json"), "tar": ("a0.tar", "a1.tar", "b")}]
    assert paths(["m{0..1}.json", "n.json"], ["a{0..1}.tar", "b"]) == expected
    assert paths([["m{0..1}.json"], ["n.json"]], [["a{0..1}.tar"], ["b"]]) == expected
    assert paths(["m{0..1}.json", ["n.json"]], [["a{0..1}.tar"], "b"]) == expected


def test_weighted_paths_are_a_source_each():
    specs = {"manifest": [["m{0..1}.json", 3], ["n.json", 0.5]], "tar": [["a{0..1}.tar"], ["b"]]}
    found = sources_of("nemo_tarred", specs, base=None, where=WHERE)
    assert [source.weight for source in found] == [3, 0.5]
    assert [dict(source.paths) for source in found] == [
        {"manifest": ("m0.json", "m1.json"), "tar": ("a0.tar", "a1.tar")},
        {"manifest": ("n.json",), "tar": ("b",)},
    ]
    assert [source.first for source in found] == ["m{0..1}.json", "n.json"]
    assert paths([["m.json", 2]]) == [{"manifest": ("m.json",)}]


def test_weights_may_stand_with_the_tars_too():
    assert len(paths([["m", 1], ["n", 2]], [["a", 1], ["b", 2]])) == 2
    with pytest.raises(ConfigError, match="tar b has a weight that its manifest has not"):
        paths([["m", 1], ["n", 2]], [["a", 1], ["b", 3]])
    with pytest.raises(ConfigError, match="tar a has a weight that its manifest has not"):
        paths([["m"], ["n"]], [["a", 1], ["b", 3]])


def test_one_manifest_may_have_a_list_of_tars():
    assert paths("m.json", ["a", "b"]) == [{"manifest": ("m.json",), "tar": ("a", "b")}]
    assert paths(["m0", "m1"], "a{0..1}") == [{"manifest": ("m0", "m1"), "tar": ("a0", "a1")}]


@pytest.mark.parametrize(
    ("manifest", "tar"),
    [
        (["m", "n"], ["a"]),
        ([["m"]], [["a"], ["b"]]),
        ([["m", 1], ["n", 1]], ["a"]),
        ([["m", 1], ["n", 1]], "a"),
    ],
)
def test_lists_of_different_length_are_never_cut(manifest, tar):
    with pytest.raises(ConfigError, match=r"have \d and \d items \(blend.yaml: input_cfg\[2\]\)"):
        paths(manifest, tar)


@pytest.mark.parametrize(
    "spec",
    [
        [],
        "",
        [""],
        5,
        {"a": 1},
        [["a", "b"]],
        [["a", 1, 2]],
        [[1, "a"]],
        ["a\0b"],
        [["a", True]],
        [[]],
        [5],
    ],
)
def test_unknown_forms(spec):
    with pytest.raises(ConfigError, match=r"manifest paths .* have no known form"):
        paths(spec)


def test_some_weights_are_not_enough():
    with pytest.raises(ConfigError, match="Some manifest paths have a weight and some have none"):
        paths([["m", 1], ["n"]])


def test_an_unknown_form_is_shown_in_short():
    with pytest.raises(ConfigError) as caught:
        paths([["a", "b"]] * 100)
    assert len(str(caught.value)) < 300


def test_which_sources_are_listed():
    def listed(spec):
        return sources_of("nemo", {"manifest": spec}, base=None, where=WHERE)[0].is_listed

    assert not listed("m{0..3}.json")
    assert listed(["m.json"])
    assert listed([["m.json", 1]])


def test_relative_paths_lie_in_the_working_directory_then_beside_the_file(tmp_path):
    base = tmp_path / "configs"
    base.mkdir()
    (base / "m0.json").touch()
    assert paths("m{0..1}.json", base=base) == [
        {"manifest": (f"{base}/m0.json", f"{base}/m1.json")}
    ]
    assert paths("n{0..1}.json", base=base) == [{"manifest": ("n0.json", "n1.json")}]
    assert paths("m{0..1}.json") == [{"manifest": ("m0.json", "m1.json")}]
    (tmp_path / "cwd/m0.json").touch()
    assert paths("m{0..1}.json", base=base) == [{"manifest": ("m0.json", "m1.json")}]


def test_paths_that_are_not_relative_stay(tmp_path):
    assert paths("/d/m.json", base=tmp_path) == [{"manifest": ("/d/m.json",)}]
    assert paths("s3://b/m{0..1}", base=tmp_path) == [{"manifest": ("s3://b/m0", "s3://b/m1")}]


def test_a_file_with_parentheses_beside_the_config(tmp_path):
    base = tmp_path / "take (1,2)"
    base.mkdir()
    (base / "m(1..2).json").touch()
    (base / "x1.json").touch()
    assert paths("m(1..2).json", base=base) == [{"manifest": (f"{base}/m(1..2).json",)}]
    assert paths("x(1..2).json", base=base) == [
        {"manifest": (f"{base}/x1.json", f"{base}/x2.json")}
    ]


def test_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert paths("~/m{0..1}.json") == [{"manifest": ("/home/me/m0.json", "/home/me/m1.json")}]


def test_identities_are_of_type_and_paths_as_declared():
    assert identities("m{0..1}.json") == ["f056c7d9917a1281"]
    assert identities("m{0..1}.json") == identities(["m{0..1}.json"])
    assert identities(["m", "n"]) == identities([["m"], ["n"]])
    different = [
        *identities("m{0..1}.json"),
        *identities(["m0.json", "m1.json"]),
        *identities(["m1.json", "m0.json"]),
        *identities("m{0..1}.json", type_="lhotse"),
        *identities("m{0..1}.json", "a.tar"),
        *identities([["p", 1], ["q", 2]]),
    ]
    assert len(set(different)) == len(different)
    assert identities([["p", 1], ["q", 2]]) == identities([["p", 7], ["q", 0]])
    assert identities([["p", 1]]) == identities("p")


def test_where_the_files_lie_does_not_enter_the_identity(tmp_path):
    (tmp_path / "m.json").touch()
    one, two = (
        sources_of("nemo", {"manifest": "m.json"}, base=base, where=WHERE)[0]
        for base in (None, tmp_path)
    )
    assert one.identity == two.identity
    assert one.paths != two.paths
