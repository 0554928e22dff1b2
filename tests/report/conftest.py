"""A corpus for all tests of a module."""

from __future__ import annotations

import pytest

from support.small_blends import SmallCorpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield SmallCorpus.write(tmp_path_factory.mktemp("corpus"))
