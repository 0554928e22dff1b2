"""`playhead index CONFIG --exclude FILE`: what is left out, what is not, and what is said of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from playhead.blend import read_blend
from playhead.cli.index_exclude import ExcludeResult, exclude, read_names, say_exclusions
from playhead.errors import ManifestError, SourceNotFoundError
from playhead.fetch.bad import BadSample
from playhead.index.build import open_leaves
from playhead.index.exclusions import find_exclusions
from support.corpus import nemo_corpus

if TYPE_CHECKING:
    from pathlib import Path


def write_records(path: Path, records: list[BadSample]) -> Path:
    path.write_bytes(b"".join(record.to_line() for record in records))
    return path


@pytest.fixture
def blend(tmp_path):
    """A config of three leaves, two of which are the same data, with their columns."""
    one = nemo_corpus(tmp_path / "one", [0.1] * 8, prefix="a")
    two = nemo_corpus(tmp_path / "two", [0.1] * 8, prefix="b")
    entries = [
        {"type": "nemo", "name": name, "manifest_filepath": str(path), "weight": 1}
        for name, path in (("first", one), ("second", two), ("again", one))
    ]
    config = tmp_path / "blend.yaml"
    config.write_text(json.dumps({"input_cfg": entries}))
    leaves = read_blend(str(config), overrides={"batch_size": 1}).leaves
    packs = open_leaves(leaves, auto_index=True, pack_dir=str(tmp_path / "cache" / "packs"))
    return config, list(zip(leaves, packs, strict=True))


def record(source, pack, row, **changes) -> BadSample:
    facts = {
        "leaf": source.key,
        "name": source.name,
        "shard": pack.shards.uris[pack.shard[row]],
        "row": row,
        "byte": int(pack.row_offset[row]),
        "row_crc": int(pack.row_crc[row]),
        "member": None,
        "id": f"sample {row}",
        "reason": "the audio cannot be decoded: flac decoder lost sync",
        "step": 0,
        "slot": 0,
    }
    return BadSample(**{**facts, **changes})


def rows_out(pack) -> list[int]:
    found = find_exclusions(pack)
    return [] if found is None else found.rows.tolist()


def test_rows_are_left_out_of_the_leaf_they_were_found_in(blend, tmp_path):
    _, leaves = blend
    first, second = leaves[:2]
    path = write_records(
        tmp_path / "bad.jsonl", [record(*first, 3), record(*second, 5), record(*first, 3)]
    )
    result = exclude(leaves, read_names([str(path)]))
    assert [rows_out(pack) for _, pack in leaves] == [[3], [5], [3]]
    assert result.leaves == {"first": [1, 1], "second": [1, 1]}
    assert (result.changed, result.unknown) == ([], [])
    again = exclude(leaves, read_names([str(path)]))
    assert again.leaves == {"first": [1, 0], "second": [1, 0]}


def test_a_leaf_of_another_name_is_found_by_its_rows(blend, tmp_path):
    _, leaves = blend
    path = write_records(tmp_path / "bad.jsonl", [record(*leaves[1], 2, leaf="old-name")])
    assert exclude(leaves, read_names([str(path)])).leaves == {"second": [1, 1]}
    assert rows_out(leaves[1][1]) == [2]


def test_what_changed_or_is_nowhere_is_named_and_not_left_out(blend, tmp_path, capsys):
    _, leaves = blend
    changed = record(*leaves[0], 1, row_crc=5)
    gone = record(*leaves[0], 2, shard="/elsewhere/manifest.json")
    path = write_records(tmp_path / "bad.jsonl", [changed, gone])
    result = exclude(leaves, read_names([str(path)]))
    assert rows_out(leaves[0][1]) == []
    assert result.changed == [f"sample 1 ({changed.shard}, byte {changed.byte})"]
    assert result.unknown == [f"sample 2 (/elsewhere/manifest.json, byte {gone.byte})"]
    say_exclusions(result)
    said = capsys.readouterr().err
    assert "1 rows have changed since, and are not excluded:\n  sample 1" in said
    assert "1 samples are in none of these leaves:\n  sample 2 (/elsewhere" in said


def test_all_packs_of_a_config_have_one_time(blend, tmp_path, monkeypatch):
    """A window knows one number: what was excluded after it began must be later in every pack."""
    _, leaves = blend
    monkeypatch.setattr("playhead.index.exclusions.now_ms", lambda: 9_000)
    path = write_records(tmp_path / "bad.jsonl", [record(*leaves[0], 1)])
    exclude(leaves, read_names([str(path)]))
    # Another machine, whose clock is behind, excludes from another pack.
    monkeypatch.setattr("playhead.index.exclusions.now_ms", lambda: 1_000)
    path = write_records(tmp_path / "bad.jsonl", [record(*leaves[1], 1)])
    exclude(leaves, read_names([str(path)]))
    assert find_exclusions(leaves[0][1]).at.tolist() == [9_000]
    assert find_exclusions(leaves[1][1]).at.tolist() == [9_001]


@pytest.mark.parametrize("line", [b'{"leaf":"a","sha', b"[]", b'{"shard": "a"}', b"\xff\xfe"])
def test_a_line_that_is_no_record_is_named(blend, tmp_path, line):
    _, leaves = blend
    path = write_records(tmp_path / "bad.jsonl", [record(*leaves[0], 1)])
    path.write_bytes(path.read_bytes() + b"\n" + line)
    with pytest.raises(ManifestError, match=r"bad\.jsonl:3"):
        read_names([str(path)])


def test_a_list_that_does_not_exist(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"nowhere\.jsonl"):
        read_names([str(tmp_path / "nowhere.jsonl")])


def test_long_lists_are_cut_short_for_people(capsys):
    say_exclusions(ExcludeResult(unknown=[f"sample {i}" for i in range(30)]))
    said = capsys.readouterr().err
    assert "30 samples" in said
    assert "and 10 more" in said
    assert "sample 25" not in said


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PLAYHEAD_CACHE": str(cwd / "cache"), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "playhead", "index", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_command(blend, tmp_path):
    config, leaves = blend
    one = write_records(tmp_path / "bad.jsonl", [record(*leaves[0], 3)])
    two = write_records(tmp_path / "bad-1.jsonl", [record(*leaves[1], row) for row in (4, 5)])
    done = run(config, "--exclude", one, "--exclude", two, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Excluded 1 rows of leaf first, 1 of them new." in done.stderr
    assert "Excluded 2 rows of leaf second, 2 of them new." in done.stderr
    assert json.loads(done.stdout)["excluded"] == {
        "leaves": {"first": {"excluded": 1, "new": 1}, "second": {"excluded": 2, "new": 2}},
        "changed": [],
        "unknown": [],
    }
    assert [rows_out(pack) for _, pack in leaves] == [[3], [4, 5], [3]]
    dry = run(config, "--exclude", tmp_path / "nowhere.jsonl", cwd=tmp_path)
    assert dry.returncode == 2
    assert "nowhere.jsonl" in dry.stderr
    assert "Traceback" not in dry.stderr
