"""Which rank this is, and what a world size may be."""

from __future__ import annotations

import pytest

from playhead.errors import ConfigError, TopologyError
from playhead.loader.ranks import Topology, find_topology


@pytest.fixture
def no_launcher(monkeypatch):
    for name in (
        "RANK",
        "WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",
    ):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_alone_without_a_launcher(no_launcher):
    assert find_topology() == Topology(rank=0, world_size=1)


@pytest.mark.parametrize(
    ("rank", "size"),
    [
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ],
)
def test_launchers(no_launcher, rank, size):
    no_launcher.setenv(rank, "3")
    no_launcher.setenv(size, "8")
    assert find_topology() == Topology(rank=3, world_size=8)


def test_arguments_win_over_the_launcher(no_launcher):
    no_launcher.setenv("RANK", "3")
    no_launcher.setenv("WORLD_SIZE", "8")
    assert find_topology(0, 1) == Topology(rank=0, world_size=1)


def test_a_launcher_that_speaks_nonsense_is_named(no_launcher):
    no_launcher.setenv("RANK", "three")
    no_launcher.setenv("WORLD_SIZE", "8")
    with pytest.raises(ConfigError, match="RANK='three'"):
        find_topology()


@pytest.mark.parametrize(("rank", "size"), [(0, None), (None, 2), (2, 2), (-1, 2), (0, 0)])
def test_impossible_arguments(no_launcher, rank, size):
    with pytest.raises(ConfigError):
        find_topology(rank, size)


def test_the_legal_world_sizes_are_listed():
    with pytest.raises(TopologyError, match="Use a world size out of 1, 2, 3, 6, "):
        Topology(rank=0, world_size=4).batches_per_step(6)


def test_share_of_a_step():
    assert Topology(rank=0, world_size=3).batches_per_step(12) == 4
