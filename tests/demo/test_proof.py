from __future__ import annotations

import copy
import json

import pytest

from playhead.demo.proof import prove, read_history, steps_in

NAMES = ["a", "b", "c", "d"]
# In the order in which `prove` gives them.
CLAIMS = ["inside", "once", "order", "bytes", "again", "loss", "learns"]


def lines_of(passes=2, steps=4, first=0):
    """A log of passes of one-sample steps: at step s of a pass, sample NAMES[s]."""
    lines = []
    for step in range(first, passes * steps):
        place = {"step": step, "slot": 0, "of_pass": step // steps}
        name = NAMES[step % steps]
        lines.append({**place, "ids": [name], "repeated": [False], "bytes": f"{name}!"})
        lines.append({"step": step, "loss": 100.0 / (1 + step)})
    return lines


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def verdict(tmp_path, *logs, resumed_at=(2,), names=NAMES):
    straight = read_history([write(tmp_path / "straight", lines_of())])
    broken = read_history([write(tmp_path / f"{i}", log) for i, log in enumerate(logs)])
    claims = prove(straight, broken, names=names, resumed_at=resumed_at)
    return {key: claim.holds for key, claim in zip(CLAIMS, claims, strict=True)}


def failing(verdicts):
    return {key for key, holds in verdicts.items() if not holds}


def test_a_run_that_went_on_from_its_checkpoint_proves_everything(tmp_path):
    # Killed after step 3, whose checkpoint was that of step 2.
    verdicts = verdict(tmp_path, lines_of()[:8], lines_of(first=2))
    assert set(verdicts) == set(CLAIMS)
    assert failing(verdicts) == set()


def changed(index, **values):
    lines = copy.deepcopy(lines_of())
    lines[index].update(values)
    return lines


@pytest.mark.parametrize(
    ("log", "broken_claims"),
    [
        (changed(2, ids=["a"], bytes="a!"), {"once", "order", "bytes"}),
        (changed(2, bytes="other"), {"bytes"}),
        (changed(3, loss=7.0), {"loss"}),
        (changed(2, repeated=[True]), {"once"}),
        (lines_of()[:-2], {"order", "bytes", "loss"}),
        (lines_of()[2:], {"once", "order", "bytes", "loss"}),
        ([], {"once", "order", "bytes", "loss", "learns"}),
    ],
    ids=["other sample", "other bytes", "other loss", "repeat", "short", "hole", "nothing"],
)
def test_whatever_is_wrong_fails_its_claims_and_no_others(tmp_path, log, broken_claims):
    assert failing(verdict(tmp_path, log)) == broken_claims


@pytest.mark.parametrize("resumed_at", [(), (0,), (4,), (2, 4), (99,)])
def test_a_resume_at_the_first_step_of_a_pass_is_no_proof(tmp_path, resumed_at):
    assert failing(verdict(tmp_path, lines_of(), resumed_at=resumed_at)) == {"inside"}


def test_what_is_trained_again_must_be_the_same(tmp_path):
    lost = changed(4, bytes="other")[:8]
    assert failing(verdict(tmp_path, lost, lines_of(first=2))) == {"again"}


def test_part_of_a_pass_is_not_called_a_pass(tmp_path):
    part = read_history([write(tmp_path / "part", lines_of()[:4])])
    claim = prove(part, part, names=NAMES, resumed_at=[1])[1]
    assert claim.holds
    assert claim.text == "no sample twice in the part of a pass that was trained"
    twice = read_history([write(tmp_path / "twice", changed(2, ids=["a"])[:4])])
    assert not prove(twice, twice, names=NAMES, resumed_at=[1])[1].holds


def test_samples_may_share_a_name(tmp_path):
    log = [dict(line, ids=["x"]) if "ids" in line else line for line in lines_of()]
    history = read_history([write(tmp_path / "log", log)])
    assert prove(history, history, names=["x"] * 4, resumed_at=[1])[1].holds
    assert not prove(history, history, names=["x"] * 3, resumed_at=[1])[1].holds


def test_half_a_last_line_counts_for_nothing(tmp_path):
    log = write(tmp_path / "log", lines_of()[:4])
    with log.open("a") as file:
        file.write('{"step": 2, "sl')
    assert steps_in(log) == 2
    assert sorted(read_history([log]).batches) == [(0, 0), (1, 0)]
    assert steps_in(tmp_path / "none") == 0
