"""Whoever waits for predictions is told so, once."""

from __future__ import annotations

import sys
from threading import Event

import pytest

from playhead.cli import oomptimizer_text
from playhead.cli.oomptimizer_text import Waiter

LINE = "predicting what steps hold …"


def test_a_wait_that_takes_time_is_a_line_once(monkeypatch):
    told = Event()
    lines = []

    def say(line):
        lines.append(line)
        told.set()

    monkeypatch.setattr(oomptimizer_text, "say", say)
    monkeypatch.setattr(oomptimizer_text, "_SILENT_SECONDS", 0.0)
    waiter = Waiter()
    for _ in range(3):
        with waiter.waiting():
            assert told.wait(20)
    assert lines == [LINE]


def test_short_waits_say_nothing_and_a_failure_inside_goes_through(capfd):
    waiter = Waiter()
    with waiter.waiting():
        pass
    with pytest.raises(KeyboardInterrupt), waiter.waiting():
        raise KeyboardInterrupt
    assert capfd.readouterr() == ("", "")


def test_many_short_waits_are_a_long_one(monkeypatch):
    delays = []

    class Timer:
        def __init__(self, seconds, _):
            delays.append(seconds)

        def start(self): ...
        def cancel(self): ...
        def join(self): ...

    clock = iter([0.0, 1.5, 2.0, 3.5, 4.0, 4.1])
    monkeypatch.setattr(oomptimizer_text.threading, "Timer", Timer)
    monkeypatch.setattr(oomptimizer_text.time, "monotonic", lambda: next(clock))
    waiter = Waiter()
    for _ in range(3):
        with waiter.waiting():
            pass
    assert delays == [2.0, 0.5, 0.0]


def test_on_a_terminal_it_is_a_bar_that_leaves(monkeypatch, capfd):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(oomptimizer_text, "_SILENT_SECONDS", 0.0)
    drawn = Event()
    waiter = Waiter()
    tell = waiter._tell
    monkeypatch.setattr(waiter, "_tell", lambda: (tell(), drawn.set()))
    with waiter.waiting():
        assert drawn.wait(20)
        assert waiter._bar.tasks[0].description == LINE
    assert waiter._bar is None


def test_why_nothing_is_predicted_is_said_once_and_known(capfd):
    waiter = Waiter()
    waiter.give_up("no reason")
    waiter.give_up("no reason")
    assert capfd.readouterr().err == "note: nothing is predicted: no reason\n"
    assert waiter.said == ["nothing is predicted: no reason"]
