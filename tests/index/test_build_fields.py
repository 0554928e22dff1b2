from __future__ import annotations

import gzip
import json
import os
import tarfile
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.blend.leaf import Leaf, LeafOptions
from playhead.errors import ArchiveError, DataError, ManifestError, StaleIndexError
from playhead.index import build_scan
from playhead.index.build import build_packs, open_leaves
from playhead.index.pack import LeafPack, open_pack
from support.corpus import wav_bytes, write_tar
from support.text_leaves import indexed, read_all, text_leaf

IDS = ["a", "b.1", "folder/c", "d" * 120, "ä"]


def cut(cut_id: str, **fields: Any) -> dict:
    recording = {"id": cut_id, "sources": [{"type": "shar", "channels": [0], "source": ""}]}
    recording |= {"sampling_rate": 8000, "num_samples": 800, "duration": 0.1}
    return {
        "id": cut_id,
        "start": 0,
        "duration": 0.1,
        "channel": 0,
        "supervisions": [],
        "recording": recording,
        "type": "MonoCut",
        **fields,
    }


def members(ids: list[str], missing: tuple[str, ...] = ()) -> list[tuple[str, bytes]]:
    found = []
    for number, cut_id in enumerate(ids):
        if cut_id in missing:
            found += [(f"{cut_id}.nodata", b""), (f"{cut_id}.nometa", b"")]
        else:
            manifest = json.dumps(cut(cut_id)["recording"]).encode()
            found += [(f"{cut_id}.wav", wav_bytes(0.1, 8000, seed=number))]
            found += [(f"{cut_id}.json", manifest)]
    return found


def write_lines(path: Path, rows: list[dict]) -> None:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def shar(
    folder: Path, suffix: str = "", ids: list[str] = IDS, shard: int = 0, **kinds: Any
) -> Path:
    """One shard: cuts, recordings (two of them without data), and a score for each."""
    number = f"{shard:06d}"
    write_lines(folder / f"cuts.{number}.jsonl{suffix}", kinds.get("cuts") or [cut(i) for i in ids])
    write_lines(
        folder / f"score.{number}.jsonl{suffix}",
        [{"cut_id": i, "score": n} for n, i in enumerate(kinds.get("score_ids") or ids)],
    )
    write_tar(
        folder / f"recording.{number}.tar",
        members(kinds.get("recording_ids") or ids),
        tarfile.PAX_FORMAT,
    )
    write_tar(folder / f"target.{number}.tar", members(ids, ("a", "ä")), tarfile.GNU_FORMAT)
    return folder


def leaf_of(*folders: Path) -> Leaf:
    paths = {"shar": tuple(map(str, folders))}
    return Leaf(key="s", name="s", type="lhotse_shar", weight=1, paths=paths, options=LeafOptions())


def opened(folder: Path, *folders: Path) -> LeafPack:
    return open_leaves([leaf_of(*folders)], pack_dir=str(folder / "packs"))[0]


def read(pack: LeafPack) -> list[list[tuple[str, bytes]]]:
    """For every row, the field and bytes of each part."""
    parts = pack.parts(np.arange(pack.num_rows))
    uris = pack.shards.uris
    facts = [
        (pack.entry.fields[f], Path(uris[n]).read_bytes()[o : o + s])
        for f, n, o, s in zip(parts.field, parts.file, parts.offset, parts.size, strict=True)
    ]
    ends = np.cumsum(parts.num_parts)
    return [facts[e - c : e] for e, c in zip(ends, parts.num_parts, strict=True)]


def names(record: bytes, tmp_path: Path) -> list[str]:
    path = tmp_path / "record.tar"
    path.write_bytes(record + bytes(1024))
    with tarfile.open(path) as tar:
        return tar.getnames()


def check(pack: LeafPack, tmp_path: Path, ids: list[str] = IDS, *, embedded: bool) -> None:
    assert pack.num_rows == len(ids)
    for number, (cut_id, found) in enumerate(zip(ids, read(pack), strict=True)):
        by_field = dict(found)
        archives = {"recording"} if cut_id in ("a", "ä") else {"recording", "target"}
        assert set(by_field) == archives | (set() if embedded else {"score"})
        for field in archives:
            assert names(by_field[field], tmp_path) == [f"{cut_id}.wav", f"{cut_id}.json"]
        if embedded:
            lines = (pack.row_bytes(number) or b"").split(b"\n")
            assert [json.loads(line).get("cut_id") for line in lines] == [None, cut_id]
            assert json.loads(lines[0])["id"] == cut_id
        else:
            assert json.loads(by_field["score"])["cut_id"] == cut_id


