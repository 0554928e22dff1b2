"""Rows that are left out for good: found by content, kept by rebuilds, never the wrong ones."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from playhead.errors import BuildError, IndexFileError
from playhead.index import exclusions
from playhead.index.build import open_leaves
from playhead.index.exclusions import (
    Exclusion,
    RowName,
    add_exclusions,
    exclusions_path,
    find_exclusions,
    match_rows,
    newest_exclusion,
)
from playhead.index.lock import build_lock
from support.corpus import write_jsonl
from support.fetching import leaf_of


def rows_of(count: int, start: int = 0) -> list[dict]:
    return [
        {"audio_filepath": f"{i}.wav", "duration": 1.0 + i % 7 / 10, "text": f"n {i:04d}"}
        for i in range(start, start + count)
    ]


def opened(leaf, folder):
    return open_leaves([leaf], auto_index=True, pack_dir=str(folder / "packs"))[0]


@pytest.fixture
def leaf(tmp_path):
    paths = [write_jsonl(tmp_path / f"m{n}.json", rows_of(50, 50 * n)) for n in range(3)]
    return leaf_of("nemo", manifest=paths)


def excluded(pack, rows, at=1000, reason="bad"):
    """What excludes rows of a pack."""
    return [
        Exclusion(
            pack.entry.source,
            pack.shards.uris[pack.shard[row]],
            int(pack.row_offset[row]),
            int(pack.row_crc[row]),
            reason,
            at,
        )
        for row in rows
    ]


def found(pack):
    exclusions = find_exclusions(pack)
    if exclusions is None:
        return None
    assert exclusions.rows.dtype == exclusions.at.dtype == np.int64
    return exclusions.rows.tolist(), exclusions.at.tolist(), exclusions.stale


def test_rows_are_found_again_ascending_with_their_times(leaf, tmp_path):
    pack = opened(leaf, tmp_path)
    assert found(pack) is None
    assert newest_exclusion([pack.path]) == 0
    assert add_exclusions(pack.path, excluded(pack, [120, 7], at=1000)) == 2
    assert found(pack) == ([7, 120], [1000, 1000], 0)
    assert newest_exclusion([pack.path]) == 1000


def test_what_is_excluded_later_is_later_and_what_was_keeps_its_time(leaf, tmp_path):
    """A window that was drawn before must find what it was drawn with, whatever clocks say."""
    pack = opened(leaf, tmp_path)
    add_exclusions(pack.path, excluded(pack, [7, 8], at=5000))
    # This clock is behind.
    assert add_exclusions(pack.path, excluded(pack, [7, 3], at=2000)) == 1
    assert found(pack) == ([3, 7, 8], [5001, 5000, 5000], 0)
    assert add_exclusions(pack.path, excluded(pack, [3, 7, 8], at=9000)) == 0
    assert found(pack) == ([3, 7, 8], [5001, 5000, 5000], 0)


def test_neither_numbers_nor_fingerprints_of_rows_change(leaf, tmp_path):
    pack = opened(leaf, tmp_path)
    before = (pack.num_rows, pack.fingerprint(), Path(pack.path).read_bytes())
    add_exclusions(pack.path, excluded(pack, range(0, 150, 3)))
    pack = opened(leaf, tmp_path)
    assert (pack.num_rows, pack.fingerprint(), Path(pack.path).read_bytes()) == before
    assert found(pack)[0] == list(range(0, 150, 3))


def test_a_rebuilt_pack_keeps_them_and_rows_that_moved_or_changed_are_not_excluded(leaf, tmp_path):
    pack = opened(leaf, tmp_path)
    add_exclusions(pack.path, excluded(pack, [5, 60, 120]))
    # Rows are added at the end of the first manifest: what follows has other numbers.
    first = tmp_path / "m0.json"
    write_jsonl(first, rows_of(50) + rows_of(10, 900))
    pack = opened(leaf, tmp_path)
    assert found(pack) == ([5, 70, 130], [1000] * 3, 0)
    # Same place, same length, other content.
    rows = rows_of(50) + rows_of(10, 900)
    rows[5]["text"] = "n 0999"
    write_jsonl(first, rows)
    pack = opened(leaf, tmp_path)
    assert found(pack) == ([70, 130], [1000] * 2, 1)
    # The row has moved: another one is where it was.
    write_jsonl(first, rows_of(50)[1:])
    pack = opened(leaf, tmp_path)
    assert found(pack) == ([59, 119], [1000] * 2, 1)
    write_jsonl(first, rows_of(50))
    pack = opened(leaf, tmp_path)
    assert found(pack) == ([5, 60, 120], [1000] * 3, 0)


def test_a_manifest_that_is_declared_twice_is_excluded_twice(tmp_path):
    path = write_jsonl(tmp_path / "m.json", rows_of(10))
    pack = opened(leaf_of("nemo", manifest=[path, path]), tmp_path)
    add_exclusions(pack.path, excluded(pack, [4]))
    assert found(pack) == ([4, 14], [1000, 1000], 0)


def test_leaves_of_one_pack_do_not_share_them(tmp_path, monkeypatch):
    monkeypatch.setattr("playhead.index.build_target.MAX_SINGLE_PACKS", 0)
    monkeypatch.setattr("playhead.index.build_target._NUM_GROUPS", 1)
    path = write_jsonl(tmp_path / "m.json", rows_of(10))
    other = write_jsonl(tmp_path / "o.json", rows_of(10))
    leaves = [leaf_of("nemo", manifest=path), leaf_of("nemo", manifest=other)]
    packs = open_leaves(leaves, auto_index=True, pack_dir=str(tmp_path / "packs"))
    assert packs[0].path == packs[1].path
    add_exclusions(packs[0].path, excluded(packs[0], [4]))
    add_exclusions(packs[1].path, excluded(packs[1], [6], at=2000))
    assert found(packs[0]) == ([4], [1000], 0)
    assert found(packs[1]) == ([6], [2000], 0)


def test_names_say_which_of_them_mean_a_row(leaf, tmp_path):
    pack = opened(leaf, tmp_path)
    (good,) = excluded(pack, [33])
    names = [
        RowName(good.shard, good.offset, good.crc),
        RowName(good.shard, good.offset, good.crc ^ 1),
        RowName(good.shard, good.offset + 1, good.crc),
        RowName("/nowhere.json", good.offset, good.crc),
    ]
    matches = match_rows(pack, names)
    assert matches.rows == [[33], [], [], []]
    assert matches.changed == [False, True, False, False]
    assert match_rows(pack, []) == ([], [])


def test_anybody_can_read_the_file(leaf, tmp_path):
    pack = opened(leaf, tmp_path)
    add_exclusions(pack.path, excluded(pack, [7], reason="flac decoder lost sync"))
    with pa.ipc.open_file(exclusions_path(pack.path)) as reader:
        (row,) = reader.read_all().to_pylist()
    assert row == {
        "source": pack.entry.source,
        "shard": str(tmp_path / "m0.json"),
        "offset": int(pack.row_offset[7]),
        "crc": int(pack.row_crc[7]),
        "reason": "flac decoder lost sync",
        "at": 1000,
    }


@pytest.mark.parametrize("damage", ["cut", "text", "version", "columns"])
def test_a_damaged_file_is_an_error_that_names_it(leaf, tmp_path, damage):
    pack = opened(leaf, tmp_path)
    add_exclusions(pack.path, excluded(pack, range(20)))
    path = exclusions_path(pack.path)
    with pa.ipc.open_file(path) as reader:
        table = reader.read_all()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-300])
    elif damage == "text":
        path.write_text("rows")
    else:
        if damage == "version":
            table = table.replace_schema_metadata({"playhead.exclusions": "9"})
        else:
            table = table.drop_columns(["at"])
        with pa.ipc.new_file(path, table.schema) as out:
            out.write_table(table)
    with pytest.raises(IndexFileError, match=r"excluded\.arrow.*--exclude"):
        find_exclusions(pack)
    with pytest.raises(IndexFileError):
        add_exclusions(pack.path, excluded(pack, [30]))


def test_many_at_once_lose_nothing(leaf, tmp_path):
    pack = opened(leaf, tmp_path)
    failures = []

    def work(rows):
        try:
            for row in rows:
                add_exclusions(pack.path, excluded(pack, [row], at=1))
        except Exception as error:  # noqa: BLE001 - told by the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(range(n, 20, 4),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    rows, at, _ = found(pack)
    assert rows == list(range(20))
    assert len(set(at)) == 20


def test_a_lock_that_another_holds_is_waited_for_with_a_limit(leaf, tmp_path):
    pack = opened(leaf, tmp_path)
    with (
        build_lock(Path(pack.path), wait_seconds=5),
        pytest.raises(BuildError, match="Waited"),
    ):
        add_exclusions(pack.path, excluded(pack, [1]), wait_seconds=0.2)
    assert found(pack) is None


def test_compressed_manifests_have_rows_too(tmp_path):
    import gzip

    lines = "".join(json.dumps(row) + "\n" for row in rows_of(12))
    path = tmp_path / "m.jsonl.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    pack = opened(leaf_of("nemo", manifest=path), tmp_path)
    add_exclusions(pack.path, excluded(pack, [11]))
    assert found(pack) == ([11], [1000], 0)


def test_a_bit_that_changed_is_noticed(tmp_path):
    """Damaged, the list could bring rows back in silence, or Arrow down."""
    rows = [Exclusion("s", "/m.json", n, n, "no audio", n + 1) for n in range(3)]
    path = exclusions_path(tmp_path / "a.idxpack")
    exclusions._write(path, rows)
    data = path.read_bytes()
    assert exclusions._read(str(tmp_path / "a.idxpack")) == {"s": rows}
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        exclusions._read_once.cache_clear()
        with pytest.raises(IndexFileError, match="cannot be read"):
            exclusions._read(str(tmp_path / "a.idxpack"))
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(IndexFileError, match="cannot be read"):
        exclusions._read(str(tmp_path / "a.idxpack"))
