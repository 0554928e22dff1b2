"""What a rank hands out: planned ahead in a thread that no fork may catch at work."""

from __future__ import annotations

import hashlib
import os
import threading

import numpy as np
import pytest

from playhead.errors import PositionError
from playhead.loader import run as run_module
from playhead.loader.fork_lock import fork_lock
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning, Run
from playhead.plan import Batching, LeafColumns, Shape, start

DURATIONS = np.random.default_rng(0).integers(300_000, 9_000_000, 400)


def planning(*, finite=False, step=2, window_draws=40):
    leaf = LeafColumns(
        key="a",
        name="a",
        weight=1,
        duration_us=DURATIONS,
        fingerprint=lambda n: hashlib.blake2b(DURATIONS[:n].tobytes(), digest_size=8).hexdigest(),
    )
    return Planning(
        leaves=(leaf,),
        shape=Shape(finite=finite, window_draws=window_draws),
        batching=Batching(micro_batches_per_step=step, batch_duration_us=30_000_000),
    )


def new_run(plan, **topology):
    position = start(plan.leaves, plan.shape, plan.batching, seed=1)
    return Run(plan, position, Topology(**{"rank": 0, "world_size": 1, **topology}))


def test_a_fork_waits_until_no_plan_is_being_made(monkeypatch):
    begun, finished = threading.Event(), []

    def slow_plan(*arguments):
        begun.set()
        # Long enough that a fork that does not wait would come in between.
        threading.Event().wait(0.5)
        finished.append(True)
        return arguments

    monkeypatch.setattr(run_module, "plan_window", slow_plan)
    plan = planning()
    position = start(plan.leaves, plan.shape, plan.batching, seed=1)
    thread = threading.Thread(target=plan.window, args=(position,))
    thread.start()
    assert begun.wait(10)
    child = os.fork()
    if child == 0:
        # The child of a fork that waited has the finished plan, and can plan itself.
        free = fork_lock.acquire(timeout=5)
        os._exit(0 if finished and free else 1)
    _, status = os.waitpid(child, 0)
    thread.join(10)
    assert os.waitstatus_to_exitcode(status) == 0


def test_batches_can_begin_anywhere():
    whole = new_run(planning())
    expected = [next(it) for it in [whole.batches()] for _ in range(60)]
    for first in (0, 1, 2, 17, 40, 59):
        batch = next(new_run(planning()).batches(first))
        assert batch.key == expected[first].key
        assert (batch.row == expected[first].row).all()


def test_positions_of_windows_far_back_are_let_go():
    run = new_run(planning())
    batches = run.batches()
    for count in range(1, 400):
        next(batches)
        run.forget_before(count)
    assert len(run._windows) <= 5
    assert run.position_after(398).step == 199
    with pytest.raises(PositionError, match="further back"):
        run.position_after(0)


def test_there_is_no_position_after_the_end():
    run = new_run(planning(finite=True))
    count = run.count()
    assert len(list(run.batches())) == count
    end = run.position_after(count)
    assert planning(finite=True).steps_left(end) == 0
    with pytest.raises(PositionError, match="no batch"):
        run.position_after(count + 1)


def test_a_run_at_the_end_hands_out_nothing():
    plan = planning(finite=True)
    run = new_run(plan)
    end = run.position_after(run.count())
    over = Run(plan, end, Topology(rank=0, world_size=1))
    assert over.count() == 0
    assert list(over.batches()) == []
    assert over.position_after(0) == end
