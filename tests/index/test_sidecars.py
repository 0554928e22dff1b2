import os
import time
from pathlib import Path

import numpy as np
import pytest

from playhead.errors import (
    ArchiveError,
    BuildError,
    ConfigError,
    NotSupportedError,
    SourceNotFoundError,
    StorageError,
)
from playhead.index import sidecars
from playhead.index.idx import read_idx, write_idx
from playhead.index.sidecar_run import stale_sidecars
from playhead.index.sidecars import Sidecar, build_sidecar, is_fresh
from playhead.storage import access
from support.corpus import write_tar
from support.stores import MemoryStore, plugged_in


def sidecar(path: Path, kind: str) -> Sidecar:
    return Sidecar(path=str(path), kind=kind, idx=f"{path}.idx")


def lines(path: Path, count: int = 5) -> Sidecar:
    path.write_bytes(b'{"a": 1}\n' * count)
    return sidecar(path, "jsonl")


def singles(path: Path, count: int = 6) -> Sidecar:
    write_tar(path, [(f"{i}.wav", b"x" * 100 * i) for i in range(count)])
    return sidecar(path, "nemo_tar")


def pairs(path: Path, count: int = 3, size: int = 100) -> Sidecar:
    members = [
        (f"{i}.{suffix}", b"x" * length)
        for i in range(count)
        for suffix, length in (("flac", size), ("json", 20))
    ]
    write_tar(path, members)
    return sidecar(path, "wds_tar")


MAKERS = {"jsonl": lines, "nemo_tar": singles, "wds_tar": pairs}


def newer(path: str, seconds: float) -> None:
    at = time.time() + seconds
    os.utime(path, (at, at))


@pytest.fixture(params=MAKERS)
def built(tmp_path, request):
    item = MAKERS[request.param](tmp_path / f"data.{request.param}")
    assert not is_fresh(item), "there is none yet"
    assert build_sidecar(item) == {"jsonl": 5, "nemo_tar": 6, "wds_tar": 3}[request.param]
    assert is_fresh(item)
    return item


def test_the_data_are_not_touched(tmp_path):
    for kind, make in MAKERS.items():
        item = make(tmp_path / f"data.{kind}")
        before = Path(item.path).read_bytes(), Path(item.path).stat().st_mtime_ns
        build_sidecar(item)
        assert (Path(item.path).read_bytes(), Path(item.path).stat().st_mtime_ns) == before


def test_a_newer_source_is_stale(built):
    newer(built.path, 5)
    assert not is_fresh(built)


def test_a_grown_source_is_stale_whatever_the_times_say(built):
    with Path(built.path).open("ab") as file:
        file.write(b'{"a": 2}\n')
    newer(built.path, -1000)
    assert not is_fresh(built)


def test_a_shrunk_source_is_stale(built):
    os.truncate(built.path, Path(built.path).stat().st_size - 9)
    newer(built.path, -1000)
    assert not is_fresh(built)


def test_a_source_that_is_gone_is_not_fresh(built):
    Path(built.path).unlink()
    assert not is_fresh(built)


@pytest.mark.parametrize("data", [b"", bytes(4), bytes(13), b"NEMOTAR\0" + bytes(16)])
def test_a_damaged_index_is_not_fresh(built, data):
    Path(built.idx).write_bytes(data)
    assert not is_fresh(built)


def test_an_index_that_pairs_single_members_is_not_fresh(tmp_path):
    """As Lhotse makes of a NeMo tar with an even number of members: right size, right sentinel."""
    for count in (2, 6):
        item = singles(tmp_path / f"{count}.tar", count)
        right = read_after_build(item)
        write_idx(item.idx, np.append(right[:-1:2], right[-1]))
        assert not is_fresh(item)


def test_an_index_of_members_is_not_fresh_for_pairs(tmp_path):
    item = pairs(tmp_path / "a.tar")
    build_sidecar(sidecar(tmp_path / "a.tar", "nemo_tar"))
    assert not is_fresh(item)


def read_after_build(item: Sidecar) -> np.ndarray:
    build_sidecar(item)
    return read_idx(item.idx)


def test_an_index_of_other_lines_is_not_fresh(tmp_path):
    item = lines(tmp_path / "a.jsonl")
    right = read_after_build(item)
    for first, second in ((0, 8), (1, 9)):
        wrong = right.copy()
        wrong[:2] = first, second
        write_idx(item.idx, wrong)
        assert not is_fresh(item)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("kind", MAKERS)
def test_none_and_one_sample(tmp_path, kind, count):
    item = MAKERS[kind](tmp_path / "data", count)
    assert build_sidecar(item) == count
    assert is_fresh(item)


def test_lhotses_early_sentinel_is_fresh_until_the_archive_grows(tmp_path):
    item = pairs(tmp_path / "a.tar", count=1, size=512 * 16)
    build_sidecar(item)
    assert read_idx(item.idx)[-1] == 10240
    assert Path(item.path).stat().st_size == 20480
    assert is_fresh(item)
    with Path(item.path).open("r+b") as file:
        file.seek(20479)
        file.write(b"x")
    newer(item.path, -1000)
    assert not is_fresh(item)


def test_a_source_from_the_future_is_fresh_once_built(tmp_path):
    item = lines(tmp_path / "a.jsonl")
    newer(item.path, 5000)
    build_sidecar(item)
    assert is_fresh(item)


