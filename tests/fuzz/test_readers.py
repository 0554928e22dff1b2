"""No reader hangs, crashes, raises what is not ours, or gives a wrong sample in silence.

`PLAYHEAD_FUZZ_CASES` is how many cases are run, `PLAYHEAD_FUZZ_FIRST` the number of the first.
"""

from __future__ import annotations

import os

import pytest

from fuzz import runner
from fuzz.damage import damage, damage_json

FIRST = int(os.environ.get("PLAYHEAD_FUZZ_FIRST", "0"))


def check(number: int) -> None:
    tally = runner.run(range(FIRST, FIRST + number), processes=2)
    report = "\n".join(tally.failures)
    assert not tally.failures, f"{len(tally.failures)} of {tally.done} cases\n{report}"
    assert tally.done == number
    outcomes = tally.outcomes
    # Most damage matters, and is said.
    refused = sum(count for outcome, count in outcomes.items() if outcome.startswith("refused"))
    assert refused > 0.2 * number, outcomes
    assert outcomes["as damaged"] > 0.02 * number, outcomes


@pytest.mark.timeout(1200)
def test_damaged_inputs():
    check(int(os.environ.get("PLAYHEAD_FUZZ_CASES", "500")))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_damaged_inputs():
    check(max(10_000, int(os.environ.get("PLAYHEAD_FUZZ_CASES", "0"))))


def test_what_hangs_crashes_or_is_wrong_is_reported(tmp_path, monkeypatch):
    """A fuzzer that cannot fail proves nothing."""
    child = tmp_path / "fuzz" / "child.py"
    child.parent.mkdir()
    child.write_text(
        "import json, os, sys, time\n"
        "for case in map(int, sys.argv[1:]):\n"
        "    print(json.dumps({'begins': case}), flush=True)\n"
        "    if case == 1: time.sleep(60)\n"
        "    if case == 2: os.abort()\n"
        "    if case == 3: sys.exit('my fault')\n"
        "    said = {'case': case, 'what': 'a file', 'outcome': 'same', 'is_right': case != 4}\n"
        "    print(json.dumps(said), flush=True)\n"
    )
    monkeypatch.setattr(runner, "_TESTS", tmp_path)
    monkeypatch.setattr(runner, "CASE_SECONDS", 2.0)
    tally = runner.run(range(6), processes=1)
    assert tally.outcomes == {"same": 3, "HANGS": 1, "CRASHES": 1, "ENDS": 1}
    assert [failure.partition(":")[0] for failure in tally.failures] == [
        "case 1",
        "case 2",
        "case 3",
        "case 4, a file",
    ]
    assert "SIGABRT" in tally.failures[1]
    assert "my fault" in tally.failures[2]
    assert all("-m fuzz.child" in failure for failure in tally.failures)


def test_damage_is_the_same_every_time_and_never_nothing():
    import random

    text = b'{"a": 1.5}\n{"a": -2}\n' * 9
    for is_text in (False, True):
        made = [damage(text, random.Random(n), is_text=is_text) for n in range(300)]
        again = [damage(text, random.Random(n), is_text=is_text) for n in range(300)]
        assert made == again
        assert all(data != text for data, _ in made)
        assert len({data for data, _ in made}) > 200
    state = {"leaves": {"a": [1, 2, "x"]}, "chain": [[{"b": 1}, 0, 3]], "seed": 1}
    states = [damage_json(state, random.Random(n))[0] for n in range(200)]
    assert states == [damage_json(state, random.Random(n))[0] for n in range(200)]
    assert sum(one == state for one in states) < 10
    assert state["leaves"] == {"a": [1, 2, "x"]}
