from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.demo import story
from playhead.demo.story import run_demo
from playhead.errors import PlanError


@given(st.integers(24, 500), st.integers(story._MIN_STEPS_OF_A_PASS, 1000))
def test_kills_leave_a_checkpoint_inside_a_pass(steps, steps_of_a_pass):
    kills = story._kills(steps, steps_of_a_pass)
    assert kills[1] < steps
    for kill in kills:
        # The kill may come before the checkpoint of its own step is on disk, and a few steps late.
        for reached in range(kill - 1, kill + story._LATE_STEPS - 1):
            into_the_pass = reached % steps_of_a_pass
            assert reached // steps_of_a_pass == kill // steps_of_a_pass
            assert reached - reached % story._SAVE_EVERY > reached - into_the_pass


@pytest.mark.e2e
def test_the_demonstration_proves_what_it_claims(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    said: list[str] = []
    report = run_demo(tmp_path / "out", None, steps=24, seed=0, workers=(0, 1, 0), say=said.append)
    assert {claim.text: claim.holds for claim in report.claims} == {
        claim.text: True for claim in report.claims
    }
    assert [stage["processes"] for stage in report.stages] == [2, 1, 3]
    assert [stage["outcome"] for stage in report.stages] == [
        "killed with SIGKILL",
        "killed with SIGKILL",
        "ran to the end",
    ]
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert written["holds"] is True
    assert written["steps"] == 24
    assert (
        "| every resume was in the middle of a pass | yes |"
        in (tmp_path / "out" / "report.md").read_text()
    )
    assert any("SIGKILL" in line for line in said)


def test_data_too_small_to_stop_inside_a_pass_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(story, "_UTTERANCES", 30)
    with pytest.raises(PlanError, match="steps a pass"):
        run_demo(tmp_path / "out", None, steps=24, seed=0, workers=(0, 0, 0), say=lambda _: None)