def test_the_index_may_lie_anywhere(tmp_path):
    lines(tmp_path / "a.jsonl")
    item = Sidecar(path=str(tmp_path / "a.jsonl"), kind="jsonl", idx=str(tmp_path / "x/y/a.idx"))
    build_sidecar(item)
    assert is_fresh(item)
    assert not Path(f"{item.path}.idx").exists()


def test_what_cannot_be_indexed_is_named(tmp_path):
    with pytest.raises(SourceNotFoundError, match="nowhere"):
        build_sidecar(sidecar(tmp_path / "nowhere.jsonl", "jsonl"))
    with pytest.raises(NotSupportedError, match=r"compressed.*a\.jsonl\.gz"):
        build_sidecar(sidecar(tmp_path / "a.jsonl.gz", "jsonl"))
    with pytest.raises(NotSupportedError, match=r"hdfs://bucket/a\.jsonl"):
        build_sidecar(Sidecar(path="hdfs://bucket/a.jsonl", kind="jsonl", idx="x.idx"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=r"a folder, not a file \(.*/folder\)"):
        build_sidecar(sidecar(tmp_path / "folder", "jsonl"))
    (tmp_path / "no.tar").write_bytes(b"this is no tar" * 100)
    with pytest.raises(ArchiveError, match=r"checksum is wrong.*no\.tar, byte 0"):
        build_sidecar(sidecar(tmp_path / "no.tar", "nemo_tar"))
    assert [path.name for path in tmp_path.rglob("*.idx")] == []


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    item = lines(tmp_path / "a.jsonl")

    def fail(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(sidecars, "iter_jsonl_offsets", fail)
    with pytest.raises(BuildError, match=r"cannot be read: Permission denied.*a\.jsonl"):
        build_sidecar(item)


def test_an_index_that_cannot_be_written_is_named(tmp_path):
    lines(tmp_path / "a.jsonl")
    (tmp_path / "file").touch()
    item = Sidecar(path=str(tmp_path / "a.jsonl"), kind="jsonl", idx=str(tmp_path / "file/a.idx"))
    with pytest.raises(BuildError, match=r"cannot be written.*file/a\.idx.*--indexes-root"):
        build_sidecar(item)


def test_a_source_that_changes_meanwhile_is_refused(tmp_path, monkeypatch):
    item = lines(tmp_path / "a.jsonl")
    write = sidecars.write_idx_blocks

    def write_and_grow(*args):
        count = write(*args)
        with Path(item.path).open("ab") as file:
            file.write(b"{}\n")
        return count

    monkeypatch.setattr(sidecars, "write_idx_blocks", write_and_grow)
    with pytest.raises(BuildError, match="changed"):
        build_sidecar(item)
    assert not is_fresh(item)


SCHEMES = {"jsonl": "s3://b/data.jsonl", "nemo_tar": "ais://b/d.tar", "wds_tar": "http://h/d.tar"}


@pytest.fixture(params=[(kind, where) for kind in MAKERS for where in ("beside", "here")])
def remote(tmp_path, request):
    kind, where = request.param
    local = MAKERS[kind](tmp_path / "data")
    build_sidecar(local)
    uri = SCHEMES[kind]
    idx = f"{uri}.idx" if where == "beside" else str(tmp_path / "indexes/data.idx")
    with plugged_in(MemoryStore({uri: Path(local.path).read_bytes()})) as store:
        yield Sidecar(path=uri, kind=kind, idx=idx), local, store


def test_the_index_of_an_object_is_that_of_a_file_wherever_it_lies(remote):
    item, local, store = remote
    assert not is_fresh(item)
    assert build_sidecar(item) == len(read_idx(local.idx)) - 1
    data = store.objects.get(item.idx) or Path(item.idx).read_bytes()
    assert data == Path(local.idx).read_bytes()
    assert is_fresh(item)
    assert read_idx(item.idx).tolist() == read_idx(local.idx).tolist()


def test_of_an_object_that_grew_or_begins_otherwise_the_index_is_stale(remote):
    item, _, store = remote
    build_sidecar(item)
    whole = store.objects[item.path]
    store.write(item.path, whole + b"x" * 512)
    assert not is_fresh(item)
    # As long as before, and other records.
    store.write(item.path, whole[512:] + whole[:512] if item.kind != "jsonl" else b"x" * len(whole))
    assert not is_fresh(item)
    store.write(item.path, whole)
    assert is_fresh(item)


def test_an_index_that_is_no_index_is_stale(remote):
    item = remote[0]
    for bad in (b"", b"1234567"):
        access.write(item.idx, bad)
        assert not is_fresh(item)


def test_an_object_that_is_replaced_while_it_is_indexed_is_an_error(remote, monkeypatch):
    item, _, store = remote
    data = store.objects[item.path]
    at = data.rindex(b"1" if item.kind == "jsonl" else b"xx")
    of = store.of

    def replaced(uri):
        found = of(uri)
        if uri == item.path and looked:
            store.objects[uri] = data[:at] + b"?" + data[at + 1 :]
        looked.append(uri)
        return found

    looked: list[str] = []
    monkeypatch.setattr(store, "of", replaced)
    with pytest.raises(BuildError, match="changed while it was read"):
        build_sidecar(item)


def test_a_store_that_cannot_be_asked_is_no_stale_index(remote, monkeypatch):
    item, _, store = remote
    build_sidecar(item)

    def fail(_):
        raise StorageError("the store does not answer", where=item.path)

    monkeypatch.setattr(store, "stats", fail)
    with pytest.raises(StorageError):
        stale_sidecars([item])
