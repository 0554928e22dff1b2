from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import numpy as np
import pyarrow as pa
import pytest

from playhead.formats import Parquet, TableRow, parquet_cache
from playhead.formats.parquet_cache import UNPACKED, cache_name, open_unpacked, pick_rows
from playhead.formats.parquet_file import TableFile
from support.parquet import audio_of, parquet_leaf, speech_columns, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator

PAYLOAD = 40_000
BOUND = 200_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(parquet_cache, "_state", parquet_cache._State())
    return tmp_path / "cache/tables"


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def total(folder: Path) -> int:
    return sum(path.stat().st_size for path in files(folder))


def batches(number: int, calls: list[int] | None = None, rows: int = 4) -> Iterator[pa.RecordBatch]:
    """Two batches with a row more each; row r of group n holds `n.r`."""
    if calls is not None:
        calls.append(number)
    for first, count in ((0, rows // 2), (rows // 2, rows - rows // 2)):
        names = [f"{number}.{row}".encode() for row in range(first, first + count)]
        audio = [name.ljust(PAYLOAD // rows, b".") for name in names]
        yield pa.record_batch([names, pa.array(audio, pa.large_binary())], schema=UNPACKED)


def opened(number: int, calls: list[int] | None = None, most: int = BOUND, size: int = PAYLOAD):
    return open_unpacked(
        cache_name(number), lambda: batches(number, calls), num_bytes=size, most_bytes=most
    )


def names(rows: list[TableRow]) -> list[bytes]:
    assert all(row.audio and row.audio.rstrip(b".") == row.row for row in rows)
    return [row.row for row in rows]


def test_rows_are_found_in_any_order(folder):
    group = opened(3)
    assert group is not None
    places = np.array([3, 0, 2, 2, 1])
    expected = [b"3.3", b"3.0", b"3.2", b"3.2", b"3.1"]
    assert names(group.rows(places)) == expected
    assert names(pick_rows(batches(3), places)) == expected
    assert pick_rows(batches(3), np.zeros(0, np.int64)) == []


def test_a_group_is_unpacked_once(folder, monkeypatch):
    calls: list[int] = []
    for _ in range(3):
        opened(1, calls)
    # Another process knows it by its file alone.
    monkeypatch.setattr(parquet_cache, "_state", parquet_cache._State())
    assert names(opened(1, calls).rows(np.array([1]))) == [b"1.1"]
    assert calls == [1]
    assert len(files(folder)) == 1


def test_names_depend_on_all_facts():
    facts = [["a", 1, 2], 0, "audio", True]
    others = [["b", 1, 2], 0, "audio", True], [["a", 1, 3], 0, "audio", True], [["a", 1, 2], 0]
    assert len({cache_name(one) for one in (facts, *others)}) == 4
    assert cache_name(facts) == cache_name(list(facts))


def test_the_least_recently_used_make_room(folder, monkeypatch):
    monkeypatch.setattr(parquet_cache, "_TOUCH_SECONDS", 0.0)
    calls: list[int] = []
    for number in range(4):
        opened(number, calls)
    for number, age in enumerate((40, 30, 20, 10)):
        path = folder / cache_name(number)
        os.utime(path, (time.time() - age,) * 2)
    opened(0, calls).rows(np.array([0]))
    for number in (4, 5):
        opened(number, calls)
        assert total(folder) <= BOUND
    assert calls == [0, 1, 2, 3, 4, 5]
    left = {number for number in range(6) if (folder / cache_name(number)).exists()}
    assert left == {0, 3, 4, 5}
    assert names(opened(1, calls).rows(np.array([2]))) == [b"1.2"]
    assert calls[-1] == 1


def test_what_was_removed_is_let_go_of_and_stays_readable_until_then(folder):
    old = opened(0)
    for number in range(1, 8):
        opened(number)
    assert not old.path.exists()
    assert names(old.rows(np.array([3]))) == [b"0.3"]
    assert all(group.path.exists() for group in parquet_cache._state.open.values())


def test_a_group_that_is_too_big_alone_is_not_kept(folder, caplog):
    caplog.set_level(logging.WARNING)
    for number in range(3):
        assert opened(number, most=PAYLOAD - 1) is None
    assert [r.getMessage() for r in caplog.records if "cache_bytes" in r.getMessage()] == [
        caplog.records[0].getMessage()
    ]
    assert len(caplog.records) == 1
    assert files(folder) == []
    # One that turns out to be bigger than was thought.
    assert opened(9, most=PAYLOAD // 2, size=10) is None
    assert files(folder) == []
    assert opened(9) is not None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_a_full_disk_is_said_once_and_not_tried_for_each_row(folder, monkeypatch, caplog, number):
    caplog.set_level(logging.WARNING)
    tries = []

    def refuse(path: Path) -> Any:
        tries.append(path)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(parquet_cache, "atomic_write", refuse)
    assert [opened(n) for n in range(5)] == [None] * 5
    assert len(tries) == 1
    assert len(caplog.records) == 1
    assert os.strerror(number) in caplog.records[0].getMessage()
    assert "PLAYHEAD_CACHE" in caplog.records[0].getMessage()
    monkeypatch.undo()


def test_it_goes_on_when_there_is_room_again(folder, monkeypatch):
    monkeypatch.setattr(parquet_cache, "_REST_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(parquet_cache, "atomic_write", lambda path: open("/dev/full/x"))  # noqa: PTH123, SIM115
        assert opened(0) is None
    assert opened(0) is not None


def test_errors_of_the_source_are_raised_and_leave_nothing(folder):
    def broken() -> Iterator[pa.RecordBatch]:
        yield next(batches(0))
        raise OSError(errno.EIO, "the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        open_unpacked(cache_name(0), broken, num_bytes=100, most_bytes=BOUND)
    assert files(folder) == []
    assert opened(0) is not None


def test_a_wait_that_is_too_long_ends(folder, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(parquet_cache, "_WAIT_SECONDS", 0.1)
    (folder / "locks").mkdir(parents=True)
    name = cache_name(0)
    stripe = folder / "locks" / f"{int(name[:8], 16) % 64:02d}.lock"
    with filelock.FileLock(stripe):
        assert opened(0) is None
    assert "waited 0 s for another process" in caplog.text
    monkeypatch.setattr(parquet_cache._state, "resting_until", 0.0)
    assert opened(0) is not None


def test_a_damaged_file_is_made_again(folder):
    opened(0)
    path = folder / cache_name(0)
    for damage in (b"", b"ARROW1", path.read_bytes()[:-30]):
        path.unlink()
        path.write_bytes(damage)
        parquet_cache._state.open.clear()
        assert names(opened(0).rows(np.array([1]))) == [b"0.1"]


def test_file_systems_without_locks_do(folder, monkeypatch):
    def no_locks(lock: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(filelock.FileLock, "acquire", no_locks)
    assert names(opened(0).rows(np.array([0]))) == [b"0.0"]


def _one_of_many(path: str, barrier: Any, queue: Any) -> None:
    unpacked: list[int] = []
    read = TableFile.batches

    def counted(self: TableFile, group: Any, *rest: Any, **options: Any) -> Any:
        unpacked.append(group.number)
        return read(self, group, *rest, **options)

    TableFile.batches = counted
    leaf = parquet_leaf(Path(path), cache_bytes=200_000)
    barrier.wait(30)
    good = True
    for place in np.random.default_rng(os.getpid()).permutation(40).tolist():
        [(_, audio)] = Parquet().load(leaf, path, np.array([place]), with_audio=True)
        good &= audio == audio_of(place)
    queue.put((good, unpacked))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_what_one_unpacked(tmp_path, folder, method):
    path = write_table(tmp_path / "t.parquet", speech_columns(40), rows=8)
    context = multiprocessing.get_context(method)
    barrier, queue = context.Barrier(3), context.Queue()
    workers = [
        context.Process(target=_one_of_many, args=(str(path), barrier, queue)) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    answers = [queue.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(30)
    assert all(good for good, _ in answers)
    assert sorted(number for _, numbers in answers for number in numbers) == [0, 1, 2, 3, 4]


def test_a_bound_that_is_too_small_for_the_file_holds_all_the_same(tmp_path, folder):
    path = write_table(tmp_path / "t.parquet", speech_columns(40), rows=4)
    leaf = parquet_leaf(path, cache_bytes=100_000)
    for place in np.random.default_rng(1).permutation(40).tolist():
        [(_, audio)] = Parquet().load(leaf, str(path), np.array([place]), with_audio=True)
        assert audio == audio_of(place)
        assert total(folder) <= 100_000
