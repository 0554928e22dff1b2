from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from pathlib import Path

import filelock
import msgspec
import pytest

from playhead.errors import BuildError
from playhead.index import lock as lock_module
from playhead.index.lock import build_lock, machine_name

CONTEXT = multiprocessing.get_context("fork")


def holder_file(path: Path, machine: str, pid: int) -> Path:
    file = Path(f"{path}.holder")
    file.write_bytes(msgspec.json.encode({"machine": machine, "host": "elsewhere", "pid": pid}))
    return file


def hold(path: Path, seconds: float, held) -> None:
    with build_lock(path, wait_seconds=5):
        held.set()
        time.sleep(seconds)


def start_holder(path: Path, seconds: float):
    held = CONTEXT.Event()
    process = CONTEXT.Process(target=hold, args=(path, seconds, held))
    process.start()
    assert held.wait(10)
    return process


def a_dead_pid() -> int:
    process = CONTEXT.Process(target=int)
    process.start()
    process.join()
    assert process.pid is not None
    return process.pid


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "a.idxpack"


def test_the_lock_names_its_holder_and_beats(path: Path, monkeypatch):
    monkeypatch.setattr(lock_module, "BEAT_SECONDS", 0.01)
    with build_lock(path, wait_seconds=1):
        holder = Path(f"{path}.holder")
        said = msgspec.json.decode(holder.read_bytes())
        assert said == {"machine": machine_name(), "host": socket.gethostname(), "pid": os.getpid()}
        os.utime(holder, (1, 1))
        deadline = time.monotonic() + 5
        while holder.stat().st_mtime < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert not holder.exists()


def test_a_living_holder_is_waited_for_by_name(path: Path, monkeypatch):
    monkeypatch.setattr(lock_module, "BEAT_SECONDS", 0.05)
    process = start_holder(path, 60)
    said: list[str] = []
    # Silence is no death on the same machine: it may have been suspended.
    with (
        pytest.raises(BuildError, match=rf"Waited 0 s for process {process.pid} on .*a\.idxpack"),
        build_lock(path, wait_seconds=0.4, stale_seconds=0.1, on_wait=said.append),
    ):
        pass
    assert len(said) == 1
    assert f"process {process.pid}" in said[0]
    process.kill()
    process.join()


def test_a_killed_holder_is_replaced_at_once(path: Path):
    process = start_holder(path, 60)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    # It stays a zombie until it is joined: its number still answers.
    started = time.monotonic()
    with build_lock(path, wait_seconds=10):
        assert time.monotonic() - started < 5
    process.join()


def test_waiters_go_on_when_the_holder_is_done(path: Path):
    process = start_holder(path, 0.3)
    with build_lock(path, wait_seconds=10):
        pass
    process.join()
    assert process.exitcode == 0


def test_the_lock_is_free_after_an_error(path: Path):
    with pytest.raises(RuntimeError, match="inside"), build_lock(path, wait_seconds=1):
        raise RuntimeError("inside")
    with build_lock(path, wait_seconds=0):
        pass


def test_a_silent_holder_elsewhere_is_dead(path: Path):
    path.parent.mkdir()
    holder_file(path, "another machine", 1)
    started = time.monotonic()
    with build_lock(path, wait_seconds=10, stale_seconds=0.3):
        assert time.monotonic() - started >= 0.3
        assert b"another machine" not in Path(f"{path}.holder").read_bytes()


def test_a_beating_holder_elsewhere_is_alive(path: Path):
    """Its file system's locks do not reach this machine."""
    path.parent.mkdir()
    file = holder_file(path, "another machine", 4711)
    beat = CONTEXT.Process(target=_beat, args=(file,))
    beat.start()
    with (
        pytest.raises(BuildError, match="process 4711 on elsewhere"),
        build_lock(path, wait_seconds=1.0, stale_seconds=0.5),
    ):
        pass
    beat.kill()
    beat.join()


def _beat(file: Path) -> None:
    for i in range(1000):
        os.utime(file, ns=(i, i))
        time.sleep(0.02)


def test_a_lock_that_its_dead_machine_never_gave_back(path: Path):
    path.parent.mkdir()
    holder_file(path, "another machine", 1)
    with (
        filelock.FileLock(f"{path}.lock"),
        build_lock(path, wait_seconds=10, stale_seconds=0.2),
    ):
        pass


def test_file_systems_without_locks(path: Path, monkeypatch):
    def refuse(_self, **_options):
        raise NotImplementedError

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    path.parent.mkdir()
    with build_lock(path, wait_seconds=0):
        pass
    holder_file(path, machine_name(), a_dead_pid())
    with build_lock(path, wait_seconds=0):
        pass
    holder_file(path, machine_name(), os.getppid())
    with pytest.raises(BuildError, match="Waited"), build_lock(path, wait_seconds=0):
        pass


def test_a_folder_that_cannot_be_written_is_named(path: Path, monkeypatch):
    def refuse(_self, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with (
        pytest.raises(BuildError, match=r"cannot be written: Permission .*PLAYHEAD_CACHE"),
        build_lock(path, wait_seconds=0),
    ):
        pass
    path.parent.rmdir()
    path.parent.touch()
    with (
        pytest.raises(BuildError, match=r"cannot be written: .*made"),
        build_lock(path / "b", wait_seconds=0),
    ):
        pass


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_folder_that_takes_no_files_is_not_taken_for_a_lock_that_is_held():
    with (
        pytest.raises(BuildError, match=r"cannot be written.*/proc"),
        build_lock(Path("/proc/a.idxpack"), wait_seconds=60),
    ):
        pass
