from __future__ import annotations

import json
import random
import subprocess
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace

import lhotse.utils
import numpy as np
import pytest
import torch

from playhead.fetch.randomness import KeyedCalls


def draw_globals():
    return (
        random.random(),
        np.random.random(),
        np.random.standard_normal(),
        torch.rand(1).item(),
        str(lhotse.utils.uuid4()),
    )


def test_globals_depend_on_the_key_alone():
    calls = KeyedCalls(None)
    first = calls(5, draw_globals)
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    assert KeyedCalls(SimpleNamespace())(5, draw_globals) == first
    other = calls(6, draw_globals)
    assert all(one != two for one, two in zip(first, other, strict=True))


def test_the_main_process_keeps_its_own():
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    np.random.standard_normal()
    before = (random.getstate(), torch.get_rng_state(), lhotse.utils._lhotse_uuid)
    kept = np.random.get_state(legacy=False)
    threads = torch.get_num_threads()

    def fail():
        draw_globals()
        assert torch.get_num_threads() == 1
        raise KeyError

    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyError):
            KeyedCalls(None)(7, fail)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert lhotse.utils._lhotse_uuid is before[2]
    np.testing.assert_equal(np.random.get_state(legacy=False), kept)


def test_lhotses_ids_are_version_4():
    assert KeyedCalls(None)(1, lhotse.utils.uuid4).version == uuid.uuid4().version


class LazyDataset:
    """Makes its generator when it is first used, as many do."""

    def __init__(self):
        self.rng = None
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.rng is None:
            self.rng = np.random.default_rng()
        return self.rng.random(), random.random()


def test_a_generator_made_by_the_first_call_is_keyed_too():
    one, two = LazyDataset(), LazyDataset()
    keyed = KeyedCalls(one)
    first = keyed(1, one)
    assert one.calls == 2
    second = keyed(2, one)
    assert one.calls == 3
    other = KeyedCalls(two)
    assert other(2, two) == second
    assert other(1, two) == first


def test_a_generator_that_nobody_can_seed_is_said_once():
    dataset = SimpleNamespace(rng=random.SystemRandom())
    keyed = KeyedCalls(dataset)
    with pytest.warns(UserWarning, match=r"dataset\.rng is a random\.SystemRandom"):
        keyed(1, draw_globals)
    keyed(2, draw_globals)


def test_another_process_draws_the_same():
    """With another seed of Python's hashes and of everything else."""
    from_here = KeyedCalls(None)(99, draw_globals)
    code = (
        "import random, json, numpy as np, torch, lhotse.utils\n"
        "from playhead.fetch.randomness import KeyedCalls\n"
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_randomness import draw_globals\n"
        "print(json.dumps(KeyedCalls(None)(99, draw_globals)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert tuple(json.loads(done.stdout)) == from_here
