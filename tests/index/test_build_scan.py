from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile as sf
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.stores import MemoryStore, plugged_in

from playhead.errors import (
    ArchiveError,
    BuildError,
    DataError,
    ManifestError,
    NotSupportedError,
    SourceNotFoundError,
)
from playhead.formats import SourcePair
from playhead.index import build_scan
from playhead.index.build_rows import ScanTask
from playhead.index.build_scan import scan
from playhead.index.source import read_lines
from support.corpus import nemo_corpus, tone, wav_bytes, write_jsonl, write_tar
from support.leaves import make_leaf, open_one, read_bytes, read_example, read_examples

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {"audio_filepath": "/a.wav", "duration": 1.0}


@pytest.fixture
def small_blocks(monkeypatch):
    """So that a few rows reach over several blocks."""
    monkeypatch.setattr(build_scan, "read_lines", lambda path: read_lines(path, 64))


def scanned(path: Path, **options: Any) -> tuple[dict[str, np.ndarray], Counter[str], bytes]:
    """All columns of one manifest, what was left out, and the embedded rows."""
    task = ScanTask(
        leaf=make_leaf("nemo", manifest=[path]),
        pair=SourcePair(manifest=str(path)),
        first_shard=0,
        embed=True,
        skip_bad_rows=options.get("skip_bad_rows", False),
    )
    blocks = list(scan(task))
    columns = {
        name: np.concatenate([block.columns[name] for block in blocks])
        for name in (blocks[0].columns if blocks else ())
    }
    return columns, task.dropped, b"".join(row for block in blocks for row in block.data or ())


def texts(path: Path, columns: dict[str, np.ndarray]) -> list[bytes]:
    data = path.read_bytes()
    places = zip(columns["row_offset"], columns["row_size"], strict=True)
    return [data[offset : offset + size] for offset, size in places]


line_kinds = st.sampled_from(["row", "row", "row", "blank", "spaces", "skip", "long", "nan", "bad"])


@settings(max_examples=150)
@given(
    kinds=st.lists(line_kinds, max_size=40),
    newline=st.sampled_from([b"\n", b"\r\n"]),
    bom=st.booleans(),
    final=st.booleans(),
    block=st.integers(1, 300),
)
def test_every_row_is_found_at_its_bytes(  # noqa: PLR0917 - what Hypothesis draws
    tmp_path_factory, kinds, newline, bom, final, block
):
    path = tmp_path_factory.mktemp("scan") / "m.json"
    rows: list[bytes] = []
    expected: list[tuple[int, bytes]] = []
    for i, kind in enumerate(kinds):
        row = json.dumps({"audio_filepath": f"/{i}.wav", "duration": i}).encode()
        if kind == "skip":
            row = row[:-1] + b', "_skipme": "x"}'
        elif kind == "long":
            row = row[:-1] + b', "text": "' + b"x" * 200 + b'"}'
        elif kind == "nan":
            row = row[:-1] + b', "cer": NaN}'
        elif kind == "bad":
            row = row[:-1]
        elif kind == "blank":
            row = b""
        elif kind == "spaces":
            row = b" \t"
        rows.append(row)
        if kind in ("row", "long", "nan"):
            expected.append((i, row))
    data = newline.join(rows) + (newline if final and rows else b"")
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_scan, "read_lines", lambda name: read_lines(name, block))
        columns, dropped, embedded = scanned(path, skip_bad_rows=True)
    if not expected:
        assert sum(len(column) for column in columns.values()) == 0
        return
    assert columns["duration_us"].tolist() == [i * 1_000_000 for i, _ in expected]
    assert texts(path, columns) == [row for _, row in expected]
    assert embedded == b"".join(texts(path, columns))
    count = Counter(kinds)
    assert dropped["_skipme"] == count["skip"]
    assert dropped["bad row"] == count["bad"]


def test_blank_lines_are_counted(tmp_path: Path, small_blocks):
    path = tmp_path / "m.json"
    row = json.dumps(GOOD)
    path.write_text(f"\n{row}\n\n  \n{row}\n\r\n")
    columns, dropped, _ = scanned(path)
    assert len(columns["shard"]) == 2
    assert dropped == {"blank line": 4}


