"""What commands write and refuse; those that fail, say nothing, or are not read to their end."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from playhead.errors import NotSupportedError, StorageError
from playhead.storage import access
from playhead.storage.base import ByteRange, Stat
from playhead.storage.limits import limits


@pytest.fixture
def short_limits(monkeypatch):
    monkeypatch.setenv("PLAYHEAD_STORAGE_REQUEST_SECONDS", "0.3")
    limits.cache_clear()
    yield
    monkeypatch.undo()
    limits.cache_clear()


def is_running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_a_command_writes_comes_in_blocks_of_the_size_wanted():
    uri = "pipe:printf 0123; sleep 0.05; printf 456789"
    assert list(access.stream(uri, 0, 4)) == [b"0123", b"4567", b"89"]
    assert b"".join(access.stream(uri, 5, 4)) == b"56789"
    assert list(access.stream("pipe:true")) == []


def test_nothing_is_known_before_it_ran():
    assert access.stats(["pipe:cat /nowhere"]) == [Stat(0, 0)]


def test_it_has_no_middle_and_is_no_folder():
    with pytest.raises(NotSupportedError, match="from its start"):
        access.read_many([ByteRange("pipe:cat a", 4, 2)])
    with pytest.raises(NotSupportedError, match="no folder"):
        access.list_files("pipe:ls")
    with pytest.raises(NotSupportedError, match="written to"):
        access.write("pipe:cat", b"")


@pytest.mark.parametrize("command", ["echo data; echo no such key >&2; exit 3", "exit 3 | cat"])
def test_a_command_that_fails_is_an_error_after_what_it_wrote(command):
    with pytest.raises(StorageError, match="exit code 3") as caught:
        list(access.stream(f"pipe:{command}"))
    assert ("no such key" in str(caught.value)) == ("key" in command)


def test_a_command_that_writes_nothing_is_given_up(short_limits):
    with pytest.raises(StorageError, match=r"wrote nothing for 0\.3 s"):
        list(access.stream("pipe:printf x; sleep 60"))
    with pytest.raises(StorageError, match="did not end"):
        list(access.stream("pipe:exec >&-; sleep 60"))


def test_a_command_that_is_not_read_to_its_end_is_ended_with_all_that_it_started(tmp_path):
    uri = f"pipe:sleep 60 & echo $! > {tmp_path}/pid; cat /dev/zero"
    with closing(access.stream(uri)) as blocks:
        assert not any(next(iter(blocks)))
        pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while is_running(pid):
        assert time.monotonic() < deadline, "the command's child still runs"
        os.sched_yield()
