"""Configs and states that the documentation shows: Playhead reads them."""

from __future__ import annotations

import importlib
import inspect
import json

import pytest
import yaml

from playhead.blend import read_blend
from playhead.config import STATUS
from playhead.plan.position import Position
from support.corpus import nemo_corpus
from support.pages import PAGES, blocks_of

INPUTS = {"input_cfg", "manifest_filepath", "cuts_path", "shar_path"}


def blocks(*languages):
    found = [block for page in PAGES for block in blocks_of(page, *languages) if not block.reason]
    return pytest.mark.parametrize("block", found, ids=lambda block: block.place)


def sections_with_data(content, path=""):
    """Dotted paths of the sections that name data; an empty one for a config that is one."""
    if isinstance(content, list) or INPUTS & set(content):
        yield path
        return
    for key, value in content.items():
        if isinstance(value, dict):
            yield from sections_with_data(value, f"{path}.{key}".lstrip("."))


def classes(content):
    """Classes that a config of LightningCLI names, with their arguments."""
    if isinstance(content, list):
        for value in content:
            yield from classes(value)
    elif isinstance(content, dict):
        if "class_path" in content:
            yield content["class_path"], content.get("init_args", {})
        for value in content.values():
            yield from classes(value)


@blocks("yaml")
def test_a_config_of_a_page_is_one(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    manifest = str(nemo_corpus(tmp_path, [0.5]))
    more = [{"type": "nemo", "manifest_filepath": manifest}]
    (tmp_path / "more_data.yaml").write_text(json.dumps(more))
    content = yaml.safe_load(block.code)
    path = tmp_path / "page.yaml"
    path.write_text(block.code)
    sections = list(sections_with_data(content))
    for section in sections:
        read_blend(str(path), section=section or None, data_blend_dir="data")
    named = list(classes(content))
    for name, arguments in named:
        module, _, attribute = name.rpartition(".")
        inspect.signature(getattr(importlib.import_module(module), attribute)).bind(**arguments)
    if not sections and not named:
        # Options alone: those of a config that has data besides.
        assert set(content) <= set(STATUS), f"{block.place}: no config of Playhead"
        read_blend({"manifest_filepath": manifest, **content}, strict=True)


@blocks("json", "jsonl")
def test_json_of_a_page_is_json_and_a_position_one(block):
    values = [block.code] if block.language == "json" else block.code.splitlines()
    for value in map(json.loads, values):
        if isinstance(value, dict) and {"window", "chain"} <= set(value):
            assert Position.from_json(value).to_json() == value
