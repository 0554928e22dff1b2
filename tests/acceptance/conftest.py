from __future__ import annotations

import pytest

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
