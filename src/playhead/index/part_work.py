"""Parts of work that many machines do: which part this one is, and what falls to it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Share", "deal", "share_of"]

_FORM = "Give I/N with 1 <= I <= N, as 3/16, or auto under Slurm"
_SAY_IT = "Give the part itself, as --part 3/16"


@dataclass(frozen=True, slots=True)
class Share:
    """One of the parts that work is divided into."""

    number: int
    """Which one, from 1."""
    count: int
    """How many there are."""

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def deal(costs: Sequence[float], count: int) -> list[int]:
    """Divide tasks among parts, so that all take about as long: the dearest first.

    The same costs are always divided alike, whoever does it. No part takes longer than the mean of
    all and the dearest task together.

    Parameters
    ----------
    costs
        What each task takes.
    count
        How many parts there are.

    Returns
    -------
    list[int]
        The number of each task's part, from 1.

    Examples
    --------
    >>> deal([1, 4, 1, 2], 2)
    [2, 1, 2, 2]
    """
    loads = [(0.0, number) for number in range(1, count + 1)]
    numbers = [0] * len(costs)
    for task in sorted(range(len(costs)), key=lambda task: (-costs[task], task)):
        load, number = loads[0]
        numbers[task] = number
        heapq.heapreplace(loads, (load + costs[task], number))
    return numbers


def share_of(text: str, environment: Mapping[str, str]) -> Share:
    """Read which part of the work is meant.

    Parameters
    ----------
    text
        `I/N`, or `auto`: as Slurm says, of the tasks of a job array, of the processes of a step, or
        of the processes of the steps of all tasks of an array.
    environment
        The variables of the environment.

    Raises
    ------
    ConfigError
        If it is neither, or Slurm does not say.

    Examples
    --------
    >>> share_of("3/16", {})
    Share(number=3, count=16)
    """
    if text == "auto":
        return _share_under_slurm(environment)
    first, _, second = text.partition("/")
    if not all(one.isascii() and one.isdigit() for one in (first, second)):
        raise ConfigError(f"{text!r} is no part of anything", where="--part", fix=_FORM)
    share = Share(int(first), int(second))
    if not 1 <= share.number <= share.count:
        raise ConfigError(f"there is no part {text}", where="--part", fix=_FORM)
    return share


def _share_under_slurm(environment: Mapping[str, str]) -> Share:
    in_array = "SLURM_ARRAY_TASK_ID" in environment
    # In the script of a job, which no step runs, there is one process however many tasks it has.
    in_step = "SLURM_STEP_ID" in environment and "SLURM_PROCID" in environment
    if not (in_array or in_step):
        raise ConfigError(
            "this is neither a task of a Slurm array nor of a step that srun started",
            where="--part auto",
            fix=_SAY_IT,
        )
    task, tasks = _place_in_array(environment) if in_array else (0, 1)
    process, processes = _place_in_step(environment) if in_step else (0, 1)
    return Share(task * processes + process + 1, tasks * processes)


def _place_in_array(environment: Mapping[str, str]) -> tuple[int, int]:
    task, count, first, last = (
        _number(environment, f"SLURM_ARRAY_TASK_{name}") for name in ("ID", "COUNT", "MIN", "MAX")
    )
    step = max(1, _number({"SLURM_ARRAY_TASK_STEP": "1", **environment}, "SLURM_ARRAY_TASK_STEP"))
    place, beyond = divmod(task - first, step)
    # Of an array such as 1,3,7 nobody says which task is the second.
    if beyond or not 0 <= place < count or last - first != (count - 1) * step:
        raise _odd(
            f"the {count} tasks of the array do not follow each other from {first} to {last}"
        )
    return place, count


def _place_in_step(environment: Mapping[str, str]) -> tuple[int, int]:
    name = "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in environment else "SLURM_NTASKS"
    process, count = _number(environment, "SLURM_PROCID"), _number(environment, name)
    if process >= count:
        raise _odd(f"SLURM_PROCID is {process} and {name} is {count}")
    return process, count


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    if not (text.isascii() and text.isdigit()):
        raise _odd(f"the variable {name} is {text!r}" if text else f"there is no {name}")
    return int(text)


def _odd(what: str) -> ConfigError:
    return ConfigError(what, where="--part auto", fix=_SAY_IT)