def test_an_empty_file_has_no_rows(tmp_path: Path):
    for content in (b"", b"\xef\xbb\xbf", b"\n\n"):
        (tmp_path / "m.json").write_bytes(content)
        pack = open_one(make_leaf("nemo", manifest=[tmp_path / "m.json"]), tmp_path / "packs")
        assert pack.num_rows == 0
        assert pack.fingerprint() == pack.fingerprint(0)
        assert pack.duration_us.dtype == np.int64


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"audio_filepath": "/a.wav", "duration": ', "not valid JSON"),
        ('{"audio_filepath": "/a.wav", "duration": NaN}', "duration is nan"),
        ('{"audio_filepath": "/a.wav", "duration": -2}', "duration is -2.0"),
        ('{"audio_filepath": "/a.wav", "duration": 1e999}', "number out of range"),
        ('{"duration": 1}', "no audio_filepath"),
        (f"{json.dumps(GOOD)} {json.dumps(GOOD)}", "not one JSON object"),
        ("[", "not what it should be"),
        ('"text"', "not what it should be"),
        ("null", "not what it should be"),
    ],
)
def test_a_bad_row_is_named_by_file_line_and_byte(tmp_path: Path, line: str, says: str):
    path = tmp_path / "m.json"
    row = json.dumps(GOOD)
    path.write_text("\n".join([row] * 5 + ["", line] + [row] * 5))
    where = re.escape(f"(leaf leaf, {path}:7, byte {(len(row) + 1) * 5 + 1})")
    with pytest.raises(ManifestError, match=f"(?i){says}.*{where}.*--skip-bad-rows"):
        open_one(make_leaf("nemo", manifest=[path]), tmp_path / "packs")
    columns, dropped, _ = scanned(path, skip_bad_rows=True)
    assert dropped == {"bad row": 1, "blank line": 1}
    assert len(columns["shard"]) == 10


def test_a_value_over_two_lines_is_bad(tmp_path: Path):
    path = tmp_path / "m.json"
    path.write_text('{"audio_filepath": "/a.wav",\n"duration": 1}\n')
    with pytest.raises(ManifestError, match=f"{path}:1, byte 0"):
        scanned(path)


def test_rows_that_only_python_reads_are_read(tmp_path: Path):
    path = write_jsonl(tmp_path / "m.json", [GOOD | {"snr": float("nan")}, GOOD])
    leaf = make_leaf("nemo", manifest=[path])
    pack = open_one(leaf, tmp_path / "packs")
    assert pack.num_rows == 2
    assert np.isnan(read_example(leaf, pack, 0).custom["snr"])


def test_durations_are_measured_where_they_are_missing(tmp_path: Path):
    path = nemo_corpus(tmp_path, [0.5, 0.25])
    sf.write(tmp_path / "stereo.flac", tone(0.3, 8000, 2), 8000)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    del rows[0]["duration"]
    rows.append({"audio_filepath": "stereo.flac"})
    rows.append({"audio_filepath": "stereo.flac", "offset": 0.1})
    write_jsonl(path, rows)
    pack = open_one(make_leaf("nemo", manifest=[path]), tmp_path / "packs")
    assert pack.duration_us.tolist() == [500_000, 250_000, 300_000, 200_000]
    assert pack.num_samples.tolist() == [8000, 0, 2400, 1600]
    assert pack.rate.tolist() == [16000, 0, 8000, 8000]
    assert pack.channels.tolist() == [1, 0, 2, 2]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"audio_filepath": "none.wav"}, "its audio none.wav does not exist"),
        ({"audio_filepath": "m.json"}, "m.json cannot be read"),
        ({"audio_filepath": "a.wav", "offset": 1.5}, "offset 1.5 s is behind the end"),
    ],
)
def test_what_cannot_be_measured_is_named(tmp_path: Path, row: dict, says: str):
    (tmp_path / "a.wav").write_bytes(wav_bytes(1.0))
    path = write_jsonl(tmp_path / "m.json", [GOOD, row])
    with pytest.raises(ManifestError, match=f"{says}.*m.json:2"):
        scanned(path)


def tarred(folder: Path, members: list[tuple[str, bytes]], rows: list[dict]) -> Any:
    return make_leaf(
        "nemo_tarred",
        manifest=[write_jsonl(folder / "m.json", rows)],
        tar=[write_tar(folder / "a.tar", members)],
    )


def test_an_empty_manifest_is_counted_with_the_members_that_it_forgets(tmp_path: Path):
    leaf = tarred(tmp_path, [("a.wav", b"A"), ("b.wav", b"B")], [])
    pack = open_one(leaf, tmp_path / "packs")
    assert pack.num_rows == 0
    assert pack.dropped == {"manifest without rows": 1, "tar member without a row": 2}


