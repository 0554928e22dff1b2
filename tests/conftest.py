"""Settings of the whole test suite."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from support import servers
from support.ais_emulator import AisEmulator
from support.impatience import be_impatient

settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("all", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("PLAYHEAD_HYPOTHESIS", "default"))


@pytest.fixture(autouse=True)
def _own_variables():
    """What a test sets for its process, or a command that runs in it, is gone after it."""
    before = {name: value for name, value in os.environ.items() if name.startswith("PLAYHEAD_")}
    yield
    for name in [name for name in os.environ if name.startswith("PLAYHEAD_")]:
        if name not in before:
            del os.environ[name]
    os.environ.update(before)
    if "playhead.storage.limits" in sys.modules:
        # They are read from variables once, and may have been read while those were others.
        sys.modules["playhead.storage.limits"].limits.cache_clear()


@pytest.fixture(scope="session")
def page_project(tmp_path_factory):
    """A folder with the files that pages of the documentation speak of: copy it."""
    from support.page_project import write_project

    return write_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory):
    """An S3 server, one for all tests of a process: use a bucket of your own."""
    with servers.seaweedfs(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture
def s3(seaweed, monkeypatch):
    """That server, found by the environment."""
    servers.use(monkeypatch, seaweed.environment())
    return seaweed


@pytest.fixture(scope="session")
def ais_server():
    """An emulated AIStore, one for all tests of a process."""
    with AisEmulator() as server:
        yield server


@pytest.fixture(scope="session")
def old_ais_server():
    """An AIStore of 4.9, which knows no ranges in batches."""
    with AisEmulator(batch_ranges=False) as server:
        yield server


@pytest.fixture
def ais(ais_server, monkeypatch):
    """That server doing nothing wrong, found by the environment; what is asked of it ends soon."""
    ais_server.heal()
    be_impatient(monkeypatch, ais_server)
    yield ais_server
    monkeypatch.undo()
    servers.use(monkeypatch, {})
