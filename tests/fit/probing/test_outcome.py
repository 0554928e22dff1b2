"""What became of a probe."""

from __future__ import annotations

from pathlib import Path

import pytest

from playhead.errors import ConfigError
from playhead.fit.probing.messages import Answer, Ended, Refusal
from playhead.fit.probing.outcome import outcome

LOG = Path("/tmp/probes.log")


def ended(answer=None, **seen):
    defaults = {
        "done": 0,
        "signal": None,
        "code": None,
        "is_late": False,
        "host_kills": 0,
        "last_words": "",
        "spoke_of_memory": False,
    }
    return outcome(Ended(answer=answer, **(defaults | seen)), LOG, 900.0)


@pytest.mark.parametrize("status", ["ok", "oom", "doubt", "fault"])
def test_an_answer_counts_whatever_came_after_it(status):
    answer = Answer(status=status, reason="why", where="model.py:1 in f")
    judged = ended(answer, signal="SIGSEGV")
    assert (judged.status, judged.reason, judged.where) == (status, "why", "model.py:1 in f")


def test_a_refusal_is_raised_as_it_was():
    error = ConfigError("there is no cuda:3 here", fix="Choose one with --device")
    with pytest.raises(ConfigError) as raised:
        ended(Answer(status="refused", refusal=Refusal.of(error)))
    assert str(raised.value) == str(error)


def test_a_card_that_others_took_says_nothing_of_the_model():
    assert ended(Answer(status="busy", reason="3 GiB are free")).status == "lost"


def test_a_crash_is_lost_and_says_signal_last_words_and_log():
    judged = ended(signal="SIGSEGV", last_words="bad kernel; model.py:3 in f")
    assert judged.status == "lost"
    assert judged.reason == (
        "it was killed by SIGSEGV: bad kernel; model.py:3 in f (/tmp/probes.log)"
    )


def test_an_end_without_an_answer_is_lost():
    judged = ended(code=3)
    assert judged.status == "lost"
    assert judged.reason == "it ended with exit code 3 without an answer (/tmp/probes.log)"


def test_a_hang_is_lost_though_it_was_killed():
    judged = ended(is_late=True, signal="SIGKILL", host_kills=None)
    assert judged.status == "lost"
    assert "900 s" in (judged.reason or "")


def test_a_crash_whose_last_words_are_of_memory_ran_out_of_it():
    judged = ended(signal="SIGABRT", spoke_of_memory=True, last_words="std::bad_alloc")
    assert (judged.status, judged.reason) == ("oom", "it was killed by SIGABRT: std::bad_alloc")


@pytest.mark.parametrize(("kills", "status"), [(1, "oom"), (None, "oom"), (0, "lost")])
def test_a_kill_is_the_kernels_unless_it_counts_none(kills, status):
    judged = ended(signal="SIGKILL", host_kills=kills)
    assert judged.status == status
    assert ("memory of the machine" in (judged.reason or "")) == (status == "oom")