def test_an_empty_manifest_may_lie_beside_an_archive_that_is_none(tmp_path: Path):
    leaf = tarred(tmp_path, [], [])
    (tmp_path / "a.tar").write_bytes(b"")
    assert open_one(leaf, tmp_path / "packs").dropped == {"manifest without rows": 1}


def test_rows_find_their_members(tmp_path: Path):
    members = [("b.wav", b"B" * 700), ("dir/a.wav", b"A"), ("talk.wav", b"T" * 512), ("x", b"")]
    rows = [
        {"audio_filepath": "dir/a.wav", "duration": 1},
        {"audio_filepath": "talk-sub2.wav", "duration": 1, "offset": 0.5},
        {"audio_filepath": "talk-sub1.wav", "duration": 2},
        {"audio_filepath": "b.wav", "duration": 3},
    ]
    leaf = tarred(tmp_path, members, rows)
    pack = open_one(leaf, tmp_path / "packs")
    assert [read_bytes(pack, i)[1] for i in range(4)] == [b"A", b"T" * 512, b"T" * 512, b"B" * 700]
    assert pack.tar.tolist() == [1, 1, 1, 1]
    assert pack.shard.tolist() == [0, 0, 0, 0]
    assert pack.dropped == {"tar member without a row": 1}
    examples = read_examples(leaf, pack)
    assert [e.id for e in examples] == [
        "dir/a.wav",
        "talk-sub2.wav-000050-000100",
        "talk-sub1.wav",
        "b.wav",
    ]
    assert [e.audio and (e.audio.start, e.audio.duration) for e in examples] == [
        (0.0, 1),
        (0.5, 1),
        (0.0, 2),
        (0.0, 3),
    ]


def test_leading_dots_do_not_matter(tmp_path: Path):
    for member, row in (("./a.wav", "a.wav"), ("a.wav", "./a.wav")):
        folder = tmp_path / member.replace("/", "_")
        leaf = tarred(folder, [(member, b"A")], [{"audio_filepath": row, "duration": 1}])
        assert read_bytes(open_one(leaf, folder), 0)[1] == b"A"


def test_a_missing_member_is_named(tmp_path: Path):
    rows = [{"audio_filepath": f"{i}.wav", "duration": 1} for i in (0, 1, 2)]
    leaf = tarred(tmp_path, [("0.wav", b"0"), ("2.wav", b"2")], rows)
    says = rf"(?i)no member '1.wav' in the tar {tmp_path}/a.tar \(leaf leaf, {tmp_path}/m.json:2"
    with pytest.raises(ManifestError, match=says):
        open_one(leaf, tmp_path / "packs")


def test_an_archive_without_members_misses_all(tmp_path: Path):
    leaf = tarred(tmp_path, [], [{"audio_filepath": "a.wav", "duration": 1}])
    with pytest.raises(ManifestError, match=r"(?i)no member 'a.wav'.*m.json:1"):
        open_one(leaf, tmp_path / "packs")


def test_members_of_one_name_are_refused_where_a_row_wants_one(tmp_path: Path):
    members = [("a.wav", b"A"), ("b.wav", b"B"), ("a.wav", b"Z")]
    rows = [{"audio_filepath": "b.wav", "duration": 1}]
    assert open_one(tarred(tmp_path, members, rows), tmp_path / "packs").num_rows == 1
    rows.append({"audio_filepath": "a.wav", "duration": 1})
    says = r"holds 'a.wav' more than once, at bytes \[512, 2560\]"
    with pytest.raises(ManifestError, match=says):
        open_one(tarred(tmp_path, members, rows), tmp_path / "packs")


def test_a_broken_archive_is_named(tmp_path: Path):
    leaf = tarred(tmp_path, [("a.wav", b"A")], [{"audio_filepath": "a.wav", "duration": 1}])
    tar = tmp_path / "a.tar"
    tar.write_bytes(tar.read_bytes()[:600])
    with pytest.raises(ArchiveError, match=r"a\.tar"):
        open_one(leaf, tmp_path / "packs")


