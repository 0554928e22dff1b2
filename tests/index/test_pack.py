from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from playhead.errors import IndexFileError, StaleIndexError
from playhead.index.columns import COLUMNS
from playhead.index.pack import LeafPack, open_pack
from playhead.index.pack_table import SHARDS_KEY
from support.corpus import tarred_corpus, write_jsonl
from support.leaves import make_leaf, open_one
from support.shar import shar_leaf, simple_cuts, write_shar

FIX = "playhead index --force"


def manifest(folder: Path, rows: int, start: float = 1.0, name: str = "m.json") -> Path:
    return write_jsonl(
        folder / name,
        [{"audio_filepath": f"/{i}.wav", "duration": start + i} for i in range(rows)],
    )


@pytest.fixture
def pack(tmp_path: Path) -> LeafPack:
    return open_one(make_leaf("nemo", manifest=[manifest(tmp_path, 5)]), tmp_path / "packs")


def damaged(pack: LeafPack, change) -> Path:
    """The pack's file with other bytes, under a name of its own."""
    path = Path(pack.path)
    other = path.with_name("other.idxpack")
    other.write_bytes(change(path.read_bytes()))
    return other


def test_columns_are_read_only_views_of_the_file(pack: LeafPack):
    for name, dtype in COLUMNS.items():
        column = getattr(pack, name)
        assert column.dtype == dtype
        assert column.shape == (5,)
        assert not column.flags.writeable
        assert not column.flags.owndata


def test_anyone_can_read_a_pack(pack: LeafPack):
    table = pa.ipc.open_file(pack.path).read_all()
    assert table["duration_us"].to_pylist() == [1_000_000 * (i + 1) for i in range(5)]
    leaves = json.loads(table.schema.metadata[b"playhead.leaves"])
    assert leaves[0]["key"] == "leaf"
    shards = pa.ipc.open_stream(table.schema.metadata[b"playhead.shards"]).read_all()
    assert shards["rows"].to_pylist() == [5]


def test_a_reference_travels_and_the_map_does_not(pack: LeafPack):
    data = pickle.dumps(pack.ref)
    assert len(data) < 500
    again = pickle.loads(data).open()
    np.testing.assert_array_equal(again.duration_us, pack.duration_us)
    assert (again.key, again.digest) == (pack.key, pack.digest)
    assert len(pickle.dumps(pack)) < 600
    assert pickle.loads(pickle.dumps(pack)).fingerprint(3) == pack.fingerprint(3)


def test_a_pack_is_mapped_once(pack: LeafPack):
    assert open_pack(pack.path) is open_pack(pack.path)


def test_a_replaced_pack_is_noticed(pack: LeafPack, tmp_path: Path):
    reference = pack.ref
    (tmp_path / "m.json").unlink()
    leaf = make_leaf("nemo", manifest=[manifest(tmp_path, 6)])
    assert open_one(leaf, tmp_path / "packs").path == reference.path
    assert pack.num_rows == 5
    assert pack.duration_us.sum() == 15_000_000
    with pytest.raises(StaleIndexError, match="replaced while it was in use"):
        reference.open()


def test_more_rows_than_there_are_have_no_fingerprint(pack: LeafPack):
    for n in (-1, 6):
        with pytest.raises(ValueError, match="has 5 rows"):
            pack.fingerprint(n)
    assert pack.fingerprint() == pack.fingerprint(5) == pack.digest
    assert pack.fingerprint(4) != pack.fingerprint(5)


def test_an_unknown_leaf_is_named(pack: LeafPack):
    with pytest.raises(IndexFileError, match=f"does not hold leaf other but leaf .*{FIX}"):
        open_pack(pack.path).leaf("other")
    assert [leaf.key for leaf in open_pack(pack.path).leaves] == ["leaf"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data[:-1], "damaged"),
        (lambda data: data[: len(data) // 2], "damaged"),
        (lambda data: data[:100], "damaged"),
        (lambda data: data[:4], "not a pack"),
        (lambda _: b"", "not a pack"),
        (lambda data: b"XRROW1" + data[6:], "not a pack"),
        (lambda data: data[:-6] + b"XRROW1", "damaged"),
        (lambda data: b"IDXPACK2" + data[8:], "NeMo or Lhotse made"),
        (lambda data: data.replace(b"playhead.shards", b"playhead.shardx"), "damaged"),
        (lambda data: data.replace(b'"num_rows":5', b'"num_rows":6'), "damaged"),
        (lambda data: data.replace(b"row_offset", b"row_offsex"), "damaged"),
        (lambda data: data.replace(b'"shard_start"', b'"shard_stars"'), "damaged"),
    ],
)
def test_damage_is_named(pack: LeafPack, change, says: str):
    path = damaged(pack, change)
    with pytest.raises(IndexFileError, match=says) as caught:
        open_pack(path)
    assert str(path) in str(caught.value)
    assert "playhead index" in str(caught.value) or "playhead pack" in str(caught.value)


def test_any_truncation_is_an_error(pack: LeafPack):
    data = Path(pack.path).read_bytes()
    for size in range(0, len(data), 97):
        with pytest.raises(IndexFileError):
            open_pack(damaged(pack, lambda data, size=size: data[:size]))


def test_flipped_bytes_are_an_error_or_leave_the_tables_whole(pack: LeafPack):
    """No damage of the file's frame may end the process or open as something else."""
    data = Path(pack.path).read_bytes()
    refused = 0
    for at in range(0, len(data), 61):
        path = damaged(
            pack, lambda data, at=at: data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
        )
        try:
            opened = open_pack(path)
        except IndexFileError:
            refused += 1
        else:
            assert [leaf.num_rows for leaf in opened.leaves] == [5]
    assert refused > 0


