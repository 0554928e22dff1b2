from __future__ import annotations

import errno
import gzip
import json
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from playhead.errors import (
    BuildError,
    ConfigError,
    IndexFileError,
    IndexMissingError,
    ManifestError,
    StaleIndexError,
)
from playhead.index import build as build_module
from playhead.index import build_target
from playhead.index.build import build_packs, open_leaves
from playhead.index.build_scan import scan
from playhead.index.pack_table import PACK_VERSION
from playhead.index.sidecars import Sidecar, build_sidecar
from support.builders import builders, held_builder, hold_the_first_builder, holders
from support.corpus import tarred_corpus, write_jsonl
from support.leaves import make_leaf, open_one, read_examples

FORK = multiprocessing.get_context("fork")


def manifest(path: Path, rows: int, start: float = 1.0) -> Path:
    return write_jsonl(
        path, [{"audio_filepath": f"/{i}.wav", "duration": start + i} for i in range(rows)]
    )


def packs_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.idxpack"))


@pytest.fixture
def scans(monkeypatch) -> list[str]:
    """Names of the manifests that are read."""
    read: list[str] = []

    def recorded(task):
        read.append(Path(task.pair.manifest).name)
        return scan(task)

    monkeypatch.setattr(build_module, "scan", recorded)
    return read


def test_a_pack_is_built_once_and_reused(tmp_path: Path, scans: list[str]):
    leaf = make_leaf("nemo", manifest=[manifest(tmp_path / "m.json", 3)])
    first = open_one(leaf, tmp_path / "packs")
    second = open_one(leaf, tmp_path / "packs")
    assert scans == ["m.json"]
    assert second.path == first.path
    assert [p.name for p in (tmp_path / "packs").iterdir() if p.suffix != ".lock"] == [
        Path(first.path).name
    ]


def test_a_relative_path_is_the_same_source(tmp_path: Path, scans: list[str], monkeypatch):
    path = manifest(tmp_path / "m.json", 3)
    monkeypatch.chdir(tmp_path)
    open_one(make_leaf("nemo", manifest=[path]), tmp_path / "packs")
    pack = open_one(make_leaf("nemo", manifest=[Path("m.json")]), tmp_path / "packs")
    assert scans == ["m.json"]
    assert pack.shards.uris == [str(path)]


def test_only_what_changed_is_read_again(tmp_path: Path, scans: list[str]):
    names = ["a.json", "b.json", "c.json"]
    paths = [manifest(tmp_path / name, 3) for name in names]
    paths[0].write_text("\n" + paths[0].read_text())
    leaf = make_leaf("nemo", manifest=paths)
    before = open_one(leaf, tmp_path / "packs")
    manifest(paths[1], 4, start=9.0)
    scans.clear()
    after = open_one(leaf, tmp_path / "packs")
    assert scans == ["b.json"]
    assert after.dropped == before.dropped == {"blank line": 1}
    clean = open_one(leaf, tmp_path / "other")
    for name, column in after.columns().items():
        np.testing.assert_array_equal(column, getattr(clean, name))
    assert after.digest == clean.digest != before.digest
    assert after.fingerprint(3) == before.fingerprint(3)


def test_reused_rows_of_tars_move_with_their_shards(tmp_path: Path, scans: list[str]):
    tarred_corpus(tmp_path, [1.0, 0.5, 0.7, 0.2], 2)

    def leaf(order: list[int]) -> Any:
        return make_leaf(
            "nemo_tarred",
            manifest=[tmp_path / f"manifest_{n}.json" for n in order],
            tar=[tmp_path / f"audio_{n}.tar" for n in order],
        )

    # The same pack file: as if the order of the files had changed in one declaration.
    old = open_one(leaf([0, 1]), tmp_path / "packs")
    turned = leaf([1, 0])
    source = build_target.leaf_sources(turned).source
    data = Path(old.path).read_bytes().replace(old.entry.source.encode(), source.encode())
    Path(old.path).with_name(f"leaf-{source}.idxpack").write_bytes(data)
    scans.clear()
    moved = open_one(turned, tmp_path / "packs")
    assert scans == []
    clean = open_one(turned, tmp_path / "other")
    for name, column in moved.columns().items():
        np.testing.assert_array_equal(column, getattr(clean, name))
    assert [e.id for e in read_examples(turned, moved)] == [f"utt{i:05d}.wav" for i in (1, 3, 0, 2)]


