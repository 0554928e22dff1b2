"""When a process may be forked."""

from __future__ import annotations

import os
import threading

import pytest
import torch

from playhead.errors import FitError
from playhead.fit import models
from playhead.fit.probing import server
from playhead.fit.probing.messages import Opening
from playhead.fit.probing.server import broken_by_fork
from playhead.fit.training import Training
from support.small_models import small


@pytest.fixture
def alone(monkeypatch):
    """No thread but this one, whatever runs the tests."""
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread()])
    monkeypatch.setattr(server, "_JOIN_SECONDS", 0.05)


@pytest.mark.usefixtures("alone")
def test_a_process_that_only_has_a_model_may_be_forked():
    torch.nn.Linear(2, 2)
    assert broken_by_fork() is None


@pytest.mark.usefixtures("alone")
def test_cuda_is_broken_by_a_fork(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert broken_by_fork() == "opening the model uses CUDA"


@pytest.mark.usefixtures("alone")
def test_a_driver_that_was_merely_asked_is_broken_by_a_fork_too(monkeypatch):
    with open("/dev/zero", "rb"):  # noqa: PTH123 - it stands for the driver's device
        monkeypatch.setattr(server, "_DRIVER", "/dev/zero")
        assert broken_by_fork() == "opening the model uses CUDA"
    assert broken_by_fork() is None


def test_threads_that_stay_are_left_behind_by_a_fork_and_those_that_end_are_not(monkeypatch, alone):
    end = threading.Event()
    staying = threading.Thread(target=end.wait, name="staying")
    ending = threading.Thread(target=lambda: None, name="ending")
    for thread in (staying, ending):
        thread.start()
    monkeypatch.setattr(server, "_JOIN_SECONDS", 0.5)
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread(), ending, staying])
    try:
        assert broken_by_fork() == "opening the model starts threads (staying)"
    finally:
        end.set()
        staying.join()
    assert broken_by_fork() is None


def test_whatever_opening_a_model_raises_is_one_line_with_its_place(monkeypatch):
    def failing(*_):
        raise SystemExit(3)

    monkeypatch.setattr(models, "open_model", failing)
    opening = Opening(
        source=small("Small"), training=Training(), device="cpu", seconds=1.0, is_cold=False
    )
    with pytest.raises(FitError, match=r"failed: SystemExit: 3 \(.*test_server.py:\d+ in failing"):
        server._open(opening)


def test_a_process_that_does_not_end_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(server, "_REAP_SECONDS", 0.05)
    monkeypatch.setattr(server.os, "waitpid", lambda *_: (0, 0))
    assert server._reaped(1) is None
    monkeypatch.undo()
    pid = os.fork()
    if not pid:
        os._exit(3)
    assert os.waitstatus_to_exitcode(server._reaped(pid)) == 3
