"""Bytes of local files through the common door; schemes that nothing reads are named."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from playhead.errors import DataError, NotSupportedError, SourceNotFoundError
from playhead.storage import access, pipe
from playhead.storage.base import ByteRange


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / name for name in ("a.bin", "b/c.bin")]
    for path, data in zip(paths, (b"0123456789", b"abcdef"), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return [str(path) for path in paths]


def test_ranges_of_several_files_come_in_the_order_asked_for(files):
    a, b = files
    asked = [ByteRange(b, 1, 2), ByteRange(a, 7, 3), ByteRange(b, 0, 1), ByteRange(a, 0, 0)]
    assert access.read_many(asked) == [b"bc", b"789", b"a", b""]
    assert access.read_ranges(a, [3, 0], [1, 2]) == [b"3", b"01"]


def test_stats_are_sizes_and_times(files):
    found = access.stats(files)
    assert [one.size for one in found] == [10, 6]
    assert found[0].version == Path(files[0]).stat().st_mtime_ns
    assert access.size(files[1]) == 6


def test_a_stream_begins_where_one_wants(files):
    assert list(access.stream(files[0], 4, 4)) == [b"4567", b"89"]


def test_files_are_listed_at_any_depth(files, tmp_path):
    assert access.list_files(str(tmp_path)) == sorted(files)


def test_what_is_written_is_there(tmp_path):
    access.write(str(tmp_path / "new" / "x"), b"data")
    assert (tmp_path / "new" / "x").read_bytes() == b"data"


def test_what_is_missing_or_short_is_named(files, tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"gone\.bin"):
        access.stats([files[0], str(tmp_path / "gone.bin")])
    with pytest.raises(DataError, match=r"a\.bin, byte 8"):
        access.read_many([ByteRange(files[0], 8, 3)])


@pytest.mark.parametrize("uri", ["ftp://host/a", "hdfs://a/b"])
def test_a_scheme_that_nothing_reads_is_refused(uri):
    with pytest.raises(NotSupportedError, match="Nothing reads"):
        access.stats([uri])


def test_threads_that_come_first_together_share_a_store(monkeypatch):
    class Slow:
        def __init__(self):
            time.sleep(0.05)

    monkeypatch.setattr(pipe, "PipeStore", Slow)
    access._store.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        stores = set(pool.map(access.store_of, ["pipe:true"] * 8))
    access._store.cache_clear()
    assert len(stores) == 1
