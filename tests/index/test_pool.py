import os
import signal
import time
from pathlib import Path

import pytest

from playhead.errors import ArchiveError, WorkerError
from playhead.index.pool import run_each


def work(item):
    """What an item says: (verb, argument)."""
    verb, argument = item
    if verb == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if verb == "die once" and not Path(argument).exists():
        Path(argument).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if verb == "refuse":
        raise ArchiveError("no", where=argument)
    if verb == "miss":
        Path(argument).read_bytes()
    if verb == "hunger":
        raise MemoryError
    return os.getpid()


def run(items, workers):
    deaths = []
    outcomes = {}
    for outcome in run_each(
        work, items, workers=workers, on_death=lambda *death: deaths.append(death)
    ):
        assert outcome.item not in outcomes
        outcomes[outcome.item] = outcome
    assert set(outcomes) == set(items), "one outcome for each"
    return outcomes, deaths


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_failures_are_outcomes_and_the_others_go_on(tmp_path, workers):
    missing = str(tmp_path / "nowhere")
    items = [("refuse", "a.tar"), ("miss", missing), ("hunger", ""), *(("ok", i) for i in range(5))]
    outcomes, deaths = run(items, workers)
    assert deaths == []
    assert isinstance(outcomes["refuse", "a.tar"].error, ArchiveError)
    assert "a.tar" in str(outcomes["refuse", "a.tar"].error)
    assert missing in str(outcomes["miss", missing].error)
    assert "--workers" in str(outcomes["hunger", ""].error)
    pids = {outcomes["ok", i].result for i in range(5)}
    assert (os.getpid() in pids) == (workers < 2)
    assert len(pids) <= max(workers, 1)


def test_a_killed_worker_is_named_and_its_item_tried_again(tmp_path):
    items = [("die once", str(tmp_path / "mark")), *(("ok", i) for i in range(6))]
    outcomes, deaths = run(items, 2)
    assert all(outcome.error is None for outcome in outcomes.values())
    ((item, why),) = deaths
    assert item == items[0]
    assert "killed by SIGKILL" in why
    assert "--workers" in why


def test_an_item_that_kills_twice_fails(tmp_path):
    items = [("ok", 0), ("die", 1), ("die", 2), ("ok", 3)]
    outcomes, deaths = run(items, 2)
    assert [outcomes[item].error is None for item in items] == [True, False, False, True]
    assert len(deaths) == 2
    error = outcomes["die", 1].error
    assert isinstance(error, WorkerError)
    assert "SIGKILL, for the second time" in str(error)
    assert "fewer workers" in str(error)


def test_leaving_early_leaves_no_process():
    outcomes = run_each(work, [("ok", i) for i in range(50)], workers=2, on_death=print)
    pids = {next(outcomes).result, next(outcomes).result}
    outcomes.close()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
