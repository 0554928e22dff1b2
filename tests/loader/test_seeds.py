"""Seeds: drawn once, without moving anybody's generator."""

from __future__ import annotations

import random

import pytest

from playhead.errors import ConfigError
from playhead.loader.ranks import Topology
from playhead.loader.seeds import resolve_seed

ALONE = Topology(rank=0, world_size=1)


def test_trng_differs_from_run_to_run():
    assert len({resolve_seed("trng", ALONE) for _ in range(8)}) == 8


def test_randomized_follows_pythons_generator_without_moving_it():
    random.seed(5)
    state = random.getstate()
    first = resolve_seed("randomized", ALONE)
    assert random.getstate() == state
    assert resolve_seed("randomized", ALONE) == first
    random.seed(6)
    assert resolve_seed("randomized", ALONE) != first


@pytest.mark.parametrize("seed", ["trng", "randomized"])
def test_ranks_that_cannot_talk_need_an_integer(seed):
    with pytest.raises(ConfigError, match="Give an integer seed"):
        resolve_seed(seed, Topology(rank=1, world_size=2))
