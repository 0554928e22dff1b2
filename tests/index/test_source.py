from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from playhead.errors import (
    BuildError,
    ConfigError,
    NotSupportedError,
    PlayheadError,
    SourceNotFoundError,
)
from playhead.index.source import stamp

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
        ("s3://b/m.json", NotSupportedError, "not local"),
    ],
)
def test_paths_that_are_no_files(tmp_path: Path, name: str, kind: type[PlayheadError], said: str):
    (tmp_path / "m.json").touch()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    path = name if "://" in name else f"{tmp_path}/{name}"
    with pytest.raises(kind, match=said) as caught:
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
