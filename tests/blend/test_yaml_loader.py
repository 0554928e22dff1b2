from __future__ import annotations

import gc
import math

import pytest

from playhead.blend.yaml_loader import parse_yaml
from playhead.errors import ConfigError


def parse(text: str):
    return parse_yaml(text.encode(), "blend.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000.0),
        ("-1.5E-2", -0.015),
        (".5", 0.5),
        ("+2.", 2.0),
        ("1_000.5", 1000.5),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("17", 17),
        ("0x10", 16),
        ("true", True),
        ("FALSE", False),
        ("no", "no"),
        ("on", "on"),
        ("y", "y"),
        ("2020-01-01", "2020-01-01"),
        ("~", None),
        ("1e", "1e"),
        ("e3", "e3"),
        ("1.2.3", "1.2.3"),
        ("'1e3'", "1e3"),
        ("12:30", 750),
    ],
)
def test_plain_values(text, value):
    assert parse(f"- {text}") == [value]
    assert type(parse(f"- {text}")[0]) is type(value)


def test_not_a_number_is_a_number():
    assert math.isnan(parse("[.nan]")[0])


def test_a_key_that_comes_twice_is_named_with_its_line():
    with pytest.raises(ConfigError, match=r"the key 'weight' comes twice \(blend.yaml:3\)"):
        parse("- type: nemo\n  weight: 1\n  weight: 2\n")


def test_anchors_and_merges():
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a], z: 1}\n"
    assert parse(text)["b"] == {"x": 1, "y": 3}
    assert parse(text)["c"] == {"x": 1, "y": 2, "z": 1}
    assert parse("a: &a {x: 1}\nb: &b {y: 2}\nc: {<<: *a, <<: *b}\n")["c"] == {"x": 1, "y": 2}


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\t- a", "- !!python/name:os.system x"])
def test_what_is_not_yaml_is_named_with_its_line(text):
    with pytest.raises(ConfigError, match=r"not valid YAML: .* \(blend.yaml:[12]\)"):
        parse(text)


def test_bytes_that_are_no_text():
    with pytest.raises(ConfigError, match="not valid YAML"):
        parse_yaml(b"\xff\xfe\xff", "blend.yaml")


def test_the_collector_is_as_it_was():
    assert gc.isenabled()
    parse("a: 1")
    assert gc.isenabled()
    with pytest.raises(ConfigError):
        parse("a: [")
    assert gc.isenabled()
    gc.disable()
    try:
        parse("a: 1")
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("text", ["a: &a [*a]", "&a {b: {c: [*a]}}", "a: &a {b: *a, c: &c [*c]}"])
def test_what_holds_itself_is_refused(text):
    with pytest.raises(ConfigError, match=r"The config holds itself \(blend.yaml\)"):
        parse(text)


def test_what_is_used_twice_does_not_hold_itself():
    assert parse("a: &a [1, &b {c: 2}]\nd: [*a, *a, *b]")["d"][0] == [1, {"c": 2}]


def test_keys_are_texts():
    assert parse("1: {true: x, 2.5: y}\nnull: z") == {"1": {"True": "x", "2.5": "y"}, "None": "z"}
