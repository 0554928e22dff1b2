import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from playhead.storage import atomic
from playhead.storage.atomic import atomic_write, remove_stale

WRITE_FOREVER = """
import itertools, sys
from playhead.storage.atomic import atomic_write
for n in itertools.count():
    with atomic_write(sys.argv[1]) as file:
        for _ in range(64):
            file.write(b"%019d\\n" % n * 512)
    print(n, flush=True)
"""


def temporaries(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(".playhead-")]


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_the_name_appears_with_the_whole_file(tmp_path):
    target = tmp_path / "new" / "folder" / "a.bin"
    with atomic_write(target) as file:
        file.write(b"1")
        assert not target.exists()
        assert Path(file.name).parent == target.parent
        file.write(b"2")
    assert target.read_bytes() == b"12"
    assert temporaries(target.parent) == []


def test_a_failure_changes_nothing(tmp_path):
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")

    def fail():
        with atomic_write(target) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert target.read_bytes() == b"old"
    assert temporaries(tmp_path) == []


def test_bytes_reach_the_disk_before_the_name(tmp_path, monkeypatch):
    """In that order: data flushed, renamed, folder flushed."""
    events = []
    fsync, replace = os.fsync, Path.replace

    def spy_fsync(descriptor):
        events.append("folder" if Path(f"/proc/self/fd/{descriptor}").is_dir() else "data")
        fsync(descriptor)

    def spy_replace(self, other):
        events.append("rename")
        return replace(self, other)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(Path, "replace", spy_replace)
    with atomic_write(tmp_path / "a") as file:
        file.write(b"1")
    assert events == ["data", "rename", "folder"]


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "a") as file:
            file.write(b"1")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_sigkill_leaves_the_old_file_or_the_whole_new_one(tmp_path):
    target = tmp_path / "a.bin"
    for kill in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITE_FOREVER, str(target)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.003 * kill)
            process.send_signal(signal.SIGKILL)
        data = target.read_bytes()
        assert len(data) == 64 * 512 * 20
        assert len(set(data.split(b"\n"))) == 2, "lines of one writing and the empty end"
    left = temporaries(tmp_path)
    for path in left:
        age(path, 3600)
    assert remove_stale(tmp_path) == len(left)
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_files_in_work_and_of_others_are_left_alone(tmp_path):
    with atomic_write(tmp_path / "a") as file:
        mine = Path(file.name)
        age(mine, 3600)
        foreign = tmp_path / re.sub(r"-[0-9a-f]{8}-", "-00000000-", mine.name, count=1)
        foreign.touch()
        age(foreign, 86400)
        bystander = tmp_path / ".playhead-notes.tmp"
        bystander.touch()
        age(bystander, 1e7)
        young = tmp_path / f".playhead-{atomic._machine()}-1-2-3.tmp"
        young.touch()
        assert remove_stale(tmp_path) == 0
    age(foreign, 30 * 86400)
    age(young, 3600)
    assert remove_stale(tmp_path) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [".playhead-notes.tmp", "a"]


def test_no_folder_holds_nothing(tmp_path):
    assert remove_stale(tmp_path / "nowhere") == 0