def test_one_manifest_serves_many_tars(tmp_path: Path):
    tars = [
        write_tar(tmp_path / f"audio_{n}.tar", [("a.wav", b"%d" % n), (f"{n}.wav", b"own")])
        for n in (4, 2)
    ]
    rows = [
        {"audio_filepath": "a.wav", "duration": 1, "shard_id": 2},
        {"audio_filepath": "a.wav", "duration": 1, "shard_id": 4},
        {"audio_filepath": "2.wav", "duration": 1, "shard_id": 2},
        {"audio_filepath": "4.wav", "duration": 1, "shard_id": 4},
    ]
    path = write_jsonl(tmp_path / "all.json", rows)
    leaf = make_leaf("nemo_tarred", manifest=[path], tar=tars)
    pack = open_one(leaf, tmp_path / "packs")
    assert [read_bytes(pack, i)[1] for i in range(4)] == [b"2", b"4", b"own", b"own"]
    assert pack.tar.tolist() == [2, 1, 2, 1]
    assert pack.shards.uris == [str(path), *map(str, tars)]
    assert pack.entry.manifests == [0]


def test_sharded_tars_and_their_shard_table(tmp_path: Path):
    manifests, tars = [], []
    for bucket in (1, 2):
        for number in (0, 1):
            folder = tmp_path / f"bucket{bucket}"
            payload = b"%d%d" % (bucket, number)
            tars.append(write_tar(folder / f"audio_{number}.tar", [("a.wav", payload)]))
            rows = [{"audio_filepath": "a.wav", "duration": bucket * 10 + number}]
            manifests.append(write_jsonl(folder / f"manifest_{number}.json", rows))
    leaf = make_leaf("nemo_tarred", manifest=manifests, tar=tars)
    pack = open_one(leaf, tmp_path / "packs")
    assert [read_bytes(pack, i)[1] for i in range(4)] == [b"10", b"11", b"20", b"21"]
    assert pack.duration_us.tolist() == [10_000_000, 11_000_000, 20_000_000, 21_000_000]
    assert pack.shard.tolist() == [0, 2, 4, 6]
    assert pack.shards.rows.tolist() == [1, 0] * 4
    assert pack.entry.manifests == [0, 2, 4, 6]


def test_compressed_manifests_carry_their_rows(tmp_path: Path):
    path = tmp_path / "m.json.gz"
    path.write_bytes(
        gzip.compress(b"\n".join(json.dumps(GOOD | {"n": i}).encode() for i in range(9)))
    )
    leaf = make_leaf("nemo", manifest=[path])
    pack = open_one(leaf, tmp_path / "packs")
    path.unlink()
    assert [json.loads(pack.row_bytes(i) or b"")["n"] for i in range(9)] == list(range(9))
    assert pack.entry.embedded
    path.write_bytes(gzip.compress(b'{"audio_filepath": "/a.wav"')[:-12])
    with pytest.raises(DataError, match=r"decompressed.*m\.json\.gz"):
        open_one(leaf, tmp_path / "packs")
    path = tmp_path / "m.jsonl.lz4"
    path.write_bytes(b"x")
    with pytest.raises(NotSupportedError, match=r"zstd only.*m\.jsonl\.lz4"):
        open_one(make_leaf("nemo", manifest=[path]), tmp_path / "packs")


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path):
    path = write_jsonl(tmp_path / "m.json", [GOOD] * 3)
    task = ScanTask(
        leaf=make_leaf("nemo", manifest=[path]),
        pair=SourcePair(manifest=str(path)),
        first_shard=0,
        embed=False,
        skip_bad_rows=False,
    )
    rows = scan(task)
    next(rows)
    with path.open("a") as file:
        file.write(json.dumps(GOOD) + "\n")
    with pytest.raises(BuildError, match=r"changed while it was read.*m\.json"):
        list(rows)


def test_sources_that_cannot_be_are_named(tmp_path: Path):
    with pytest.raises(SourceNotFoundError, match=r"does not exist.*none\.json"):
        open_one(make_leaf("nemo", manifest=[tmp_path / "none.json"]), tmp_path / "packs")
    leaf = make_leaf("nemo", manifest=[])
    leaf.paths["manifest"] = ("s3://bucket/m.json",)  # type: ignore[index]
    missing = pytest.raises(SourceNotFoundError, match=r"s3://bucket/m\.json")
    with plugged_in(MemoryStore()), missing:
        open_one(leaf, tmp_path / "packs")


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("playhead.index.source._MAX_LINE_BYTES", 100)
    path = tmp_path / "m.json"
    path.write_bytes(b"{}\n" + b"x" * 300)
    with pytest.raises(DataError, match=rf"longer than .*{path}:2, byte 3"):
        list(read_lines(str(path), 16))
