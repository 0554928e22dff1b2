"""Corpora and processes that the end-to-end tests share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from support.jobs import Server
from support.real_speech import made_once, write_digits, write_prompts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder a test session, the same for all of its worker processes."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "real-speech"


@pytest.fixture(scope="session", autouse=True)
def own_cache(shared_folder: Path) -> Iterator[None]:
    """Packs are cached in the session's folder, not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(shared_folder / "cache"))
        yield


@pytest.fixture(scope="session")
def prompts(shared_folder: Path) -> Path:
    return made_once(shared_folder / "prompts", write_prompts)


@pytest.fixture(scope="session")
def digits(shared_folder: Path) -> Path:
    return made_once(shared_folder / "digits", write_digits)


@pytest.fixture(scope="session")
def server(own_cache: None) -> Iterator[Server]:
    server = Server()
    yield server
    server.close()