def test_the_same_data_under_two_keys_is_one_pack(tmp_path: Path, scans: list[str]):
    path = manifest(tmp_path / "m.json", 3)
    one, other = (make_leaf("nemo", manifest=[path], key=key) for key in ("one", "other"))
    packs = open_leaves([one, other], pack_dir=str(tmp_path / "packs"))
    assert [pack.key for pack in packs] == ["one", "other"]
    assert packs[0].path == packs[1].path
    assert packs[1].ref.open().key == "other"
    assert scans == ["m.json"]


def test_options_that_shape_columns_have_packs_of_their_own(tmp_path: Path):
    path = manifest(tmp_path / "m.json", 3)
    plain = open_one(make_leaf("nemo", manifest=[path]), tmp_path / "packs")
    rated = open_one(
        make_leaf("nemo", manifest=[path], input_sampling_rate=8000), tmp_path / "packs"
    )
    named = open_one(make_leaf("nemo", manifest=[path], text_field="answer"), tmp_path / "packs")
    assert plain.path == named.path != rated.path
    assert rated.rate.tolist() == [8000] * 3
    assert rated.entry.options == {"channel_selector": None, "input_sampling_rate": 8000}


def test_keys_are_safe_names(tmp_path: Path):
    leaf = make_leaf("nemo", manifest=[manifest(tmp_path / "m.json", 1)], key="../a b/ü")
    pack = open_one(leaf, tmp_path / "packs")
    assert Path(pack.path).parent == tmp_path / "packs"
    assert pack.key == "../a b/ü"


