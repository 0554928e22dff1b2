from __future__ import annotations

import pytest

from playhead.blend.yaml_tree import YamlTree, load_tree
from playhead.errors import ConfigError, SourceNotFoundError


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """The tree of a YAML text."""
    monkeypatch.setenv("PLACE", "/from/env")

    def load(text: str, data_blend_dir: str | None = None) -> YamlTree:
        path = tmp_path / "a.yaml"
        path.write_text(text)
        return load_tree(str(path), data_blend_dir=data_blend_dir)

    return load


def resolved(tree: YamlTree, *keys):
    value = tree.content
    for key in keys:
        value = value[key]
    return tree.resolve(value, keys)


def test_what_has_no_expression_is_the_same_object(tree):
    loaded = tree("a: {b: [1, {c: x}]}")
    assert loaded.resolve(loaded.content["a"], ["a"]) is loaded.content["a"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("${oc.env:PLACE}", "/from/env"),
        ("${oc.env:PLACE}/x_${number}.json", "/from/env/x_3.json"),
        ("${oc.env:NO_SUCH_PLACE,5}", "5"),
        ("${oc.env:NO_SUCH_PLACE,${oc.env:PLACE}}", "/from/env"),
        ("${number}", 3),
        ("${text}", "${number}!".replace("${number}", "3")),
        ("${top.inner}", {"x": 1, "y": 3}),
        ("${top.list[1]}", "two"),
        ("${top.list}", ["one", "two", "3"]),
        ("${input_cfg[0].type}", "nemo"),
        ("${input_cfg}", [{"type": "nemo"}]),
        ("${.sibling}", "near"),
        ("${..number}", 3),
        ("${oc.env:PLACE}/${.sibling}", "/from/env/near"),
        (r"\${number}", "${number}"),
        ("${oc.decode:'[1, 2]'}", [1, 2]),
    ],
)
def test_expressions_mean_what_they_mean_in_omegaconf(tree, expression, value):
    loaded = tree(
        "number: 3\n"
        "text: ${number}!\n"
        "top: {inner: {x: 1, y: '${number}'}, list: [one, two, '${number}']}\n"
        "input_cfg: [{type: nemo}]\n"
        f"here: {{sibling: near, value: {expression!r}}}\n".replace("\\\\", "\\")
    )
    if isinstance(value, list) and value[-1] == "3":
        value = ["one", "two", 3]
    assert resolved(loaded, "here", "value") == value
    assert resolved(loaded, "here") == {"sibling": "near", "value": value}


def test_an_expression_in_a_list_of_entries(tree):
    loaded = tree("- {a: 1, b: '${oc.env:PLACE}', c: '${.a}'}\n")
    assert loaded.resolve(loaded.content[0], [0]) == {"a": 1, "b": "/from/env", "c": 1}


def test_the_folder_of_the_data(tree):
    text = "data_blend_dir: /own\ninput_cfg: ['${data_blend_dir}/x']\n"
    assert resolved(tree(text), "input_cfg") == ["/own/x"]
    assert resolved(tree(text, "/given"), "input_cfg") == ["/given/x"]
    assert resolved(tree("- ${data_blend_dir}/x", "/given"), 0) == "/given/x"


def test_the_folder_of_the_data_reaches_the_files_that_are_named(tree, tmp_path):
    (tmp_path / "b.yaml").write_text("- ${data_blend_dir}/x")
    assert resolved(tree("data_blend_dir: ${oc.env:PLACE}").refer("b.yaml"), 0) == "/from/env/x"
    assert resolved(tree("a: 1", "/given").refer("b.yaml"), 0) == "/given/x"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: {b: '${oc.env:NO_SUCH_PLACE}'}", "`a.b` cannot be resolved.*NO_SUCH_PLACE"),
        ("a: {b: '${nowhere}/x'}", r"`a.b` cannot be resolved.*nowhere.*\(.*a\.yaml\)"),
        ("a: {b: '${data_blend_dir}/x'}", "Give `data_blend_dir`"),
        ("a: {b: '${.c}'}", "`a.b` cannot be resolved"),
        ("a: {b: '${unclosed'}", "`a.b` cannot be resolved"),
    ],
)
def test_expressions_that_lead_nowhere_are_named_with_their_place(tree, text, said):
    with pytest.raises(ConfigError, match=said):
        resolved(tree(text), "a", "b")


def test_what_nobody_asks_for_is_never_resolved(tree):
    loaded = tree("broken: ${nowhere}\nfine: ${oc.env:PLACE}\n")
    assert resolved(loaded, "fine") == "/from/env"


def test_an_expression_is_resolved_once_however_often_it_is_used(tree, monkeypatch):
    from omegaconf import OmegaConf

    loaded = tree("x: /d\nlist:\n" + "- {path: '${x}/a'}\n" * 1000)
    created: list[int] = []
    create = OmegaConf.create
    monkeypatch.setattr(OmegaConf, "create", lambda value: created.append(1) or create(value))
    assert resolved(loaded, "list") == [{"path": "/d/a"}] * 1000
    assert len(created) == 1


def test_a_missing_file(tree, tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"no such config \(gone.yaml\)"):
        load_tree("gone.yaml", data_blend_dir=None)
    with pytest.raises(SourceNotFoundError, match=r"gone.yaml, named by .*a\.yaml"):
        tree("a: 1").refer("gone.yaml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_tree(str(tmp_path), data_blend_dir=None)
    with pytest.raises(ConfigError, match="has to be a local file"):
        load_tree("s3://bucket/a.yaml", data_blend_dir=None)


@pytest.mark.parametrize("text", ["", "5", "just words"])
def test_a_file_that_is_no_config(tree, text):
    with pytest.raises(ConfigError, match="neither a list nor a mapping"):
        tree(text)
