from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import DataError, SourceNotFoundError
from playhead.storage import local, retries


@pytest.fixture
def content(tmp_path):
    data = os.urandom(300_000)
    path = tmp_path / "file.bin"
    path.write_bytes(data)
    return str(path), data


@pytest.fixture
def calls(monkeypatch):
    """Every `pread` that was made: (count, offset)."""
    made = []
    real = os.pread

    def pread(descriptor, count, offset):
        made.append((count, offset))
        return real(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", pread)
    return made


@pytest.fixture
def naps(monkeypatch):
    slept = []
    monkeypatch.setattr(retries.time, "sleep", slept.append)
    return slept


def failing(monkeypatch, name, times, error):
    """Let the first `times` calls of `os.name` fail."""
    real = getattr(os, name)
    left = [times]

    def call(*arguments, **keywords):
        if left[0]:
            left[0] -= 1
            raise OSError(error, os.strerror(error))
        return real(*arguments, **keywords)

    monkeypatch.setattr(os, name, call)


@given(
    ranges=st.lists(st.tuples(st.integers(0, 299_000), st.integers(0, 1000)), max_size=40),
)
def test_ranges_come_as_asked_for(tmp_path_factory, ranges):
    path = tmp_path_factory.getbasetemp() / "ranges.bin"
    if not path.exists():
        path.write_bytes(os.urandom(300_000))
    data = path.read_bytes()
    offsets, sizes = [o for o, _ in ranges], [s for _, s in ranges]
    expected = [data[o : o + s] for o, s in ranges]
    assert local.read_ranges(str(path), offsets, sizes) == expected


def test_near_ranges_are_one_read(content, calls):
    path, data = content
    gap = local.MERGE_GAP
    far = 3 * gap
    parts = local.read_ranges(path, [far, 0, 10, 100 + gap], [5, 10, 90, 7])
    assert parts == [data[far : far + 5], data[:10], data[10:100], data[100 + gap : 107 + gap]]
    assert sorted(calls, key=lambda call: call[1]) == [(107 + gap, 0), (5, far)]


def test_a_range_inside_another_does_not_cut_it_short(content, calls):
    path, data = content
    assert local.read_ranges(path, [0, 10, 150_000], [150_000, 5, 10]) == [
        data[:150_000],
        data[10:15],
        data[150_000:150_010],
    ]
    assert len(calls) == 1


def test_a_file_that_ends_early_is_an_error_with_place_and_lengths(content):
    path, _ = content
    with pytest.raises(DataError) as caught:
        local.read_ranges(path, [299_990], [20])
    for part in (path, "byte 299990", "20 bytes", "10 are there"):
        assert part in str(caught.value)


def test_short_reads_are_completed(content, monkeypatch):
    path, data = content
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: real(fd, min(n, 1000), at))
    assert local.read_ranges(path, [5], [10_000]) == [data[5:10_005]]


def test_a_missing_file_is_named(tmp_path):
    for ask in (local.size, lambda path: local.read_ranges(path, [0], [1])):
        with pytest.raises(SourceNotFoundError, match=r"nowhere\.tar"):
            ask(str(tmp_path / "nowhere.tar"))


@pytest.mark.parametrize("error", [errno.EIO, errno.ESTALE, errno.EAGAIN, errno.ETIMEDOUT])
def test_transient_errors_are_retried_with_growing_pauses(content, monkeypatch, naps, error):
    path, data = content
    failing(monkeypatch, "pread", 3, error)
    assert local.read_ranges(path, [3], [4]) == [data[3:7]]
    assert len(naps) == 3
    assert naps == sorted(naps)


def test_retries_end(content, monkeypatch, naps):
    path, _ = content
    failing(monkeypatch, "pread", 10**6, errno.EIO)
    with pytest.raises(OSError, match=r"tried 5 times") as caught:
        local.read_ranges(path, [0], [4])
    assert caught.value.errno == errno.EIO
    assert caught.value.filename == path
    assert len(naps) == 4


def test_a_size_is_retried_too(content, monkeypatch, naps):
    path, data = content
    failing(monkeypatch, "stat", 2, errno.ESTALE)
    assert local.size(path) == len(data)
    assert len(naps) == 2


def test_other_errors_are_not_retried(content, monkeypatch, naps):
    path, _ = content
    failing(monkeypatch, "pread", 1, errno.EINVAL)
    with pytest.raises(OSError, match="Invalid"):
        local.read_ranges(path, [0], [4])
    assert naps == []


def test_a_stale_handle_is_opened_anew(content, monkeypatch, naps):
    path, data = content
    local.read_ranges(path, [0], [1])
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda *a, **k: opened.append(a[0]) or real(*a, **k))
    local.read_ranges(path, [1], [1])
    assert opened == []
    failing(monkeypatch, "pread", 1, errno.ESTALE)
    assert local.read_ranges(path, [1], [1]) == [data[1:2]]
    assert opened == [path]


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_open_files_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_descriptors", local._Descriptors())
    monkeypatch.setattr(local._Descriptors, "limit", 8)
    paths = [str(tmp_path / f"{i}") for i in range(40)]
    for i, path in enumerate(paths):
        Path(path).write_bytes(b"%03d" % i)
    before = open_files()
    for i, path in enumerate(paths):
        assert local.read_ranges(path, [0], [3]) == [b"%03d" % i]
    assert open_files() <= before + 8


def test_a_replaced_file_is_read_anew_once_its_size_is_asked_for(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    assert local.read_ranges(str(path), [0], [3]) == [b"old"]
    (tmp_path / "b").write_bytes(b"new")
    (tmp_path / "b").replace(path)
    assert local.size(str(path)) == 3
    assert local.read_ranges(str(path), [0], [3]) == [b"new"]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_reads_even_if_a_thread_held_the_lock(content):
    path, data = content
    local.read_ranges(path, [0], [1])
    with local._descriptors._lock:
        child = os.fork()
        if child == 0:
            local.size(path)
            same = local.read_ranges(path, [7], [9]) == [data[7:16]]
            os._exit(0 if same else 1)
        deadline = threading.Timer(20, os.kill, (child, 9))
        deadline.start()
        _, status = os.waitpid(child, 0)
        deadline.cancel()
    assert status == 0


def test_threads_read_what_they_ask_for(tmp_path, monkeypatch):
    monkeypatch.setattr(local._Descriptors, "limit", 2)
    paths = [str(tmp_path / f"{i}") for i in range(6)]
    for i, path in enumerate(paths):
        Path(path).write_bytes(bytes([i]) * 100)
    wrong = []

    def read():
        for turn in range(200):
            i = turn % 6
            if local.read_ranges(paths[i], [turn % 50], [50]) != [bytes([i]) * 50]:
                wrong.append(i)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "loop", "file/inside"])
def test_what_no_file_can_be_called_does_not_exist(tmp_path, name):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    with pytest.raises(SourceNotFoundError):
        local.size(str(tmp_path / name))


@pytest.mark.parametrize(
    "read",
    [
        lambda path: local.read_ranges(path, [0], [1]),
        lambda path: list(local.stream(path, 0, 10)),
    ],
)
def test_nobody_waits_for_a_pipe(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    caught = []

    def attempt():
        try:
            read(str(tmp_path / "pipe"))
        except DataError as error:
            caught.append(str(error))

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(30)
    assert len(caught) == 1
    assert "This is a pipe or a device, not a file" in caught[0]
