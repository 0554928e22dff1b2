"""Processes that were forked from one that asked a store ask it themselves."""

from __future__ import annotations

import os
import signal
import traceback

import pytest

from playhead.errors import MissingExtraError, StorageError
from playhead.storage import access, obstore_library
from support import servers

DATA = bytes(range(256)) * 100


@pytest.fixture
def uri(tmp_path, monkeypatch):
    (tmp_path / "a.bin").write_bytes(DATA)
    with servers.caddy(tmp_path, logs=tmp_path / "logs") as server:
        servers.use(monkeypatch, {})
        yield f"{server.url}/a.bin"


def forked(act) -> int:
    """The exit status of a child that does something; it is killed if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            act()
        except BaseException:  # noqa: BLE001 - a child ends here, whatever it is
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def reads(uri):
    assert access.read_ranges(uri, [300], [5]) == [DATA[300:305]]


def test_a_child_asks_as_its_parent_does(uri):
    reads(uri)
    assert forked(lambda: reads(uri)) == 0
    reads(uri)
    assert forked(lambda: reads(uri)) == 0


def test_a_child_of_a_child_asks_too(uri):
    reads(uri)

    def act():
        reads(uri)
        assert forked(lambda: reads(uri)) == 0

    assert forked(act) == 0


def test_a_child_whose_parent_never_asked_asks(uri):
    assert forked(lambda: reads(uri)) == 0


def test_what_cannot_be_loaded_again_is_said_with_its_cure(uri, monkeypatch):
    reads(uri)

    def fail(path):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(obstore_library, "_copied", fail)

    def act():
        with pytest.raises(StorageError, match="forkserver"):
            reads(uri)

    assert forked(act) == 0


def test_a_missing_library_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "obstore", None)
    servers.use(monkeypatch, {})
    with pytest.raises(MissingExtraError, match=r"playhead\[s3\]"):
        access.size("s3://bucket/a")