def test_the_kth_record_of_each_field_belongs_to_the_kth_row(tmp_path: Path):
    check(opened(tmp_path, shar(tmp_path / "plain")), tmp_path, embedded=False)


def test_lines_of_compressed_fields_stand_behind_the_embedded_row(tmp_path: Path):
    check(opened(tmp_path, shar(tmp_path / "gz", ".gz")), tmp_path, embedded=True)


def test_several_processes_and_blocks_find_the_same(tmp_path: Path, monkeypatch):
    folders = [
        shar(tmp_path / name, suffix, [f"{name}{i}" for i in range(30)])
        for name, suffix in (("p", ""), ("q", ".gz"), ("r", ""))
    ]
    results = [
        build_packs(
            [leaf_of(*folders)], indexes_root=str(tmp_path / f"w{workers}"), workers=workers
        )
        for workers in (1, 3)
    ]
    packs = [open_pack(result[0].path).leaf("s") for result in results]
    assert packs[0].fingerprint() == packs[1].fingerprint()
    assert read(packs[0]) == read(packs[1])
    assert len(packs[0].entry.fields) == 3


def test_rows_that_are_dropped_have_records_too(tmp_path: Path):
    cuts = [cut(i) for i in IDS]
    cuts[1]["custom"] = {"_skipme": True}
    cuts[3]["duration"] = -1
    folder = shar(tmp_path / "skipped", cuts=cuts)
    with pytest.raises(ManifestError, match=r"cuts.000000.jsonl:4"):
        opened(tmp_path, folder)
    result = build_packs(
        [leaf_of(folder)], indexes_root=str(tmp_path / "root"), skip_bad_rows=True
    )[0]
    assert result.dropped == {"_skipme": 1, "bad row": 1}
    pack = open_pack(result.path).leaf("s")
    kept = [IDS[0], IDS[2], IDS[4]]
    assert [names(dict(row)["recording"], tmp_path)[0] for row in read(pack)] == [
        f"{cut_id}.wav" for cut_id in kept
    ]


def test_blank_lines_are_no_rows(tmp_path: Path):
    folder = shar(tmp_path / "blank")
    path = folder / "cuts.000000.jsonl"
    path.write_bytes(b"\n" + path.read_bytes().replace(b"\n", b"\n\n"))
    check(opened(tmp_path, folder), tmp_path, embedded=False)


@pytest.mark.parametrize("field", ["recording", "score"])
def test_a_shorter_field_is_an_error_that_names_both_files(tmp_path: Path, field: str):
    folder = shar(tmp_path / "short", **{f"{field}_ids": IDS[:4]})
    said = rf"'{field}' has 4 records.*cuts.000000.jsonl \(.*/{field}.000000.(tar|jsonl)\)"
    with pytest.raises(DataError, match=said):
        opened(tmp_path, folder)


@pytest.mark.parametrize("field", ["recording", "score"])
def test_a_longer_field_is_an_error(tmp_path: Path, field: str):
    cuts = [cut(i) for i in IDS[:4]]
    for row in cuts if field == "score" else ():
        del row["recording"]
    folder = shar(tmp_path / "long", cuts=cuts)
    (folder / "target.000000.tar").unlink()
    other = "score" if field == "recording" else "recording"
    next(folder.glob(f"{other}.*")).unlink()
    with pytest.raises(DataError, match=f"'{field}' has more records than the 4 rows in "):
        opened(tmp_path, folder)


@pytest.mark.parametrize("field", ["recording", "score"])
def test_records_of_other_ids_are_an_error(tmp_path: Path, field: str):
    swapped = [IDS[1], IDS[0], *IDS[2:]]
    folder = shar(tmp_path / "swapped", **{f"{field}_ids": swapped})
    with pytest.raises(ManifestError, match=rf"id is 'a' and the field '{field}' has 'b.1' there"):
        opened(tmp_path, folder)


def test_a_field_that_is_not_there(tmp_path: Path):
    folder = shar(tmp_path / "none")
    (folder / "recording.000000.tar").unlink()
    with pytest.raises(ManifestError, match=r"lies in the field `recording`.*have score, target"):
        opened(tmp_path, folder)