def columns_of(leaf: LeafPack) -> list[list]:
    """All numbers of a leaf, its parts included."""
    parts = leaf.parts(np.arange(leaf.num_rows))
    return [column.tolist() for column in (*leaf.columns().values(), *parts)]


@pytest.mark.parametrize("kind", ["plain", "with parts"])
def test_numbers_are_what_was_written_or_an_error_whatever_byte_is_flipped(tmp_path, pack, kind):
    if kind == "with parts":
        write_shar(tmp_path / "shar", simple_cuts(tmp_path, ["a", "b", "c"]))
        pack = open_one(shar_leaf(tmp_path / "shar"), tmp_path / "packs")
    numbers = columns_of(pack)
    data = Path(pack.path).read_bytes()
    refused = 0
    for at in range(0, len(data), 19):
        flipped = bytes([data[at] ^ 1 << at % 8])
        path = damaged(pack, lambda data, at=at, new=flipped: data[:at] + new + data[at + 1 :])
        try:
            found = columns_of(open_pack(path).leaf(pack.key))
        except IndexFileError:
            refused += 1
        else:
            assert found == numbers
    assert refused > len(data) / 19 / 4


def test_a_damaged_table_of_files_is_an_error_too(pack: LeafPack):
    data = Path(pack.path).read_bytes()
    table = pa.ipc.open_file(pack.path).schema.metadata[SHARDS_KEY]

    def is_refused(at: int) -> bool:
        path = damaged(pack, lambda _: data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        try:
            assert open_pack(path).shards
        except IndexFileError as error:
            return "other.idxpack" in str(error)
        return False

    # The schema stands in the file twice, and what counts is the second.
    start = data.rindex(table)
    assert all(map(is_refused, range(start, start + len(table), 7)))


def test_damage_to_a_column_is_said_when_it_is_asked_for_and_never_before(pack: LeafPack):
    data = Path(pack.path).read_bytes()
    lengths = pack.duration_us.tobytes()
    start = data.index(lengths)
    path = damaged(pack, lambda _: data[:start] + b"\xff" * 8 + data[start + 8 :])
    leaf = open_pack(path).leaf(pack.key)
    assert leaf.row_size.tolist() == pack.row_size.tolist()
    assert leaf.digest != pack.digest
    for _ in range(2):
        with pytest.raises(IndexFileError, match=r"damaged: column duration_us.*other\.idxpack"):
            leaf.duration_us.sum()


def test_other_versions_and_files_are_told_apart(pack: LeafPack, tmp_path: Path):
    def versioned(metadata: dict | None) -> Path:
        path = tmp_path / "v.idxpack"
        batch = pa.record_batch({"a": [1]}).replace_schema_metadata(metadata)
        with pa.ipc.new_file(path, batch.schema) as writer:
            writer.write_batch(batch)
        return path

    with pytest.raises(IndexFileError, match="has version 99, this Playhead reads version 4"):
        open_pack(versioned({"playhead.pack": "99"}))
    with pytest.raises(IndexFileError, match="not a pack of Playhead"):
        open_pack(versioned(None))
    with pytest.raises(IndexFileError, match="damaged"):
        open_pack(versioned({"playhead.pack": "4"}))
    with pytest.raises(IndexFileError, match="No such file"):
        open_pack(tmp_path / "none.idxpack")


def test_explain_change_names_the_file(tmp_path: Path):
    def rebuilt() -> LeafPack:
        leaf = make_leaf("nemo", manifest=[tmp_path / "a.json", tmp_path / "b.json"])
        return open_one(leaf, tmp_path / "packs")

    a, b = manifest(tmp_path, 4, name="a.json"), manifest(tmp_path, 3, name="b.json")
    first = rebuilt()
    b.write_text(b.read_text() + '{"audio_filepath": "/x.wav", "duration": 9}\n')
    second = rebuilt()
    assert second.explain_change(first.digest, 7) == f"{b}: 3 rows became 4"
    a.write_text(a.read_text().replace("2.0", "7.0").replace("3.0", "8.0"))
    third = rebuilt()
    assert third.explain_change(second.digest, 8) == (
        f"{a}: 2 durations differ, the first at row 1"
    )
    assert third.explain_change(first.digest, 7) == (
        f"{b}: 3 rows became 4; {a}: 2 durations differ, the first at row 1"
    )
    assert third.explain_change("0" * 16, 20) == f"{a} and 1 more files: 20 rows became 8"
    assert "lengths or places of the first 5 rows differ" in third.explain_change("0" * 16, 5)
    a.write_text(a.read_text().replace("/0.wav", "/000.wav"))
    assert rebuilt().explain_change(third.digest, 8) == (
        f"{a}: 4 rows lie elsewhere in the file, the first at row 0"
    )


def test_explain_change_knows_archives(tmp_path: Path):
    tarred_corpus(tmp_path, [1.0, 2.0], 1)
    leaf = make_leaf(
        "nemo_tarred", manifest=[tmp_path / "manifest_0.json"], tar=[tmp_path / "audio_0.tar"]
    )
    before = open_one(leaf, tmp_path / "packs")
    tarred_corpus(tmp_path, [1.0, 2.0], 1, rate=8000)
    after = open_one(leaf, tmp_path / "packs")
    assert after.explain_change(before.digest, 2) == (
        f"{tmp_path}/audio_0.tar: 2 members lie elsewhere in the archive, the first at row 0"
    )


def test_a_moved_time_stamp_is_no_change(tmp_path: Path, pack: LeafPack):
    os.utime(tmp_path / "m.json", ns=(1, 1))
    leaf = make_leaf("nemo", manifest=[tmp_path / "m.json"])
    again = open_one(leaf, tmp_path / "packs")
    assert again.digest == pack.digest
    assert again.entry.history == []
    assert again.shards.mtimes_ns.tolist() == [1]
