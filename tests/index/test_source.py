from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from tests.support.stores import MemoryStore, plugged_in

from playhead.errors import (
    BuildError,
    ConfigError,
    PlayheadError,
    SourceNotFoundError,
)
from playhead.index.source import LineBlock, check_unchanged, read_lines, stamp, stamps

if TYPE_CHECKING:
    from pathlib import Path


def test_size_and_time(tmp_path: Path):
    path = tmp_path / "m.json"
    path.write_bytes(b"12345")
    os.utime(path, ns=(1, 7_000))
    assert stamp(str(path)) == (5, 7_000)
    (tmp_path / "link.json").symlink_to(path)
    assert stamp(str(tmp_path / "link.json")) == (5, 7_000)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("none.json", SourceNotFoundError, "does not exist"),
        ("m.json/x", SourceNotFoundError, "does not exist"),
        (".", ConfigError, "a folder, not a file"),
        ("pipe", ConfigError, "a pipe or a device, not a file"),
        ("loop", ConfigError, "cannot be a path: Too many levels"),
        ("x" * 300, ConfigError, "cannot be a path: File name too long"),
        ("m\0.json", ConfigError, "cannot be a path: embedded null"),
        ("s3://b/m.json", SourceNotFoundError, "does not exist"),
    ],
)
def test_paths_that_are_no_files(tmp_path: Path, name: str, kind: type[PlayheadError], said: str):
    (tmp_path / "m.json").touch()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    path = name if "://" in name else f"{tmp_path}/{name}"
    with plugged_in(MemoryStore()), pytest.raises(kind, match=said) as caught:
        stamp(path)
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        (errno.EACCES, ConfigError, "(?s)may not be looked at.*Give the right"),
        (errno.EIO, BuildError, "(?s)cannot be looked at.*Look after the disk"),
    ],
)
def test_what_the_system_refuses(monkeypatch, code: int, kind: type[PlayheadError], said: str):
    def fail(_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("playhead.index.source.os.stat", fail)
    with pytest.raises(kind, match=said) as caught:
        stamp("/data/m.json")
    assert "/data/m.json" in str(caught.value)


def test_files_and_objects_are_looked_at_together_and_keep_their_order(tmp_path: Path):
    (tmp_path / "m.json").write_bytes(b"12345")
    store = MemoryStore({"s3://b/x": b"123", "s3://b/y": b"1234"})
    paths = ["s3://b/y", str(tmp_path / "m.json"), "pipe:cat m.json", "s3://b/x"]
    with plugged_in(store):
        found = stamps(paths)
    assert [one.size for one in found] == [4, 5, 0, 3]
    assert found[1] == stamp(paths[1])
    assert found[0] == tuple(store.stats([paths[0]])[0])


def test_an_object_that_is_replaced_by_one_as_long_is_another():
    store = MemoryStore({"s3://b/x": b"123"})
    with plugged_in(store):
        before = stamp("s3://b/x")
        check_unchanged("s3://b/x", before)
        store.write("s3://b/x", b"321")
        with pytest.raises(BuildError, match="changed while it was read"):
            check_unchanged("s3://b/x", before)


def test_lines_of_objects_and_pipes_come_in_blocks(tmp_path: Path):
    lines = b"\xef\xbb\xbf" + b"".join(b'{"x": %d}\n' % number for number in range(1000)) + b"{}"
    (tmp_path / "m.json").write_bytes(lines)
    with plugged_in(MemoryStore({"s3://b/m.json": lines})):
        remote = list(read_lines("s3://b/m.json", 1024))
    assert remote == list(read_lines(str(tmp_path / "m.json"), 1024))
    assert len(remote) > 5
    assert list(read_lines(f"pipe:cat {tmp_path}/m.json", 1024)) == remote
    assert remote[-1] == LineBlock(b"{}", len(lines) - 2, 1000)
