from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from playhead.storage import access, copying
from playhead.storage.copying import Copy, copy_all, look_at

FORK = multiprocessing.get_context("fork")
HELD = "c"


def copies_in(folder: Path, names: str = "abcde") -> list[Copy]:
    (folder / "from").mkdir(exist_ok=True)
    for name in names:
        (folder / "from" / name).write_bytes(name.encode() * 100_000)
    return [Copy(str(folder / "from" / name), str(folder / "to" / name / name)) for name in names]


def test_files_are_copied_once_and_again_when_they_change(tmp_path: Path):
    copies = copies_in(tmp_path)
    assert [look.is_done for look in look_at(copies, workers=2)] == [False] * 5
    assert {done.copy: done.error for done in copy_all(copies, workers=2)} == dict.fromkeys(copies)
    for copy in copies:
        assert Path(copy.target).read_bytes() == Path(copy.source).read_bytes()
    assert [look.is_done for look in look_at(copies, workers=2)] == [True] * 5
    assert not any(look.is_done for look in look_at(copies, workers=2, force=True))
    Path(copies[1].source).write_bytes(b"b" * 99_999 + b"!")
    assert [look.is_done for look in look_at(copies, workers=2)] == [True, False, True, True, True]


def test_what_does_not_exist_is_said_and_fails_alone(tmp_path: Path):
    copies = copies_in(tmp_path)
    Path(copies[0].source).unlink()
    assert look_at(copies, workers=2)[0].size is None
    failed = [done for done in copy_all(copies, workers=2) if done.error is not None]
    assert [done.copy for done in failed] == copies[:1]
    assert "does not exist" in str(failed[0].error)
    assert not (tmp_path / "to/a").exists()


def test_a_source_that_ends_early_is_no_copy(tmp_path: Path, monkeypatch):
    (copy,) = copies_in(tmp_path, "a")
    monkeypatch.setattr(access, "stream", lambda _: iter([b"a" * 99_000]))
    (done,) = copy_all([copy], workers=1)
    assert "100,000 bytes, and 99,000 came" in str(done.error)
    assert not Path(copy.target).exists()


def held_stream(uri: str):
    """The bytes of a file; of one of them only the first half, and then nothing ever."""
    whole = Path(uri).read_bytes()
    yield whole[: len(whole) // 2]
    if Path(uri).name == HELD:
        time.sleep(600)
    yield whole[len(whole) // 2 :]


def copy_until_held(copies: list[Copy]) -> None:
    copying.access.stream = held_stream
    list(copy_all(copies, workers=1))


@pytest.mark.e2e
def test_a_run_that_is_killed_leaves_whole_files_and_the_next_one_ends_it(
    tmp_path: Path, monkeypatch
):
    copies = copies_in(tmp_path)
    child = FORK.Process(target=copy_until_held, args=(copies,))
    child.start()
    end = time.monotonic() + 60
    while not list((tmp_path / "to" / HELD).glob(".playhead-*.tmp")):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    looks = look_at(copies, workers=1)
    assert [look.is_done for look in looks] == [True, True, False, False, False]
    assert not Path(copies[2].target).exists()
    monkeypatch.setattr("playhead.storage.atomic._GRACE_SECONDS", 0.0)
    rest = [copy for copy, look in zip(copies, looks, strict=True) if not look.is_done]
    assert all(done.error is None for done in copy_all(rest, workers=2))
    for copy in copies:
        assert [path.name for path in Path(copy.target).parent.iterdir()] == [copy.target[-1]]
        assert Path(copy.target).read_bytes() == Path(copy.source).read_bytes()
