"""Whole shards on disk: the right bytes, within bounds, whatever is asked for in whatever order."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import ConfigError, DataError, SourceNotFoundError, StorageError
from playhead.storage import access
from playhead.storage import shard_cache as shard_cache_module
from playhead.storage import shard_room as shard_room_module
from playhead.storage.limits import limits
from playhead.storage.shard_cache import CacheSettings, ShardCache
from playhead.storage.shard_room import NoPart
from playhead.storage.shard_wanted import WantedList
from support.stores import MemoryStore, plugged_in


def content(number: int, size: int) -> bytes:
    return bytes((number * 31 + place * 7) % 251 for place in range(size))


@pytest.fixture
def store():
    objects = {f"s3://b/{n}.tar": content(n, 1000 + n) for n in range(8)}
    with plugged_in(MemoryStore(objects)) as store:
        yield store


@pytest.fixture
def short_deadline(monkeypatch):
    monkeypatch.setenv("PLAYHEAD_STORAGE_DEADLINE_SECONDS", "0.3")
    limits.cache_clear()
    yield
    monkeypatch.undo()
    limits.cache_clear()


def cache_of(folder: Path, limit: int = 10_000) -> ShardCache:
    return ShardCache(CacheSettings(folder=str(folder / "shards"), limit_bytes=limit))


def held_bytes(folder: Path) -> int:
    return sum(
        path.stat().st_size
        for path in (folder / "shards").iterdir()
        if path.suffix in (".shard", ".part")
    )


def test_a_shard_is_fetched_once_and_read_from_then_on(tmp_path, store):
    cache = cache_of(tmp_path)
    for _ in range(3):
        assert cache.read("s3://b/1.tar", [900, 0], [101, 3]) == [
            content(1, 1001)[900:],
            content(1, 1001)[:3],
        ]
    assert cache_of(tmp_path).read("s3://b/1.tar", [5], [5]) == [content(1, 1001)[5:10]]
    assert store.streamed == ["s3://b/1.tar"]
    assert store.asked == []
    counts = cache.room.counts()
    assert (counts.fetched_bytes, counts.fetched_shards, counts.evicted_shards) == (1001, 1, 0)


def test_what_was_used_last_is_the_last_to_go(tmp_path, store):
    cache = cache_of(tmp_path, 3500)
    for number in (0, 1, 2, 0, 3):
        cache.read(f"s3://b/{number}.tar", [0], [9])
    assert [cache.has(shard) for shard in cache.look([f"s3://b/{n}.tar" for n in range(4)])] == [
        True,
        False,
        True,
        True,
    ]
    assert cache.room.counts().evicted_shards == 1


def test_what_is_needed_stays_while_there_is_room_otherwise(tmp_path, store):
    cache = cache_of(tmp_path, 3500)
    shards = cache.look([f"s3://b/{n}.tar" for n in range(8)])
    needed = WantedList(cache.room.folder)
    cache.read("s3://b/0.tar", [0], [9])
    needed.publish([shards[0], shards[1]])
    for number in (2, 3, 4, 5, 1):
        cache.read(f"s3://b/{number}.tar", [0], [9])
    assert cache.has(shards[0])
    assert cache.has(shards[1])
    # With three that are needed nothing may go: ranges are read where they are.
    needed.publish([shards[0], shards[1], shards[5]])
    assert cache.has(shards[5])
    assert cache.read("s3://b/6.tar", [0], [9]) is None
    assert cache.fill(shards[7]) is NoPart.FULL
    needed.withdraw()
    assert cache.fill(shards[7]) is None


def test_a_pipe_displaces_what_is_needed_last(tmp_path, store):
    cache = cache_of(tmp_path, 3500)
    shards = cache.look([f"s3://b/{n}.tar" for n in range(3)])
    for shard in shards:
        cache.fill(shard)
    WantedList(cache.room.folder).publish([shards[2], shards[0], shards[1]])
    pipe = f"pipe:head -c 700 /dev/zero # {tmp_path}.tar"
    assert cache.read(pipe, [0], [700]) == [bytes(700)]
    assert [cache.has(shard) for shard in shards] == [True, False, True]
    assert held_bytes(tmp_path) <= 3500


def test_lists_of_dead_processes_hold_nothing(tmp_path, store):
    cache = cache_of(tmp_path, 2500)
    shards = cache.look([f"s3://b/{n}.tar" for n in range(4)])
    for shard in shards[:2]:
        cache.fill(shard)
    child = os.fork()
    if child == 0:
        WantedList(cache.room.folder).publish(shards[:2])
        os._exit(0)
    os.waitpid(child, 0)
    assert cache.fill(shards[2]) is None
    assert not list(cache.room.folder.glob("*.wanted"))


def test_a_shard_that_is_being_read_is_not_removed(tmp_path, store):
    cache = cache_of(tmp_path, 2500)
    shards = cache.look([f"s3://b/{n}.tar" for n in range(3)])
    for shard in shards[:2]:
        cache.fill(shard)
    held = cache._open(shards[0])
    assert held is not None
    assert cache.fill(shards[2]) is None
    assert [cache.has(shard) for shard in shards] == [True, False, True]
    held.close()


@pytest.mark.parametrize("limit", [999, 1])
def test_a_shard_that_is_larger_than_everything_is_an_error_with_both_sizes(tmp_path, store, limit):
    with pytest.raises(ConfigError, match=rf"1,000 bytes.*{limit} bytes in all.*cache_bytes"):
        cache_of(tmp_path, limit).read("s3://b/0.tar", [0], [1])


def test_an_object_that_was_replaced_is_never_read_from_an_old_copy(tmp_path, store):
    cache_of(tmp_path).read("s3://b/0.tar", [0], [4])
    store.objects["s3://b/0.tar"] = content(99, 1000)
    assert cache_of(tmp_path).read("s3://b/0.tar", [0], [4]) == [content(99, 4)]


def test_an_object_that_is_replaced_while_it_is_fetched_is_fetched_again(tmp_path, store):
    real, states = store.stream, [content(7, 1000), content(8, 900)]

    def stream(uri, start=0, block_bytes=1):
        for block in real(uri, start, 100):
            yield block
            if states:
                store.objects[uri] = states.pop()

    store.stream = stream
    assert cache_of(tmp_path).read("s3://b/0.tar", [0], [4]) == [content(7, 4)]
    assert len(list((tmp_path / "shards").glob("*.shard"))) == 1


def test_an_object_that_never_stays_the_same_is_an_error(tmp_path, store):
    def stream(uri, start=0, block_bytes=1):
        yield store.objects[uri]
        store.objects[uri] += b"x"

    store.stream = stream
    with pytest.raises(StorageError, match="replaced 3 times"):
        cache_of(tmp_path).read("s3://b/0.tar", [0], [4])
    assert held_bytes(tmp_path) == 0


@pytest.mark.parametrize("change", [-1, 1])
def test_a_stream_of_another_length_is_no_copy(tmp_path, store, change):
    def stream(uri, start=0, block_bytes=1):
        data = store.objects[uri]
        yield data[:change] if change < 0 else data + b"x"

    store.stream = stream
    with pytest.raises(StorageError, match="replaced 3 times"):
        cache_of(tmp_path).read("s3://b/0.tar", [0], [4])
    assert held_bytes(tmp_path) == 0


def test_a_copy_that_was_cut_is_made_anew(tmp_path, store):
    cache = cache_of(tmp_path)
    cache.read("s3://b/0.tar", [0], [4])
    (copy,) = (tmp_path / "shards").glob("*.shard")
    os.truncate(copy, 500)
    assert cache.read("s3://b/0.tar", [900], [9]) == [content(0, 1000)[900:909]]


def test_a_fill_that_was_broken_off_goes_on_where_it_was(tmp_path, store, monkeypatch):
    real, starts = store.stream, []

    def stream(uri, start=0, block_bytes=1):
        starts.append(start)
        for number, block in enumerate(real(uri, start, 300)):
            if number == 2 and len(starts) == 1:
                raise StorageError("it went away", where=uri)
            yield block

    store.stream = stream
    cache = cache_of(tmp_path)
    with pytest.raises(StorageError, match="went away"):
        cache.read("s3://b/0.tar", [0], [4])
    assert cache.read("s3://b/0.tar", [0], [1000]) == [content(0, 1000)]
    assert starts == [0, 600]
    assert cache.room.counts().fetched_bytes == 1000


def test_after_the_machine_was_started_anew_nothing_is_taken_up(tmp_path, store, monkeypatch):
    """Blocks that were written and not flushed may be zeros by then."""
    cache = cache_of(tmp_path)
    (shard,) = cache.look(["s3://b/0.tar"])
    assert cache.fill(shard, stopped=lambda: True) is NoPart.BUSY
    (part,) = cache.room.folder.glob("*.part")
    part.rename(part.with_name(part.name.replace(part.name[-13:-5], "01234567")))
    assert cache.read("s3://b/0.tar", [0], [1000]) == [content(0, 1000)]
    assert not list(cache.room.folder.glob("*.part"))


def test_what_a_server_gives_no_parts_of_is_kept_whatever_must_go_for_it(tmp_path, store):
    store.without_ranges.update(store.objects)
    cache = cache_of(tmp_path, 2500)
    WantedList(cache.room.folder).publish(cache.look(["s3://b/0.tar", "s3://b/1.tar"]))
    for number in (0, 1, 2, 3, 0):
        assert cache.read(f"s3://b/{number}.tar", [3], [4]) == [content(number, 9)[3:7]]
    assert store.asked == []


def test_compressed_archives_are_kept_decompressed(tmp_path, store):
    plain = content(3, 5000)
    store.objects["s3://b/a.tar.gz"] = gzip.compress(plain[:2000]) + gzip.compress(plain[2000:])
    store.objects["s3://b/b.tgz"] = gzip.compress(plain)
    (tmp_path / "c.tar.gz").write_bytes(gzip.compress(plain))
    cache = cache_of(tmp_path, 40_000)
    for uri in ("s3://b/a.tar.gz", "s3://b/b.tgz", str(tmp_path / "c.tar.gz")):
        assert cache.read(uri, [4990, 0], [10, 10]) == [plain[4990:], plain[:10]]
    store.objects["s3://b/cut.tgz"] = gzip.compress(plain)[:-9]
    with pytest.raises(DataError, match=r"cut\.tgz"):
        cache.read("s3://b/cut.tgz", [0], [1])
    assert held_bytes(tmp_path) == 15_000


def test_a_command_is_run_once_and_one_that_fails_gives_nothing(tmp_path):
    cache = cache_of(tmp_path)
    log = tmp_path / "runs"
    uri = f"pipe:echo run >> {log}; head -c 800 /dev/zero"
    for _ in range(2):
        assert cache.read(uri, [700], [100]) == [bytes(100)]
    assert log.read_text() == "run\n"
    with pytest.raises(StorageError, match="exit code 3"):
        cache.read("pipe:head -c 800 /dev/zero; exit 3", [0], [1])
    assert held_bytes(tmp_path) == 800


def test_a_disk_that_is_full_is_named(tmp_path, store, monkeypatch):
    def write(descriptor, block):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shard_cache_module, "_write", write)
    cache = cache_of(tmp_path)
    with pytest.raises(StorageError, match=rf"disk is full.*0 bytes of 10,000.*{tmp_path}.*cache_"):
        cache.read("s3://b/0.tar", [0], [4])
    assert held_bytes(tmp_path) == 0


def test_a_disk_that_has_no_room_for_a_name_is_named(tmp_path, store, monkeypatch):
    def hold(path, **how):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(shard_room_module, "hold", hold)
    with pytest.raises(StorageError, match="disk is full"):
        cache_of(tmp_path).read("s3://b/0.tar", [0], [4])


def test_a_folder_that_can_only_be_read_gives_what_it_has(tmp_path, store, monkeypatch):
    cache = cache_of(tmp_path)
    cache.read("s3://b/1.tar", [0], [1])
    opened = os.open

    def read_only(path, flags, *mode, **options):
        if Path(path).parent == tmp_path / "shards" and flags & (os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return opened(path, flags, *mode, **options)

    def utime(descriptor):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr(os, "utime", utime)
    assert cache.read("s3://b/1.tar", [3], [4]) == [content(1, 1001)[3:7]]
    with pytest.raises(ConfigError, match="Read-only file system"):
        cache.read("s3://b/2.tar", [3], [4])


def test_a_folder_that_is_cleaned_up_during_a_fill_is_no_missing_sample(tmp_path, store):
    cache = cache_of(tmp_path)
    stream = store.stream

    def cleaned_up(uri, start=0, block_bytes=4 << 20):
        for block in stream(uri, start, block_bytes):
            shutil.rmtree(tmp_path / "shards")
            yield block

    store.stream = cleaned_up
    with pytest.raises(StorageError, match=r"removed there while s3://b/0.tar"):
        cache.read("s3://b/0.tar", [0], [4])
    store.stream = stream
    assert cache.read("s3://b/0.tar", [0], [4]) == [content(0, 1000)[:4]]


def test_a_folder_that_cannot_be_made_is_named(tmp_path, store):
    (tmp_path / "shards").write_text("a file")
    with pytest.raises(ConfigError, match="Shards cannot be kept there"):
        cache_of(tmp_path).read("s3://b/0.tar", [0], [4])


def test_what_is_missing_is_named(tmp_path, store):
    with pytest.raises(SourceNotFoundError, match="gone"):
        cache_of(tmp_path).read("s3://b/gone.tar", [0], [4])


def test_whoever_waits_for_a_fill_that_stands_still_gives_up(tmp_path, store, short_deadline):
    cache = cache_of(tmp_path)
    (shard,) = cache.look(["s3://b/0.tar"])
    part = cache.room.reserve(shard.key, shard.size, resumable=True, displace=False)
    assert not isinstance(part, NoPart)
    with pytest.raises(StorageError, match="another process fetches it, and nothing moved"):
        cache.read("s3://b/0.tar", [0], [4])
    cache.room.abandon(part, 0, keep=False)
    assert cache.read("s3://b/0.tar", [0], [4]) == [content(0, 4)]


_sizes = st.lists(st.integers(1, 40), min_size=1, max_size=7)
_actions = st.lists(
    st.tuples(
        st.sampled_from(["read", "fill", "stop", "want", "replace", "restart", "cut"]),
        st.integers(0, 6),
        st.integers(0, 3),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(_sizes, st.integers(0, 60), _actions)
def test_any_order_of_reads_fills_and_evictions_gives_the_right_bytes_within_bounds(
    sizes, spare, actions
):
    limit = max(sizes) + spare
    states = [(n, size) for n, size in enumerate(sizes)]
    uris = [f"s3://b/{n}.tar" for n in range(len(sizes))]
    objects = {uri: content(*state) for uri, state in zip(uris, states, strict=True)}
    with tempfile.TemporaryDirectory() as name, plugged_in(MemoryStore(objects)) as store:
        folder = Path(name)
        caches = [cache_of(folder, limit) for _ in range(4)]
        lists = [WantedList(cache.room.folder) for cache in caches]
        for action, number, actor in actions:
            cache = caches[actor]
            uri = uris[number % len(uris)]
            if action == "replace":
                # A process looks at an object once: only those that start later see another one.
                store.objects[uri] = content(number + 100, len(store.objects[uri]))
                caches = [cache_of(folder, limit) for _ in range(4)]
            elif action == "restart":
                caches[actor] = cache_of(folder, limit)
                lists[actor].withdraw()
            elif action == "want" and cache.room.folder.exists():
                lists[actor].publish(cache.look([uri, uris[0]]))
            elif action == "read":
                size = len(store.objects[uri])
                found = cache.read(uri, [0, size // 2], [size, size - size // 2])
                if found is not None:
                    assert found == [store.objects[uri], store.objects[uri][size // 2 :]]
            elif action == "fill":
                cache.fill(cache.look([uri])[0])
            elif action == "stop":
                cache.fill(cache.look([uri])[0], stopped=lambda: True)
            elif action == "cut":
                for copy in sorted(cache.room.folder.glob("*.shard"))[:1]:
                    os.truncate(copy, 0)
            if cache.room.folder.exists():
                assert held_bytes(folder) <= limit
                assert cache.room.used() <= limit
        for one in lists:
            one.withdraw()
        for uri in uris:
            cache = cache_of(folder, limit)
            assert cache.read(uri, [0], [len(store.objects[uri])]) == [store.objects[uri]]
    assert access.is_remote("s3://b/0.tar")
