from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError
from playhead.index.part_work import Share, deal, share_of

COSTS = st.lists(st.floats(0, 1e6), max_size=60)


def array(task: int, count: int, first: int, last: int, step: int = 1) -> dict[str, str]:
    values = {"ID": task, "COUNT": count, "MIN": first, "MAX": last, "STEP": step}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in values.items()}


def step(process: int, count: int) -> dict[str, str]:
    return {"SLURM_STEP_ID": "0", "SLURM_PROCID": str(process), "SLURM_STEP_NUM_TASKS": str(count)}


@given(COSTS, st.integers(1, 20))
def test_every_task_is_dealt_and_no_part_takes_more_than_the_mean_and_one_task(costs, count):
    numbers = deal(costs, count)
    assert len(numbers) == len(costs)
    assert set(numbers) <= set(range(1, count + 1))
    loads = [0.0] * (count + 1)
    for cost, number in zip(costs, numbers, strict=True):
        loads[number] += cost
    assert max(loads) <= (sum(costs) / count + max(costs, default=0)) * (1 + 1e-9)
    assert deal(costs, count) == numbers


def test_equal_tasks_are_dealt_evenly():
    numbers = deal([1.0] * 33, 16)
    assert sorted(numbers.count(number) for number in range(1, 17)) == [2] * 15 + [3]


@pytest.mark.parametrize(
    ("environment", "share"),
    [
        (array(1, 16, 1, 16), Share(1, 16)),
        (array(16, 16, 1, 16), Share(16, 16)),
        (array(0, 16, 0, 15), Share(1, 16)),
        (array(15, 16, 0, 15), Share(16, 16)),
        (array(14, 8, 10, 24, 2), Share(3, 8)),
        (step(0, 4), Share(1, 4)),
        (step(3, 4), Share(4, 4)),
        ({"SLURM_STEP_ID": "1", "SLURM_PROCID": "2", "SLURM_NTASKS": "3"}, Share(3, 3)),
        (array(2, 3, 1, 3) | step(1, 4), Share(6, 12)),
        # In the script of the job itself nothing but the array counts.
        (array(2, 3, 1, 3) | {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, Share(2, 3)),
    ],
)
def test_slurm_says_the_part(environment: dict[str, str], share: Share):
    assert share_of("auto", environment) == share


@given(st.integers(1, 9), st.integers(0, 3), st.integers(1, 3), st.integers(1, 5))
def test_the_processes_of_an_array_are_each_another_part(tasks, first, stride, processes):
    last = first + (tasks - 1) * stride
    shares = [
        share_of("auto", array(task, tasks, first, last, stride) | step(process, processes))
        for task in range(first, last + 1, stride)
        for process in range(processes)
    ]
    assert [share.number for share in shares] == list(range(1, tasks * processes + 1))
    assert {share.count for share in shares} == {tasks * processes}


@pytest.mark.parametrize(
    ("text", "environment", "says"),
    [
        ("0/4", {}, "no part 0/4"),
        ("5/4", {}, "no part 5/4"),
        ("1/0", {}, "no part 1/0"),
        ("a/b", {}, "'a/b' is no part"),
        ("", {}, "'' is no part"),
        ("1/", {}, "'1/' is no part"),
        ("1", {}, "'1' is no part"),
        ("-1/4", {}, "'-1/4' is no part"),
        ("1/4/5", {}, "'1/4/5' is no part"),
        ("²/3", {}, "'²/3' is no part"),
        ("AUTO", {}, "'AUTO' is no part"),
        ("auto", {}, "neither a task of a Slurm array"),
        ("auto", {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, "neither a task of a Slurm array"),
        ("auto", {"SLURM_ARRAY_TASK_ID": "3"}, "here is no SLURM_ARRAY_TASK_COUNT"),
        ("auto", array(3, 3, 1, 7), "do not follow each other"),
        ("auto", array(7, 3, 1, 7), "do not follow each other"),
        ("auto", array(1, 2, 1, 2) | {"SLURM_ARRAY_TASK_MIN": "x"}, "SLURM_ARRAY_TASK_MIN is 'x'"),
        ("auto", step(4, 4), "SLURM_PROCID is 4"),
        ("auto", {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}, "here is no SLURM_NTASKS"),
    ],
)
def test_what_is_no_part_is_refused_and_says_what_to_give(
    text: str, environment: dict[str, Any], says: str
):
    with pytest.raises(ConfigError) as caught:
        share_of(text, environment)
    assert says in str(caught.value)
    assert "3/16" in str(caught.value)
    assert caught.value.exit_code == 2
