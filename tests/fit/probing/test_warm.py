"""The process that has the model, seen from outside, without starting one."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.errors import FitError
from playhead.fit.probing import warm
from playhead.fit.probing.messages import Lines, Opening, Ready, Started
from playhead.fit.probing.warm import WarmServer
from playhead.fit.training import Training
from support.small_models import small

OPENING = Opening(
    source=small("Small"), training=Training(), device="cpu", seconds=60.0, is_cold=False
)


def test_nobody_is_killed_for_a_number_that_may_be_another_process_s_by_now(tmp_path, monkeypatch):
    theirs = []

    def started(_module, connection, _log):
        theirs.append(connection.dup())
        return subprocess.Popen([sys.executable, "-c", ""])

    monkeypatch.setattr(warm, "started_apart", started)
    killed = []
    monkeypatch.setattr(os, "killpg", lambda group, _: killed.append(group))
    server = WarmServer(OPENING, tmp_path / "log")
    with theirs[0] as there:
        lines = Lines(there)
        assert lines.receive(Opening) == OPENING
        lines.send(Started(pid=12345))
        lines.send(Ready())
        assert server.ready() == Ready()
        server.close()
    assert killed == []


def test_a_process_that_cannot_be_started_leaves_no_socket_open(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_PROBING", "1")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(FitError, match="whenever the model is imported"):
        WarmServer(OPENING, tmp_path / "log")
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