def test_where_packs_are_kept(tmp_path: Path, monkeypatch):
    path = manifest(tmp_path / "m.json", 1)
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    (cached,) = open_leaves([make_leaf("nemo", manifest=[path])])
    assert Path(cached.path).parent == tmp_path / "cache" / "packs"
    (rooted,) = open_leaves([make_leaf("nemo", manifest=[path], indexes_root=str(tmp_path / "r"))])
    assert Path(rooted.path).parent == tmp_path / "r" / "playhead"
    monkeypatch.delenv("PLAYHEAD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    (user,) = open_leaves([make_leaf("nemo", manifest=[path])])
    assert Path(user.path).parent == tmp_path / "xdg" / "playhead" / "packs"


def test_many_leaves_share_packs(tmp_path: Path, scans: list[str], monkeypatch):
    monkeypatch.setattr(build_target, "MAX_SINGLE_PACKS", 3)
    monkeypatch.setattr(build_target, "_NUM_GROUPS", 4)
    paths = [manifest(tmp_path / f"{i}.json", i) for i in range(20)]
    leaves = [make_leaf("nemo", manifest=[path], key=f"k{i}") for i, path in enumerate(paths)]
    packs = open_leaves(leaves, pack_dir=str(tmp_path / "packs"))
    assert len(packs_in(tmp_path / "packs")) <= 4
    assert len(scans) == 20
    for i, pack in enumerate(packs):
        assert (pack.key, pack.num_rows) == (f"k{i}", i)
        assert pack.duration_us.tolist() == [1_000_000 * (j + 1) for j in range(i)]
        assert pack.shards.uris == [str(paths[i])]
        alone = open_one(leaves[i], tmp_path / "alone")
        assert pack.digest == alone.digest
        assert pack.ref.open().fingerprint() == alone.digest
    scans.clear()
    manifest(paths[7], 9)
    again = open_leaves(leaves, pack_dir=str(tmp_path / "packs"))
    assert scans == ["7.json"]
    assert [pack.num_rows for pack in again] == [9 if i == 7 else i for i in range(20)]


def test_one_pack_holds_leaves_with_and_without_rows(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(build_target, "MAX_SINGLE_PACKS", 1)
    monkeypatch.setattr(build_target, "_NUM_GROUPS", 1)
    paths = [manifest(tmp_path / f"{i}.json", i + 1) for i in range(4)]
    packed = []
    for path in paths[1::2]:
        packed.append(path.with_suffix(".json.gz"))
        packed[-1].write_bytes(gzip.compress(path.read_bytes()))
    leaves = [
        make_leaf("nemo", manifest=[path], key=path.name)
        for path in (paths[0], packed[0], paths[2], packed[1])
    ]
    opened = open_leaves(leaves, pack_dir=str(tmp_path / "packs"))
    assert len({pack.path for pack in opened}) == 1
    for i, pack in enumerate(opened):
        rows = [pack.row_bytes(row) for row in range(pack.num_rows)]
        if i % 2:
            assert b"\n".join(row or b"" for row in rows) + b"\n" == paths[i].read_bytes()
        else:
            assert rows == [None] * (i + 1)


def test_a_long_build_is_refused_with_its_estimate(tmp_path: Path):
    leaf = make_leaf("nemo", manifest=[manifest(tmp_path / "m.json", 10)])
    says = r"would take about .* s, which is more than 0 s .*Run `playhead index my.yaml` once"
    with pytest.raises(BuildError, match=says):
        open_one(leaf, tmp_path / "packs", patience_seconds=0, command="playhead index my.yaml")
    assert packs_in(tmp_path / "packs") == []
    assert open_one(leaf, tmp_path / "packs", patience_seconds=0, auto_index=True).num_rows == 10


def test_progress_reaches_the_end(tmp_path: Path):
    told: list[tuple[str, float, float]] = []

    def progress(what: str, done: float, total: float) -> None:
        told.append((what, done, total))

    leaf = make_leaf("nemo", manifest=[manifest(tmp_path / f"{i}.json", 10) for i in range(3)])
    open_one(leaf, tmp_path / "packs", progress=progress)
    assert [Path(what).name for what, _, _ in told[::2]] == ["0.json", "1.json", "2.json"]
    assert told[-1][1] == pytest.approx(told[-1][2])
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_indexed_true_demands_indexes(tmp_path: Path):
    tarred_corpus(tmp_path, [1.0, 0.5], 1)
    manifest_path, tar = tmp_path / "manifest_0.json", tmp_path / "audio_0.tar"
    leaf = make_leaf("nemo_tarred", manifest=[manifest_path], tar=[tar], indexed=True)
    sidecars = [
        Sidecar(path=str(manifest_path), kind="jsonl", idx=f"{manifest_path}.idx"),
        Sidecar(path=str(tar), kind="nemo_tar", idx=f"{tar}.idx"),
    ]
    for sidecar in sidecars:
        says = f"{sidecar.idx} .*{sidecar.path}.*Run `playhead index x.yaml`"
        with pytest.raises(IndexMissingError, match=says):
            open_one(leaf, tmp_path / "packs", command="playhead index x.yaml")
        build_sidecar(sidecar)
    assert open_one(leaf, tmp_path / "packs").num_rows == 2
    # A pack that is up to date is an index as well.
    for sidecar in sidecars:
        Path(sidecar.idx).unlink()
    assert open_one(leaf, tmp_path / "packs").num_rows == 2
    build_sidecar(sidecars[1])
    Path(sidecars[0].idx).write_bytes(np.array([0, 99], "<u8").tobytes())
    with pytest.raises(StaleIndexError, match="does not belong to the file"):
        open_one(leaf, tmp_path / "other")


def test_indexes_under_a_root_lie_where_lhotse_puts_them(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    manifest(tmp_path / "d" / "m.json", 2)
    leaf = make_leaf("nemo", manifest=[Path("d/m.json")], indexed=True, indexes_root="root")
    with pytest.raises(IndexMissingError, match=r"root/d/m\.json\.idx"):
        open_leaves([leaf])
    build_sidecar(Sidecar(path="d/m.json", kind="jsonl", idx="root/d/m.json.idx"))
    assert open_leaves([leaf])[0].num_rows == 2


def test_a_declared_pack_is_used_as_it_is(tmp_path: Path, scans: list[str]):
    path = manifest(tmp_path / "m.json", 3)
    built = open_one(make_leaf("nemo", manifest=[path]), tmp_path / "packs")
    leaf = make_leaf("nemo", manifest=[path], index_pack=built.path)
    scans.clear()
    os.utime(path, (1, 1))
    assert open_one(leaf, tmp_path / "none").path == built.path
    assert scans == []
    assert not (tmp_path / "none").exists()
    manifest(path, 4)
    with pytest.raises(StaleIndexError, match=rf"{path} had \d+ bytes and has \d+"):
        open_one(leaf, tmp_path / "none")
    elsewhere = make_leaf(
        "nemo", manifest=[manifest(tmp_path / "n.json", 3)], index_pack=built.path
    )
    with pytest.raises(StaleIndexError, match=r"made from .*m\.json, not .*n\.json"):
        open_one(elsewhere, tmp_path / "none")
    foreign = tmp_path / "nemo.idxpack"
    foreign.write_bytes(b"IDXPACK2" + bytes(300))
    with pytest.raises(IndexFileError, match="pack of NeMo has version 0"):
        open_one(replace(leaf, options=replace(leaf.options, index_pack=str(foreign))), tmp_path)


def test_old_versions_are_built_again_and_damage_is_said(tmp_path: Path, scans: list[str]):
    leaf = make_leaf("nemo", manifest=[manifest(tmp_path / "m.json", 3)])
    path = Path(open_one(leaf, tmp_path / "packs").path)
    data = path.read_bytes()
    old = data.replace(
        b"\x01\x00\x00\x00" + PACK_VERSION + b"\x00\x00\x00\x0d",
        b"\x01\x00\x00\x000\x00\x00\x00\x0d",
    )
    assert old != data
    path.write_bytes(old)
    assert open_one(leaf, tmp_path / "packs").num_rows == 3
    assert scans == ["m.json", "m.json"]
    path.write_bytes(data[:-20])
    with pytest.raises(IndexFileError, match=r"damaged.*playhead index"):
        open_one(leaf, tmp_path / "packs")
    (result,) = build_packs([leaf], indexes_root=str(tmp_path / "packs"))
    assert result.status == "built"


@pytest.mark.parametrize("workers", [1, 2])
def test_build_packs_reports_each(tmp_path: Path, workers: int):
    good = make_leaf("nemo", manifest=[manifest(tmp_path / f"{i}.json", 3) for i in range(3)])
    (tmp_path / "bad.json").write_text("\n{\n" + (tmp_path / "0.json").read_text())
    bad = make_leaf("nemo", manifest=[tmp_path / "bad.json"], key="bad")
    gone = make_leaf("nemo", manifest=[tmp_path / "none.json"], key="gone")
    empty = make_leaf("nemo", manifest=[], key="empty")
    empty.paths["manifest"] = ()  # type: ignore[index]
    leaves = [good, bad, gone, empty]
    options: dict[str, Any] = {"indexes_root": str(tmp_path / "root"), "workers": workers}
    results = build_packs(leaves, **options)
    assert [result.status for result in results] == ["built", "failed", "failed", "built"]
    assert [result.keys for result in results] == [["leaf"], ["bad"], ["gone"], ["empty"]]
    assert [result.num_rows for result in results] == [9, 0, 0, 0]
    assert isinstance(results[1].error, ManifestError)
    assert f"{tmp_path}/bad.json:2, byte 1" in str(results[1].error)
    assert "none.json" in str(results[2].error)
    folder = tmp_path / "root" / "playhead"
    assert [path.name for path in folder.iterdir() if "scan" in path.name] == []
    again = build_packs(leaves, **options, skip_bad_rows=True)
    assert [result.status for result in again] == ["fresh", "built", "failed", "fresh"]
    assert again[1].dropped == {"bad row": 1, "blank line": 1}
    # The loader finds them where the command has put them.
    (pack,) = open_leaves(
        [replace(good, options=replace(good.options, indexes_root=options["indexes_root"]))]
    )
    assert pack.path == results[0].path
    assert [r.status for r in build_packs([good], **options, force=True)] == ["built"]


def test_bad_rows_stay_out_only_where_that_is_asked_for(tmp_path: Path):
    path = manifest(tmp_path / "m.json", 2)
    path.write_text(path.read_text() + "{\n")
    more = manifest(tmp_path / "n.json", 2)
    leaf = make_leaf("nemo", manifest=[path, more])
    root = str(tmp_path / "root")
    assert build_packs([leaf], indexes_root=root, skip_bad_rows=True)[0].num_rows == 4
    pack_dir = str(tmp_path / "root" / "playhead")
    assert open_leaves([leaf], pack_dir=pack_dir)[0].num_rows == 4
    manifest(more, 3)
    with pytest.raises(ManifestError, match=r"m\.json:3"):
        open_leaves([leaf], pack_dir=pack_dir)
    assert build_packs([leaf], indexes_root=root, skip_bad_rows=True)[0].num_rows == 5


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_can_be_embedded(tmp_path: Path, workers: int):
    path = manifest(tmp_path / "m.json", 5)
    leaf = make_leaf("nemo", manifest=[path, manifest(tmp_path / "n.json", 2)])
    root = str(tmp_path / "root")
    (plain,) = build_packs([leaf], indexes_root=root, workers=workers)
    (embedded,) = build_packs([leaf], indexes_root=root, workers=workers, embed_rows=True)
    assert (plain.status, embedded.status) == ("built", "built")
    pack = open_one(leaf, Path(embedded.path).parent)
    assert [json.loads(pack.row_bytes(i) or b"")["duration"] for i in range(7)] == [
        1.0,
        2.0,
        3.0,
        4.0,
        5.0,
        1.0,
        2.0,
    ]
    manifest(tmp_path / "n.json", 3)
    pack = open_one(leaf, Path(embedded.path).parent)
    assert [json.loads(pack.row_bytes(i) or b"")["duration"] for i in (4, 5, 7)] == [5, 1, 3]


def test_what_the_system_says_is_an_error_of_ours(tmp_path: Path, monkeypatch):
    leaf = make_leaf("nemo", manifest=[manifest(tmp_path / "m.json", 3)])

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build_module, "write_plan", full)
    with pytest.raises(BuildError, match=r"No space left on device .*idxpack"):
        open_one(leaf, tmp_path / "packs")
    (result,) = build_packs([leaf], indexes_root=str(tmp_path))
    assert "No space left" in str(result.error)
    (result,) = build_packs([leaf], indexes_root=str(tmp_path / "m.json"), workers=2)
    assert isinstance(result.error, BuildError)
    assert "m.json" in str(result.error)


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        (errno.ENOSPC, "Make room, and"),
        (errno.EACCES, "Give the right to read"),
        (errno.EISDIR, "Correct the path: a file is wanted"),
        (errno.EIO, "Look after the disk"),
    ],
)
def test_the_fix_belongs_to_what_the_system_says(tmp_path: Path, monkeypatch, code: int, fix: str):
    leaf = make_leaf("nemo", manifest=[manifest(tmp_path / "m.json", 3)])

    def fail(*_args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(build_module, "write_plan", fail)
    with pytest.raises(BuildError, match=fix):
        open_one(leaf, tmp_path / "packs")


@pytest.mark.parametrize("role", ["manifest", "tar"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "long name"])
def test_what_is_no_file_is_refused_before_it_is_opened(tmp_path: Path, kind: str, role: str):
    path = tmp_path / ("x" * 300 if kind == "long name" else "source")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    good = manifest(tmp_path / "good.json", 3)
    paths = {"manifest": [good], "tar": [path]} if role == "tar" else {"manifest": [path]}
    leaf = make_leaf("nemo", **paths)
    with pytest.raises(ConfigError, match=path.name):
        open_one(leaf, tmp_path / "packs")
    (result,) = build_packs([leaf], indexes_root=str(tmp_path))
    assert isinstance(result.error, ConfigError)
    assert path.name in str(result.error)


def test_a_path_that_is_not_utf8_is_refused_by_name(tmp_path: Path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/m\xff.json"))
    path.write_bytes(manifest(tmp_path / "m.json", 3).read_bytes())
    with pytest.raises(ConfigError, match=r"leaf leaf is not UTF-8 \('/.*m\\udcff.json'\)"):
        open_one(make_leaf("nemo", manifest=[tmp_path / "m.json", path]), tmp_path / "packs")


def _open_held(leaves, pack_dir: str, notes: Path, results) -> None:
    """Open packs; the first of all that builds waits to be killed."""
    hold_the_first_builder(notes)
    packs = open_leaves(leaves, pack_dir=pack_dir)
    results.put([(pack.path, pack.digest, pack.num_rows) for pack in packs])


def test_eight_processes_and_a_killed_builder(tmp_path: Path):
    """One pack, the same for all, and nobody hangs."""
    tarred_corpus(tmp_path, [0.1] * 20, 1)
    leaves = [
        make_leaf(
            "nemo_tarred",
            manifest=[tmp_path / "manifest_0.json"],
            tar=[tmp_path / "audio_0.tar"],
        )
    ]
    results = FORK.Queue()
    notes = tmp_path / "builders"
    arguments = (leaves, str(tmp_path / "packs"), notes, results)
    processes = [FORK.Process(target=_open_held, args=arguments) for _ in range(8)]
    for process in processes:
        process.start()
    try:
        first = held_builder(notes, 20)
        assert holders(tmp_path / "packs") == [first]
        os.kill(first, signal.SIGKILL)
        opened = [results.get(timeout=20) for _ in range(7)]
        for process in processes:
            process.join(20)
    finally:
        for process in processes:
            process.kill()
    ended = {process.pid: process.exitcode for process in processes}
    assert ended == {pid: -signal.SIGKILL if pid == first else 0 for pid in ended}
    assert len({str(result) for result in opened}) == 1
    assert opened[0][0][2] == 20
    assert len(builders(notes)) == 2, "the one killed, and the one in its place"
    assert builders(notes)[1] != first
    assert len(packs_in(tmp_path / "packs")) == 1
