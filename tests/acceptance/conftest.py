from __future__ import annotations

from typing import Any

import pytest

from support.talk import tokenizer
from support.talk_cuts import FORMS
from support.ten_cuts import NUM, Corpus, make


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Corpus:
    return make(tmp_path_factory.mktemp("ten"))


@pytest.fixture(scope="session")
def varied(tmp_path_factory) -> Corpus:
    """The same with lengths from 0.2 to 2.0 s."""
    return make(tmp_path_factory.mktemp("varied"), [0.2 * (n + 1) for n in range(NUM)])


@pytest.fixture(scope="session")
def talk(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """Entries of a corpus of every type of text, conversation and duplex speech, by its name."""
    found = {}
    for name, form in FORMS.items():
        found[name] = form.write(tmp_path_factory.mktemp("talk"))
    return found


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> str:
    """The path of a tokenizer."""
    return tokenizer(tmp_path_factory.mktemp("model"), "json")
