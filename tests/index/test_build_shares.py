"""Packs that parts of the work make: the same bytes as one machine, whatever is lost."""

from __future__ import annotations

import gzip
import os
import shutil
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import ManifestError
from playhead.index import build_shares, build_target
from playhead.index.build import build_packs
from playhead.index.part_work import Share
from playhead.index.partials import partials_folder
from support.corpus import tarred_corpus, write_jsonl
from support.leaves import make_leaf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.index.build import PackResult


def manifest(path: Path, rows: int) -> Path:
    content = [
        {"audio_filepath": f"/{path.stem}_{i}.wav", "duration": 1.0 + i} for i in range(rows)
    ]
    return write_jsonl(path, content)


def corpus(folder: Path) -> list[Any]:
    """Leaves of every form: many manifests, archives, compressed ones, an empty one, statuses."""
    plain = [manifest(folder / f"{i}.json", 3 * i) for i in range(5)]
    said = write_jsonl(
        folder / "said.json",
        [
            {"audio_filepath": f"/{i}.wav", "duration": 2.0, "validation_status": f"s{i % 3}"}
            for i in range(7)
        ],
    )
    packed = folder / "packed.json.gz"
    packed.write_bytes(gzip.compress(b"\n" + manifest(folder / "p.json", 4).read_bytes()))
    tarred_corpus(folder / "tarred", [1.0, 0.5, 0.7, 0.2], 2)
    tars = [folder / f"tarred/audio_{i}.tar" for i in range(2)]
    return [
        make_leaf("nemo", manifest=[*plain, said], key="plain"),
        make_leaf("nemo", manifest=[packed, plain[1]], key="packed"),
        make_leaf(
            "nemo_tarred",
            manifest=[folder / f"tarred/manifest_{i}.json" for i in range(2)],
            tar=tars,
            key="tarred",
        ),
    ]


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(root.rglob("*.idxpack"))}


def left_behind(root: Path) -> list[str]:
    kept = (".idxpack", ".lock")
    return [path.name for path in (root / "playhead").iterdir() if not path.name.endswith(kept)]


def part(leaves: Sequence[Any], root: Path, number: int, count: int, **options: Any):
    return build_packs(leaves, indexes_root=str(root), share=Share(number, count), **options)


def statuses(results: Sequence[PackResult]) -> set[str]:
    return {result.status for result in results}


