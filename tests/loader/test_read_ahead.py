"""Shards that are fetched before they are needed, by one process, as long as they are needed."""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from playhead.loader.read_ahead import STREAMS, AheadPart, ReadAhead, WindowAhead
from playhead.loader.window_files import FileUse, kept_files
from playhead.plan.window import HandedOut
from playhead.storage import access
from playhead.storage.held import hold
from playhead.storage.shard_cache import CacheSettings, shard_cache
from playhead.storage.shard_wanted import wanted_shards
from support.stores import MemoryStore, plugged_in

URIS = [f"s3://b/{n}.tar" for n in range(6)]


class _Table(NamedTuple):
    uris: list[str]
    sizes: np.ndarray


def pack_of(uris, tar, manifest=None):
    """A leaf with one row a place of `tar`; its manifest is the last of its files."""
    files = [*uris, manifest or "/data/manifest.json"]
    return SimpleNamespace(
        shards=_Table(files, np.full(len(files), 100)),
        shard=np.full(len(tar), len(uris), np.int32),
        tar=np.array(tar, np.int32),
        entry=SimpleNamespace(embedded=False, fields=[]),
        groups=None,
        digest="digest",
    )


LEAF = SimpleNamespace(concatenation=None)


def handed_out(steps, rows, *, by_shard=True):
    return HandedOut(
        step=np.array(steps),
        leaf=np.zeros(len(rows), np.int32),
        row=np.array(rows),
        by_shard=np.full(len(rows), True) if by_shard else None,
    )


def test_files_come_in_the_order_in_which_they_are_needed():
    pack = pack_of(URIS[:3], [0, 0, 1, 2, -1])
    samples = handed_out([0, 0, 1, 2, 2, 3], [3, 4, 0, 1, 3, 2])
    assert kept_files(samples, [LEAF], [pack], with_audio=True) == [
        FileUse(URIS[2], 0, 2),
        FileUse(URIS[0], 1, 2),
        FileUse(URIS[1], 3, 3),
    ]
    assert kept_files(samples, [LEAF], [pack], with_audio=False) == []


def test_manifests_on_a_store_are_needed_too():
    pack = pack_of(["/data/0.tar"], [0, 0], "s3://b/m.json")
    found = kept_files(handed_out([3, 5], [0, 1]), [LEAF], [pack], with_audio=True)
    assert found == [FileUse("s3://b/m.json", 3, 5)]
    pack.entry.embedded = True
    assert kept_files(handed_out([3, 5], [0, 1]), [LEAF], [pack], with_audio=True) == []


def test_row_by_row_only_what_must_be_whole_is_needed():
    pack = pack_of(["s3://b/0.tar", "s3://b/1.tar.gz"], [0, 1])
    with plugged_in(MemoryStore()):
        found = kept_files(
            handed_out([0, 1], [0, 1], by_shard=False), [LEAF], [pack], with_audio=True
        )
    assert found == [FileUse("s3://b/1.tar.gz", 1, 1)]


@pytest.fixture
def ahead(tmp_path):
    settings = CacheSettings(folder=str(tmp_path / "shards"), limit_bytes=450)
    spec = SimpleNamespace(leaves=[LEAF], cache=settings)
    with plugged_in(MemoryStore({uri: uri.encode().ljust(100) for uri in URIS})) as store:
        made = ReadAhead([AheadPart(spec, [pack_of(URIS, range(6))], True)])
        yield made, shard_cache(settings), store
        made.stop()


def window_of(rows, steps=0):
    """A window with one row a step, of which so many steps were handed out."""
    plan = Future()
    samples = handed_out(range(len(rows)), rows)
    plan.set_result(SimpleNamespace(first_step=0, samples_from=lambda _: samples))
    return WindowAhead(0, steps, plan)


def wait_until(act):
    deadline = time.monotonic() + 20
    while not act():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def has(cache):
    return [cache.has(shard) for shard in cache.look(URIS)]


