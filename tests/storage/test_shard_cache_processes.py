"""Many processes over one folder of shards: each shard once, and kills that leave nothing wrong."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from playhead.storage.shard_cache import CacheSettings, ShardCache
from support.stores import MemoryStore, plugged_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.e2e

SIZE = 3_000
URIS = [f"s3://b/{number}.tar" for number in range(12)]


class LoggedStore(MemoryStore):
    """Writes down, for all processes, what it gave: a line with URI and bytes for each block."""

    def __init__(self, objects: dict[str, bytes], log: Path, pause: float) -> None:
        super().__init__(objects)
        self.log = log
        self.pause = pause

    def stream(self, uri: str, start: int = 0, block_bytes: int = 4 << 20) -> Iterator[bytes]:
        for block in super().stream(uri, start, 150):
            descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.write(descriptor, f"{uri} {len(block)}\n".encode())
            os.close(descriptor)
            time.sleep(self.pause)
            yield block

    def given(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for line in self.log.read_text().splitlines():
            uri, count = line.split()
            total[uri] = total.get(uri, 0) + int(count)
        return total


def objects() -> dict[str, bytes]:
    return {uri: random.Random(uri).randbytes(SIZE) for uri in URIS}


def forked(act: Callable[[], None]) -> int:
    """Run in a process of its own, which ends with 0 if all went well."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        act()
        status = 0
    finally:
        os._exit(status)


def read_all(folder: Path, store: MemoryStore, seed: int, limit: int, times: int = 1) -> None:
    cache = ShardCache(CacheSettings(folder=str(folder), limit_bytes=limit))
    order = URIS * times
    random.Random(seed).shuffle(order)
    for uri in order:
        found = cache.read(uri, [0, 2_000], [SIZE, 500])
        assert found == [store.objects[uri], store.objects[uri][2_000:2_500]]


def test_processes_that_all_need_everything_fetch_it_once(tmp_path):
    store = LoggedStore(objects(), tmp_path / "log", 0.0005)
    with plugged_in(store):
        pids = [
            forked(lambda seed=seed: read_all(tmp_path / "shards", store, seed, 12 * SIZE))
            for seed in range(6)
        ]
        assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 6
    assert store.given() == dict.fromkeys(URIS, SIZE)


def test_a_forked_process_holds_no_lock_of_its_parent(tmp_path):
    """A worker lives long: what its parent was reading or fetching must not stay locked."""
    with plugged_in(MemoryStore(objects())):
        cache = ShardCache(CacheSettings(folder=str(tmp_path / "shards"), limit_bytes=2 * SIZE))
        shards = cache.look(URIS[:3])
        for shard in shards[:2]:
            cache.fill(shard)
        held = [cache._open(shard) for shard in shards[:2]]
        started = tmp_path / "started"
        child = forked(lambda: (started.touch(), time.sleep(20)))
        while not started.exists():
            time.sleep(0.001)
        for one in held:
            one.close()
        try:
            assert cache.fill(shards[2]) is None
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def kill_at_random(tmp_path: Path, *, kills: int, limit: int, seed: int) -> LoggedStore:
    """Processes that read everything again and again, one of which is killed every few ms."""
    store = LoggedStore(objects(), tmp_path / "log", 0.0002)
    rng = random.Random(seed)
    folder = tmp_path / "shards"
    cache = ShardCache(CacheSettings(folder=str(folder), limit_bytes=limit))

    def start() -> int:
        number = rng.randrange(1 << 30)
        return forked(lambda: read_all(folder, store, number, limit, times=40))

    with plugged_in(store):
        pids = [start() for _ in range(3)]
        for _ in range(kills):
            time.sleep(rng.uniform(0.001, 0.03))
            victim = pids.pop(rng.randrange(len(pids)))
            os.kill(victim, signal.SIGKILL)
            _, status = os.waitpid(victim, 0)
            # It was killed, or had read everything and found it right.
            assert status in {0, signal.SIGKILL}
            assert cache.room.used() <= limit
            pids.append(start())
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        read_all(folder, store, 1, limit)
        assert cache.room.used() <= limit
    return store


@pytest.mark.timeout(120)
@pytest.mark.parametrize("limit", [3 * SIZE + 1, 13 * SIZE])
def test_kills_in_the_midst_of_fills_leave_nothing_wrong(tmp_path, limit):
    kill_at_random(tmp_path, kills=60, limit=limit, seed=limit)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_kills_in_the_midst_of_fills_leave_nothing_wrong(tmp_path, seed):
    kill_at_random(tmp_path, kills=1000, limit=(3 + 3 * seed) * SIZE, seed=seed)