@contextmanager
def scans(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the manifests that parts read meanwhile."""
    read: list[str] = []
    save_scan = build_shares.save_scan

    def recorded(path, task):
        read.append(Path(task.pair.manifest).name)
        save_scan(path, task)

    with monkeypatch.context() as patch:
        patch.setattr(build_shares, "save_scan", recorded)
        yield read


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[list[Any], dict[str, bytes]]:
    """Leaves, and the packs that one machine makes of them."""
    folder = tmp_path_factory.mktemp("whole")
    leaves = corpus(folder)
    results = build_packs(leaves, indexes_root=str(folder / "root"))
    assert statuses(results) == {"built"}
    return leaves, contents(folder / "root")


@pytest.fixture(scope="module")
def roots(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("roots")


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_any_division_in_any_order_with_any_losses_makes_the_same_bytes(whole, roots, data):
    leaves, expected = whole
    count = data.draw(st.integers(2, 9), "parts")
    order = data.draw(st.permutations(range(1, count + 1)), "order")
    again = data.draw(st.lists(st.sampled_from(order), max_size=3), "run again")
    lost = data.draw(st.lists(st.integers(0, 20), max_size=3), "partials that are lost")
    root = roots / str(uuid.uuid4())
    for number in [*again, *order]:
        results = part(leaves, root, number, count)
        assert "failed" not in statuses(results)
        assert all(number not in result.missing_parts for result in results)
    assert contents(root) == expected
    assert statuses(results) <= {"built", "fresh"}
    assert left_behind(root) == []
    for path in root.rglob("*.idxpack"):
        path.unlink()
    part(leaves, root, 1, count)
    partials = sorted(root.rglob("*.scan"))
    for place in lost:
        if place < len(partials):
            partials[place].unlink(missing_ok=True)
    for number in order:
        part(leaves, root, number, count)
    assert (contents(root) == expected) == (not left_behind(root))
    # What is lost is done again by whose part it is, or by one machine.
    assert statuses(build_packs(leaves, indexes_root=str(root))) <= {"built", "fresh"}
    assert contents(root) == expected
    assert left_behind(root) == []
    shutil.rmtree(root)


def test_parts_say_which_others_are_missing_and_the_last_puts_all_together(tmp_path, whole):
    leaves, expected = whole
    first = part(leaves, tmp_path, 1, 4)
    third = part(leaves, tmp_path, 3, 4)
    assert "waiting" in statuses(first)
    assert {n for result in first for n in result.missing_parts} <= {2, 3, 4}
    assert {n for result in third for n in result.missing_parts} <= {2, 4}
    part(leaves, tmp_path, 4, 4)
    assert contents(tmp_path) != expected
    assert statuses(part(leaves, tmp_path, 2, 4)) <= {"built", "fresh"}
    assert contents(tmp_path) == expected
    assert statuses(part(leaves, tmp_path, 1, 4)) == {"fresh"}


def test_each_manifest_is_read_once_and_again_only_if_it_is_missing(tmp_path, whole, monkeypatch):
    leaves, expected = whole
    with scans(monkeypatch) as read:
        for number in (1, 1, 2, 1, 2):
            part(leaves, tmp_path, number, 3)
    with scans(monkeypatch) as rest:
        part(leaves, tmp_path, 3, 3)
    assert len(read) + len(rest) == 10
    assert contents(tmp_path) == expected


def test_one_machine_uses_what_parts_have_done(tmp_path, whole, monkeypatch):
    from playhead.index import build_workers

    leaves, expected = whole
    part(leaves, tmp_path, 1, 2)
    done = len(list(tmp_path.rglob("*.scan")))
    assert done > 2
    read: list[str] = []
    scan = build_workers.scan
    monkeypatch.setattr(
        build_workers, "scan", lambda task: (read.append(task.pair.manifest), scan(task))[1]
    )
    assert statuses(build_packs(leaves, indexes_root=str(tmp_path))) <= {"built", "fresh"}
    assert contents(tmp_path) == expected
    assert 0 < len(read) <= 10 - done
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_one_machine_with_force_reads_everything(tmp_path, whole, workers):
    leaves, expected = whole
    part(leaves, tmp_path, 1, 2)
    for path in tmp_path.rglob("*.scan"):
        path.write_bytes(b"nonsense")
    results = build_packs(leaves, indexes_root=str(tmp_path), force=True, workers=workers)
    assert statuses(results) == {"built"}
    assert contents(tmp_path) == expected
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_one_machine_with_workers_uses_them_too(tmp_path, whole, workers):
    leaves, expected = whole
    part(leaves, tmp_path, 2, 2, workers=workers)
    assert "failed" not in statuses(
        build_packs(leaves, indexes_root=str(tmp_path), workers=workers)
    )
    assert contents(tmp_path) == expected


def test_a_damaged_partial_is_refused_and_its_part_does_it_again(tmp_path, whole):
    leaves, expected = whole
    part(leaves, tmp_path, 1, 2)
    victim = max(tmp_path.rglob("*.scan"), key=lambda path: path.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-1])
    results = part(leaves, tmp_path, 2, 2)
    (failed,) = [result for result in results if result.status == "failed"]
    assert "did not stay on disk" in str(failed.error)
    assert statuses(part(leaves, tmp_path, 1, 2)) <= {"built", "fresh"}
    assert contents(tmp_path) == expected


def test_what_was_read_of_other_data_or_with_other_options_is_never_used(tmp_path):
    paths = [manifest(tmp_path / f"{i}.json", 4) for i in range(4)]
    leaf = make_leaf("nemo", manifest=paths)
    root = tmp_path / "root"
    part([leaf], root, 1, 2)
    # The same size, another content.
    for path in paths:
        path.write_text(path.read_text().replace("/", "#"))
        os.utime(path, (1, 1))
    (result,) = part([leaf], root, 2, 2)
    assert (result.status, result.missing_parts) == ("waiting", (1,))
    (result,) = part([leaf], root, 1, 2, skip_bad_rows=True)
    assert (result.status, result.missing_parts) == ("waiting", (2,))
    (result,) = part([leaf], root, 1, 2, embed_rows=True)
    assert (result.status, result.missing_parts) == ("waiting", (2,))
    (result,) = part([leaf], root, 1, 2)
    assert result.status == "built"
    build_packs([leaf], indexes_root=str(tmp_path / "alone"))
    assert contents(root) == contents(tmp_path / "alone")
    assert left_behind(root) == []


def test_what_another_version_read_is_never_used(tmp_path, whole, monkeypatch):
    leaves, expected = whole
    with monkeypatch.context() as patch:
        patch.setattr("playhead.index.partials.SCAN_VERSION", "0")
        part(leaves, tmp_path, 1, 2)
    assert "waiting" in statuses(part(leaves, tmp_path, 2, 2))
    part(leaves, tmp_path, 1, 2)
    assert contents(tmp_path) == expected


def test_appended_manifests_are_all_that_is_read(tmp_path, monkeypatch):
    paths = [manifest(tmp_path / f"{i}.json", 4) for i in range(6)]
    leaf = make_leaf("nemo", manifest=paths)
    for number in (1, 2, 3):
        part([leaf], tmp_path / "root", number, 3)
    manifest(paths[2], 9)
    with scans(monkeypatch) as read:
        results = [part([leaf], tmp_path / "root", number, 3)[0].status for number in (1, 2, 3)]
    assert read == ["2.json"]
    assert sorted(results).count("built") >= 1
    build_packs([leaf], indexes_root=str(tmp_path / "alone"))
    assert part([leaf], tmp_path / "root", 1, 3)[0].num_rows == 29
    assert part([leaf], tmp_path / "alone", 1, 3)[0].num_rows == 29


def test_force_reads_all_parts_again_and_replaces_the_pack_once_all_have(tmp_path, whole):
    leaves, expected = whole
    for number in (1, 2):
        part(leaves, tmp_path, number, 2)
    for path in tmp_path.rglob("*.idxpack"):
        os.utime(path, (1, 1))
    first = part(leaves, tmp_path, 1, 2, force=True)
    assert "waiting" in statuses(first)
    assert "failed" not in statuses(part(leaves, tmp_path, 2, 2, force=True))
    assert contents(tmp_path) == expected
    assert all(path.stat().st_mtime > 1 for path in tmp_path.rglob("*.idxpack"))
    assert left_behind(tmp_path) == []


def test_shared_packs_are_built_in_parts_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(build_target, "MAX_SINGLE_PACKS", 3)
    monkeypatch.setattr(build_target, "_NUM_GROUPS", 4)
    paths = [manifest(tmp_path / f"{i}.json", i) for i in range(20)]
    leaves = [make_leaf("nemo", manifest=[path], key=f"k{i}") for i, path in enumerate(paths)]
    build_packs(leaves, indexes_root=str(tmp_path / "alone"))
    for number in (3, 1, 2):
        results = part(leaves, tmp_path / "root", number, 3)
    assert statuses(results) <= {"built", "fresh"}
    assert contents(tmp_path / "root") == contents(tmp_path / "alone")


def test_a_bad_manifest_fails_in_its_part_alone_and_is_missing_to_the_others(tmp_path):
    paths = [manifest(tmp_path / f"{i}.json", 4) for i in range(4)]
    paths[3].write_text("{\n")
    other = make_leaf("nemo", manifest=paths[:2], key="other")
    leaf = make_leaf("nemo", manifest=paths, key="bad")
    by_part = [part([leaf, other], tmp_path / "root", number, 2) for number in (1, 2)]
    (failed,) = [r for results in by_part for r in results if r.status == "failed"]
    assert isinstance(failed.error, ManifestError)
    assert "3.json:1" in str(failed.error)
    assert by_part[1][1].status == "built"
    manifest(paths[3], 2)
    for number in (1, 2):
        results = part([leaf, other], tmp_path / "root", number, 2)
    assert "failed" not in statuses(results)
    assert results[0].num_rows == 14


def test_a_twin_that_comes_late_finds_the_pack_and_leaves_nothing(tmp_path, whole, monkeypatch):
    leaves, expected = whole
    part(leaves, tmp_path, 1, 2)
    save_scan = build_shares.save_scan
    twins = [0]

    def twin_first(path, task):
        if not twins[0]:
            twins[0] = 1
            assert statuses(part(leaves, tmp_path, 2, 2)) <= {"built", "fresh"}
        save_scan(path, task)

    monkeypatch.setattr(build_shares, "save_scan", twin_first)
    assert statuses(part(leaves, tmp_path, 2, 2)) <= {"built", "fresh"}
    assert contents(tmp_path) == expected
    assert left_behind(tmp_path) == []


def test_what_nobody_put_together_is_removed_after_a_week(tmp_path, whole):
    leaves, _ = whole
    old, young = (partials_folder(tmp_path / f"playhead/{name}.idxpack") for name in ("a", "b"))
    for folder in (old, young):
        folder.mkdir(parents=True)
        (folder / "0.scan").touch()
    os.utime(old, (time.time() - 8 * 86400,) * 2)
    part(leaves, tmp_path, 1, 3)
    assert not old.exists()
    assert young.exists()
