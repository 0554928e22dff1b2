"""Scans in files: what is read back is what was read, and damage is noticed."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from playhead.errors import IndexFileError, ManifestError
from playhead.index.build_pack import PackSettings, plan_pack
from playhead.index.build_scan import scan
from playhead.index.build_target import leaf_sources, targets
from playhead.index.scan_files import read_scan, write_scan
from support.corpus import tarred_corpus
from support.leaves import make_leaf

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.index.build_rows import ScanTask


def task_of(folder: Path, leaf: Any, **settings: Any) -> ScanTask:
    (target,) = targets([leaf_sources(leaf)], str(folder / "packs"))
    (task,) = plan_pack(target, None, PackSettings(**settings)).tasks
    return task


def tarred_task(folder: Path) -> ScanTask:
    tarred_corpus(folder, [1.0, 0.5, 0.7], 1)
    manifest = folder / "manifest_0.json"
    manifest.write_text("\n" + manifest.read_text())
    packed = folder / "manifest_0.json.gz"
    packed.write_bytes(gzip.compress(manifest.read_bytes()))
    leaf = make_leaf("nemo_tarred", manifest=[packed], tar=[folder / "audio_0.tar"])
    return task_of(folder, leaf)


def written(task: ScanTask) -> bytes:
    file = BytesIO()
    write_scan(file, task)
    return file.getvalue()


def test_rows_counts_and_bytes_are_read_back(tmp_path: Path):
    task = tarred_task(tmp_path)
    path = tmp_path / "scan"
    path.write_bytes(written(task))
    direct, back = replace(task, dropped=task.dropped.__class__()), replace(task)
    expected, found = list(scan(direct)), list(read_scan(path, back))
    assert back.dropped == direct.dropped == {"blank line": 1}
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert (one.data, one.position, one.statuses) == (
            other.data,
            other.position,
            other.statuses,
        )
        for name, column in other.columns.items():
            np.testing.assert_array_equal(one.columns[name], column)
    assert [json.loads(row)["text"] for row in found[0].data or []] == ["utt 0", "utt 1", "utt 2"]


def test_a_file_that_is_cut_short_or_changed_anywhere_is_refused_and_removed(tmp_path: Path):
    task = tarred_task(tmp_path)
    data = written(task)
    path = tmp_path / "scan"
    for length in [*range(0, len(data), 7), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(IndexFileError, match="did not stay on disk"):
            list(read_scan(path, task))
        assert not path.exists()
    for place in [*range(30), *range(30, len(data), 11), *range(len(data) - 30, len(data))]:
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        with pytest.raises(IndexFileError, match="run the command again"):
            list(read_scan(path, task))


def test_a_manifest_that_cannot_be_used_is_said(tmp_path: Path):
    (tmp_path / "m.json").write_text("{\n")
    with pytest.raises(ManifestError, match=r"m\.json:1"):
        written(task_of(tmp_path, make_leaf("nemo", manifest=[tmp_path / "m.json"])))