def test_this_window_and_the_next_are_fetched_as_far_as_there_is_room(ahead):
    made, cache, store = ahead
    first, second = window_of([3, 1]), window_of([1, 0, 2, 4])
    made.follow([first, second])
    wait_until(lambda: sum(has(cache)) == 4)
    assert has(cache) == [True, True, True, True, False, False]
    needed = wanted_shards(cache.room.folder)
    assert [shard.uri for shard in sorted(needed, key=needed.get)] == [
        URIS[n] for n in (3, 1, 0, 2, 4)
    ]
    # What no later step needs makes room for what is needed next.
    made.follow([second])
    wait_until(lambda: has(cache)[4])
    assert has(cache) == [True, True, True, False, True, False]
    assert sorted(store.streamed) == [URIS[n] for n in range(5)]
    assert made.kept().fetched_bytes == 500
    assert made.kept().evicted_shards == 1
    assert made.error is None


def test_a_plan_that_is_not_there_yet_keeps_nothing_waiting(ahead):
    made, cache, _ = ahead
    made.follow([window_of([0, 1]), WindowAhead(0, 0, Future())])
    wait_until(lambda: sum(has(cache)) == 2)


def test_another_process_takes_over_when_the_one_that_fetches_ends(ahead):
    made, cache, store = ahead
    cache.room.folder.mkdir(parents=True)
    other = hold(cache.room.folder / f"{made._name}.lead", create=True)
    assert other is not None
    made.follow([window_of([0, 1])])
    # It says what it needs all the same.
    wait_until(lambda: len(wanted_shards(cache.room.folder)) == 2)
    assert store.streamed == []
    other.close()
    wait_until(lambda: sum(has(cache)) == 2)


def test_a_loader_that_is_closed_needs_nothing_and_may_go_on_later(ahead):
    made, cache, _ = ahead
    made.follow([window_of([0, 1])])
    wait_until(lambda: sum(has(cache)) == 2)
    made.stop()
    assert wanted_shards(cache.room.folder) == {}
    made.follow([window_of([5])])
    wait_until(lambda: has(cache)[5])


def test_what_cannot_be_fetched_keeps_nobody_from_the_rest(ahead):
    made, cache, store = ahead
    del store.objects[URIS[0]]
    made.follow([window_of([0, 1, 2])])
    wait_until(lambda: cache.has(cache.look([URIS[2]])[0]))
    assert "does not exist" in str(made.error).lower()


def test_what_was_stopped_in_the_midst_of_a_request_does_not_go_on_twice(ahead, monkeypatch):
    made, cache, store = ahead
    monkeypatch.setattr("playhead.loader.read_ahead._JOIN_SECONDS", 0.01)
    begun, answer = threading.Event(), threading.Event()

    def stats(uris, of=store.stats):
        begun.set()
        assert answer.wait(60)
        return of(uris)

    monkeypatch.setattr(store, "stats", stats)
    made.follow([window_of([0, 1])])
    assert begun.wait(60)
    made.stop()
    made.follow([window_of([4])])
    answer.set()
    wait_until(lambda: not threads_ahead())
    made.follow([window_of([4])])
    wait_until(lambda: has(cache)[4])
    assert has(cache) == [False, False, False, False, True, False]
    assert len(threads_ahead()) == 1 + STREAMS


def threads_ahead():
    return [thread for thread in threading.enumerate() if thread.name == "playhead-ahead"]


class _Asking(MemoryStore):
    """A store that makes its requests in threads, and whose objects have no end."""

    def stream(self, uri, start=0, block_bytes=4 << 20):
        del start, block_bytes
        self.streamed.append(uri)
        while True:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(time.sleep, 0.001).result()
            yield b" "


def end_in_the_midst(folder):
    store = _Asking({uri: bytes(100_000) for uri in URIS})
    access.store_of = lambda _: store
    spec = SimpleNamespace(leaves=[LEAF], cache=CacheSettings(folder=folder))
    made = ReadAhead([AheadPart(spec, [pack_of(URIS, range(6))], True)])
    made.follow([window_of([0, 1, 2, 3])])
    wait_until(lambda: len(store.streamed) == STREAMS)
    threading.main_thread().__dict__["kept"] = made


def test_a_process_may_end_in_the_midst_of_fetches(tmp_path, capfd):
    process = multiprocessing.get_context("spawn").Process(
        target=end_in_the_midst, args=(str(tmp_path),)
    )
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert capfd.readouterr().err == ""