def test_members_that_are_no_pairs(tmp_path: Path):
    folder = shar(tmp_path / "odd")
    write_tar(folder / "recording.000000.tar", members(IDS)[:-1], tarfile.PAX_FORMAT)
    with pytest.raises(ArchiveError, match=r"'ä.wav' should be followed by its JSON"):
        opened(tmp_path, folder)


def test_a_cut_archive_is_an_error(tmp_path: Path):
    folder = shar(tmp_path / "cut")
    path = folder / "recording.000000.tar"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match=r"recording.000000.tar"):
        opened(tmp_path, folder)


def test_only_shards_that_changed_are_read_again(tmp_path: Path, monkeypatch):
    folder = shar(tmp_path / "many", ids=["p", "q"])
    shar(folder, ids=["r", "s"], shard=1)
    before = opened(tmp_path, folder)
    assert before.num_rows == 4
    shar(folder, ids=["t", "u", "v"], shard=2)
    after = opened(tmp_path, folder)
    assert after.num_rows == 7
    assert after.fingerprint(4) == before.fingerprint()
    assert read(after)[:4] == read(before)
    ids = [names(dict(row)["recording"], tmp_path)[0] for row in read(after)]
    assert ids == [f"{cut_id}.wav" for cut_id in "pqrstuv"]


def test_other_audio_of_the_same_size_is_other_data(tmp_path: Path):
    folder = shar(tmp_path / "moved")
    before = opened(tmp_path, folder).fingerprint()
    # A longer header before the first member moves all the others.
    write_tar(folder / "recording.000000.tar", members(IDS), tarfile.GNU_FORMAT)
    assert opened(tmp_path, folder).fingerprint() != before


# Plain lines, as those of txt_pair ------------------------------------------------------------


def pairs(folder: Path, *shards: tuple[bytes, bytes], suffix: str = "", zipped: str = "") -> Leaf:
    """A leaf of source and target files, whose names end with `suffix`; `zipped` are compressed."""
    for number, halves in enumerate(shards):
        for role, data in zip("st", halves, strict=True):
            path = folder / f"{role}{number}.txt{'.gz' if role in zipped else suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(data) if role in zipped else data)
    roles = {
        role: [
            folder / f"{role[0]}{number}.txt{'.gz' if role[0] in zipped else suffix}"
            for number in range(len(shards))
        ]
        for role in ("source", "target")
    }
    return text_leaf("txt_pair", **roles)


def halves_of(leaf: Leaf, folder: Path, **options: Any) -> list[tuple[str, str | None]]:
    return [
        (example.custom["source"], example.text)
        for example in read_all(leaf, indexed(leaf, folder, **options))
    ]


ENDS = {"unix": b"\n", "windows": b"\r\n"}
lines = st.lists(st.text("ab ü\t", max_size=5), max_size=12)


@settings(max_examples=60)
@given(
    st.lists(lines, min_size=1, max_size=3),
    st.sampled_from([*ENDS]),
    st.booleans(),
    st.sampled_from(["", "s", "t", "st"]),
    st.booleans(),
)
def test_the_kth_line_belongs_to_the_kth_line(  # noqa: PLR0917 - what Hypothesis draws
    tmp_path_factory: pytest.TempPathFactory,
    shards: list[list[str]],
    how: str,
    final: bool,
    zipped: str,
    embed: bool,
):
    """Whatever stands in them, blank lines among them, and however they end."""
    folder = tmp_path_factory.mktemp("pairs")
    made, expected = [], []
    for sources in shards:
        targets = [f"{number}{text}" for number, text in enumerate(sources)]
        ends = [ENDS[how].join(map(str.encode, each)) for each in (sources, targets)]
        # A last line that is empty only is one where its end is written.
        ends = [
            one + ENDS[how] if each and (final or not each[-1]) else one
            for one, each in zip(ends, (sources, targets), strict=True)
        ]
        made.append((ends[0], ends[1]))
        pairs_ = zip(sources, targets, strict=True)
        expected += [(one.strip(), other.strip()) for one, other in pairs_ if one.strip()]
    leaf = pairs(folder, *made, zipped=zipped)
    assert halves_of(leaf, folder, embed_rows=embed) == expected
    blank = sum(not text.strip() for shard in shards for text in shard)
    empty = sum(not any(text.strip() for text in shard) for shard in shards)
    reasons = {"blank line": blank, "manifest without rows": empty}
    assert indexed(leaf, folder).dropped == {why: count for why, count in reasons.items() if count}


