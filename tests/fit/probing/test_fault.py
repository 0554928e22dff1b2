"""One line for what went wrong, and one for where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from playhead.fit.probing import fault
from playhead.fit.steps import train_step


class Nothing:
    """No model at all."""

    def loss(self, batch):
        raise AssertionError

    def make_batch(self, *sizes):
        return json.loads("{")


def test_the_line_is_that_of_people_though_libraries_are_called_in_between(monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)
    model = Nothing()
    with pytest.raises(json.JSONDecodeError) as raised:
        model.make_batch(1, 2, 3)
    line = fault.place(raised.value)
    assert line is not None
    assert line.startswith("test_fault.py:")
    assert line.endswith(" in make_batch")


def test_torch_and_playhead_are_nobodys_own_code():
    with pytest.raises(AttributeError) as raised:
        train_step(None, None, 1)
    line = fault.place(raised.value)
    assert line is not None
    assert line.endswith(" in test_torch_and_playhead_are_nobodys_own_code")


def test_installed_packages_are_named_where_nobodys_own_code_was_called():
    calls = [
        (torch.nn.__file__, 3, "forward"),
        (pytest.__file__, 5, "run"),
        (torch.__file__, 7, "call"),
    ]
    line = fault.own_line(calls)
    assert line is not None
    assert line.endswith(f"{Path(pytest.__file__).name}:5 in run")


def test_a_long_message_is_cut():
    said = fault.words(RuntimeError("word\n" * 1000))
    assert len(said) < 400
    assert "\n" not in said
    assert said.endswith("…")
