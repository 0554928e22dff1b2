from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import playhead
from playhead.blend import read_blend, types
from playhead.blend.types import declared, has_turns
from playhead.errors import ConfigError, NotSupportedError
from playhead.formats import LhotseCuts, Nemo, Parquet, format_names, get_format, registry
from playhead.formats.registry import register_type


@pytest.fixture(autouse=True)
def own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_FORMATS", dict(registry._FORMATS))
    monkeypatch.setattr(types, "_TYPES", dict(types._TYPES))


def lines_type(**methods: Any) -> type:
    names = ("sources", "columns", "example")
    return type("Lines", (), {**dict.fromkeys(names, lambda *_: None), **methods})


def table_type(**methods: Any) -> type:
    names = ("sources", "scan", "groups", "load", "example")
    return type("Table", (), {**dict.fromkeys(names, lambda *_: None), **methods})


def test_the_types_that_come_with_it():
    assert isinstance(get_format("nemo"), Nemo)
    assert get_format("nemo") is get_format("nemo_tarred")
    assert isinstance(get_format("lhotse"), LhotseCuts)
    assert isinstance(get_format("parquet"), Parquet)
    assert set(format_names()) >= {"lhotse", "lhotse_shar", "nemo", "nemo_tarred", "parquet"}
    with pytest.raises(NotSupportedError, match=r"'elsewhere' cannot be read.*lhotse, "):
        get_format("elsewhere")


@pytest.mark.parametrize("make", [lines_type, table_type])
def test_one_decorator_makes_a_type_known_to_blends_and_readers(make):
    cls = make()
    decorated = playhead.register_type(
        "mine",
        inputs={"list": "list_path", "extra": "extra_path"},
        optional=["extra"],
        own={"depth": 3},
        is_stream=True,
    )(cls)
    assert decorated is cls
    assert isinstance(get_format("mine"), cls)
    known = declared("mine")
    assert known is not None
    assert known.inputs == {"list": "list_path", "extra": "extra_path"}
    assert (known.optional, known.own, known.is_stream) == (
        frozenset({"extra"}),
        {"depth": 3},
        True,
    )


def test_the_same_class_may_come_again_from_another_import():
    for module in ("__main__", "__mp_main__", "__main__"):
        cls = lines_type(__module__=module)
        register_type("mine", inputs={"list": "list_path"})(cls)
        assert type(get_format("mine")) is cls


@pytest.mark.parametrize(
    "other",
    [
        type("Other", (lines_type(),), {"__module__": "somewhere"}),
        lines_type(__module__="somewhere.else"),
    ],
)
def test_another_class_needs_another_name(other):
    register_type("mine", inputs={"list": "list_path"})(lines_type(__module__="somewhere"))
    with pytest.raises(ConfigError, match=r"`mine` is read by somewhere\.Lines already"):
        register_type("mine", inputs={"list": "list_path"})(other)
    with pytest.raises(ConfigError, match=r"`nemo` is read by playhead\.formats\.nemo\.Nemo"):
        register_type("nemo", inputs={"list": "list_path"})(lines_type())
    assert isinstance(get_format("nemo"), Nemo)


@pytest.mark.parametrize(
    ("cls", "says"),
    [
        (lines_type(example=None), "has no method example.*playhead.formats.Format says"),
        (lines_type(columns=None, sources=None), "has no method sources and no columns"),
        (type("Empty", (), {}), "has no method sources and no columns and no example"),
        (table_type(load=None), "has no method load.*playhead.formats.TableFormat says"),
        (table_type(scan=None, groups=None), "has no method scan and no groups.*TableFormat"),
        (lambda: None, "which is no class"),
    ],
)
def test_what_is_missing_is_named_at_once(cls, says):
    with pytest.raises(ConfigError, match=f"(?i)`mine`.*{says}"):
        register_type("mine", inputs={"list": "list_path"})(cls)
    assert "mine" not in format_names()
    assert declared("mine") is None


def test_what_it_declares_has_to_hold_together():
    with pytest.raises(ConfigError, match=r"no role 'other'.*Name one of list"):
        register_type("mine", inputs={"list": "list_path"}, optional=["other"])(lines_type())
    with pytest.raises(ConfigError, match="names no files"):
        register_type("mine", inputs={})(lines_type())
    assert "mine" not in format_names()
    register_type("mine", inputs={"list": "list_path"})(lines_type())
    with pytest.raises(ConfigError, match="`mine` is declared twice"):
        register_type("mine", inputs={"list": "path"})(lines_type())


def test_importing_the_package_imports_nothing_for_it():
    code = (
        "import sys, playhead\n"
        "assert 'register_type' in playhead.__all__\n"
        "bad = {'torch', 'lhotse', 'numpy', 'pyarrow'} & set(sys.modules)\n"
        "assert not bad, bad\n"
        "playhead.register_type\n"
        "assert not {'torch', 'lhotse'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_samples_of_another_kind():
    chats = register_type("chats_of_mine", inputs={"chats": "chats_path"}, kind="conversation")
    made = chats(lines_type())
    assert isinstance(get_format("chats_of_mine"), made)
    blend = read_blend([{"type": "chats_of_mine", "chats_path": "a", "name": "mine"}])
    assert blend.leaves[0].kind == "conversation"
    assert has_turns("chats_of_mine")
    with pytest.raises(ConfigError, match=r"kind 'talk'\. Use one of cut, text, pair"):
        register_type("talks_of_mine", inputs={"chats": "chats_path"}, kind="talk")
