"""Where samplers' states are found in what checkpoints hold."""

from __future__ import annotations

from typing import Any

import pytest

from playhead.inspect.nemo_samplers import find_samplers
from support.nemo_states import indexed, per_rank, sampler, workers


def _whose(content: Any) -> list[tuple[int | None, int | None]]:
    return [(one.rank, one.worker) for one in find_samplers(content).samplers]


def test_states_of_all_ranks_and_workers_are_found_with_their_places() -> None:
    one = sampler(indexed(1))
    content = per_rank(workers(one, sampler(indexed(2))), workers(one, one))

    found = find_samplers(content)

    assert _whose(content) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert found.place == "data.train_dataloader_per_rank"
    assert found.samplers[1].path == (
        "data.train_dataloader_per_rank[0].state._snapshot._worker_snapshots.worker_1"
        ".fetcher_state.dataset_iter_state.sampler_state"
    )
    assert found.notes == []


def test_a_list_of_ranks_hides_the_other_loaders() -> None:
    content = {"validation": workers(sampler(indexed(9))), **per_rank({"a": sampler(indexed(1))})}

    assert _whose(content) == [(0, None)]


@pytest.mark.parametrize(
    ("content", "whose"),
    [
        (workers(sampler(indexed(1)), sampler(indexed(2))), [(None, 0), (None, 1)]),
        ({"fetcher_state": {"sampler_state": sampler(indexed(1))}}, [(None, None)]),
        ({"sampler_state": {"cuts_state": []}}, [(None, None)]),
        ({"_index_sampler_state": sampler(indexed(1), world_size=2, rank=1)}, [(1, None)]),
        (sampler(samplers=[sampler(indexed(1)), sampler(indexed(2))]), [(None, None)]),
        ([sampler(indexed(1)), (sampler(indexed(2)),)], [(None, None), (None, None)]),
        (
            {
                "num_workers": 2,
                "world_size": 4,
                "rank": 3,
                "worker_states": [{"sampler_state": sampler(indexed(1))}] * 1,
                "sampler_state": {},
            },
            [(3, 0)],
        ),
    ],
)
def test_without_a_list_all_states_of_lhotse_are_found(
    content: Any, whose: list[tuple[int | None, int | None]]
) -> None:
    assert _whose(content) == whose
    assert find_samplers(content).place is None


@pytest.mark.parametrize(
    "content", [None, 3, "text", {}, [], {"a": [1, {"b": None}]}, {"sampler_state": {}}]
)
def test_there_may_be_none(content: Any) -> None:
    assert find_samplers(content).samplers == []


def test_ranks_that_are_missing_are_named() -> None:
    content = per_rank(workers(sampler(indexed(1))), size=11)

    assert find_samplers(content).notes == [
        "there is no state of rank 1, 2, 3, 4, 5, 6, 7, 8 and 2 more: what they read is missing"
    ]


def test_an_entry_that_is_none_is_named() -> None:
    entries = [3, {"dp_rank": 1, "dp_world_size": 2, "state": workers(sampler(indexed(1)))}]

    found = find_samplers({"train_dataloader_per_rank": entries})

    assert [one.rank for one in found.samplers] == [1]
    assert found.notes == [
        "train_dataloader_per_rank[0] holds no state of a rank, and is left out",
        "there is no state of rank 0: what they read is missing",
    ]


def test_the_search_ends_in_circles() -> None:
    circle: dict[str, Any] = {"optimizer": [1, 2]}
    circle["self"] = [circle]
    circle["loader"] = workers(sampler(indexed(1)))

    assert _whose(circle) == [(None, 0)]


def test_a_state_that_two_ranks_share_is_of_both() -> None:
    shared = workers(sampler(indexed(1)))

    assert _whose(per_rank(shared, shared)) == [(0, 0), (1, 0)]
