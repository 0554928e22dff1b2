"""States that every rank has saved in a file of its own are put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from playhead.inspect import inspect_checkpoint
from playhead.inspect.containers import Payload
from playhead.inspect.nemo_ranks import RankFiles, with_ranks_joined
from support.nemo_states import indexed, per_rank, sampler, workers

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("state_rank_{:03}.pt", "rank{}.pt", "loader-rank-{}.json", "rank_7_of_rank_{}.pt")


def _save(folder: Path, states: dict[int, Any], name: str = NAMES[0]) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, state in states.items():
        torch.save(state, folder / name.format(rank))
    return folder


def _of_rank(rank: int, ranks: int) -> Any:
    """A state of two workers, which have read 3 and 5 items of their parts."""
    first = 2 * rank
    return workers(*(sampler(indexed(3 + 2 * n, first + n, 2 * ranks)) for n in (0, 1)))


@pytest.mark.parametrize("name", NAMES)
def test_files_that_differ_in_the_rank_alone_are_one(name: str) -> None:
    files = [Payload(f"a/{name.format(rank)}", rank) for rank in (0, 1, 2)]

    (joined,) = with_ranks_joined(files)

    assert joined.file == files[0].file
    assert isinstance(joined.content, RankFiles)
    assert [(one.rank, one.content) for one in joined.content.files] == [(0, 0), (1, 1), (2, 2)]


@given(st.permutations(["a/x.pt", "a/rank_0.pt", "b/rank_1.pt", "a/rank_1.json", "a/y_rank_1.pt"]))
def test_other_files_stay_as_they_are(names: list[str]) -> None:
    files = [Payload(name, {}) for name in names]

    assert with_ranks_joined(files) == files


def test_what_all_ranks_have_read_is_added_up(tmp_path: Path) -> None:
    _save(tmp_path / "run0", {rank: _of_rank(rank, 3) for rank in range(3)})
    _save(tmp_path / "run1", {0: workers(sampler(indexed(99)))})

    found = inspect_checkpoint(tmp_path)

    (row,) = found.rows
    assert (row.consumed_items, row.partitions_seen) == (24, 6)
    assert [one.rank for one in found.leaf_progress] == [0, 0, 1, 1, 2, 2]
    assert found.leaf_progress[2].state_path.startswith("state_rank_001.pt: _snapshot.")
    assert any(note.startswith("3 ranks have a file each") for note in found.notes)


def test_a_rank_whose_file_is_missing_is_named(tmp_path: Path) -> None:
    _save(tmp_path / "a", {rank: _of_rank(rank, 4) for rank in (0, 1, 3)})

    notes = inspect_checkpoint(tmp_path).notes

    assert "there is no state of rank 2: what they read is missing" in notes


def test_files_that_each_hold_the_states_of_all_ranks_count_once(tmp_path: Path) -> None:
    everything = per_rank(*(_of_rank(rank, 2) for rank in (0, 1)))
    _save(tmp_path / "a", {0: everything, 1: everything})

    assert inspect_checkpoint(tmp_path).rows[0].consumed_items == 16


def test_files_that_each_hold_their_own_entry_of_the_list_are_all_counted(tmp_path: Path) -> None:
    entries = per_rank(*(_of_rank(rank, 2) for rank in (0, 1)))["data"]["train_dataloader_per_rank"]
    states = {rank: {"train_dataloader_per_rank": [entries[rank]]} for rank in (0, 1)}

    found = inspect_checkpoint(_save(tmp_path / "a", states))

    assert found.rows[0].consumed_items == 16
    assert not any("no state of rank" in note for note in found.notes)
