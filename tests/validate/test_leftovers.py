"""What earlier runs left is removed, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.validate.leftovers import remove_all_runs, remove_of_ranks

if TYPE_CHECKING:
    from pathlib import Path

OURS = ("rank_000.jsonl", "state_rank_000.pt", "throughput_rank_000.json", "meta.json")


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def test_all_runs_go_and_what_somebody_else_keeps_there_stays(tmp_path: Path) -> None:
    fill(
        tmp_path,
        *(
            f"{phase}/run{n}/{name}"
            for phase in ("baseline", "resumed")
            for n in range(3)
            for name in OURS
        ),
    )
    fill(tmp_path, "groundtruth/cuts.jsonl", "groundtruth/meta.json")
    kept = ["baseline/notes.txt", "baseline/run1/model.pt", "baseline/running/rank_000.jsonl"]
    fill(tmp_path, *kept, "rank_000.jsonl")
    remove_all_runs(tmp_path)
    assert files(tmp_path) == sorted([*kept, "rank_000.jsonl"])
    assert not (tmp_path / "resumed" / "run0").exists()


def test_a_folder_that_is_not_there_yet_has_nothing_to_remove(tmp_path: Path) -> None:
    remove_all_runs(tmp_path / "new")
    remove_of_ranks(tmp_path / "new", rank=0, world_size=1)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("rank", "left"),
    [
        (0, ["rank_001.jsonl", "rank_002.jsonl"]),
        (1, ["rank_000.jsonl", "rank_002.jsonl", "rank_1003.jsonl"]),
    ],
)
def test_a_rank_removes_its_own_and_the_first_those_of_no_rank(
    tmp_path: Path, rank: int, left: list[str]
) -> None:
    fill(tmp_path, "rank_000.jsonl", "rank_001.jsonl", "rank_002.jsonl", "rank_1003.jsonl")
    remove_of_ranks(tmp_path, rank=rank, world_size=3)
    assert files(tmp_path) == left