@pytest.mark.parametrize("embed", [False, True])
def test_a_pair_whose_files_did_not_change_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embed: bool
):
    shards = [(b"a\n\nb\n", b"A\nX\nB\n"), (b"c\n", b"C\n"), (b"d\ne\n", b"D\nE\n")]
    leaf = pairs(tmp_path, *shards)
    expected = [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D"), ("e", "E")]
    assert halves_of(leaf, tmp_path, embed_rows=embed) == expected
    read: list[str] = []
    read_lines = build_scan.read_lines

    def noted(path: str) -> Any:
        read.append(path)
        return read_lines(path)

    monkeypatch.setattr(build_scan, "read_lines", noted)
    (tmp_path / "t1.txt").write_bytes(b"another\n")
    expected[2] = ("c", "another")
    assert halves_of(leaf, tmp_path, embed_rows=embed) == expected
    assert read == [str(tmp_path / "s1.txt")]


@pytest.mark.parametrize("role", ["s", "t"])
def test_a_line_that_changed_in_place_is_noticed(tmp_path: Path, role: str):
    """Whichever of the two it is in: both are the row."""
    leaf = pairs(tmp_path, (b"one\ntwo\n", b"ein\nzwo\n"))
    pack = indexed(leaf, tmp_path)
    path = tmp_path / f"{role}0.txt"
    path.write_bytes(path.read_bytes().replace(b"w", b"W"))
    with pytest.raises(StaleIndexError, match=r"row is not the one that was indexed .*s0\.txt"):
        read_all(leaf, pack)


def test_other_targets_are_other_data(tmp_path: Path):
    leaf = pairs(tmp_path, (b"one\n", b"ein\n"))
    before = indexed(leaf, tmp_path).fingerprint()
    # As long as it was, and another line.
    (tmp_path / "t0.txt").write_bytes(b"EIN\n")
    os.utime(tmp_path / "t0.txt", ns=(1, 1))
    pack = indexed(leaf, tmp_path)
    assert read_all(leaf, pack)[0].text == "EIN"
    assert pack.row_crc.tolist() == [crc32(b"one\nEIN")]
    assert isinstance(before, str)


@pytest.mark.parametrize("zipped", ["", "t", "st"])
@pytest.mark.parametrize("counts", [(3, 2), (2, 3), (0, 1), (1, 0)])
def test_unequal_numbers_of_lines_name_both_files(
    tmp_path: Path, counts: tuple[int, int], zipped: str
):
    leaf = pairs(tmp_path, (b"one\n" * counts[0], b"ein\n" * counts[1]), zipped=zipped)
    with pytest.raises(DataError, match=r"(?s)s0\.txt.*t0\.txt") as error:
        indexed(leaf, tmp_path)
    assert str(min(counts)) in str(error.value)


@pytest.mark.parametrize("zipped", ["", "t", "st"])
def test_a_target_that_cannot_be_read_later_is_a_bad_row(tmp_path: Path, zipped: str):
    shards = (b"one\ntwo\nthree\n", b"ein\nzw\xffo\ndrei\n")
    leaf = pairs(tmp_path, shards, zipped=zipped)
    with pytest.raises(
        ManifestError, match=r"not UTF-8.* byte 4 of .*t0\.txt.*s0\.txt\S*:2, byte 4.*skip-bad-rows"
    ):
        indexed(leaf, tmp_path)
    assert halves_of(leaf, tmp_path, skip_bad_rows=True) == [("one", "ein"), ("three", "drei")]
    assert indexed(leaf, tmp_path).dropped == {"bad row": 1}
    # A blank source is no row, whatever stands beside it.
    leaf = pairs(tmp_path / "x", (b"one\n\n", b"ein\n\xff\n"))
    assert halves_of(leaf, tmp_path / "x") == [("one", "ein")]


def test_messages_about_pairs_speak_of_no_audio(tmp_path: Path):
    leaf = pairs(tmp_path, (b"one\n", b"ein\n"))
    (example,) = read_all(leaf, indexed(leaf, tmp_path))
    assert str(example.place) == f"leaf train, {tmp_path}/s0.txt, byte 0, row 0 counted from 0"
