"""Probes of a card in processes of their own, with torch's code for CUDA and no CUDA below it.

`support/imitated_cuda` stands for the C library: it writes down who asks for what, and refuses
forks of a process that has started CUDA, as torch does.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

import support
from playhead.fit.probing.options import ProbeOptions
from playhead.fit.probing.process_prober import ProcessProber
from playhead.fit.training import Training
from support.small_models import MIB, small

IMITATION = Path(support.__path__[0], "imitated_cuda")


@pytest.fixture
def open_prober(tmp_path, monkeypatch):
    """A prober of a model on the second card of two, of 8 GiB each."""
    monkeypatch.setenv("IMITATED_CUDA_LOG", str(tmp_path / "cuda.log"))
    folders = [str(IMITATION), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    options = ProbeOptions(device="cuda:1", fraction=0.5, seconds=60.0)

    def opened(name):
        log = tmp_path / "probes.log"
        return ProcessProber(small(name), [10, 100], Training(dtype="float32"), options, log=log)

    return opened


def calls(folder):
    """What each process asked of CUDA, in the order in which the processes began."""
    asked = defaultdict(list)
    for line in (folder / "cuda.log").read_text().splitlines():
        pid, _, call = line.split(" ", 2)
        asked[int(pid)].append(call)
    return asked


def test_a_probe_is_the_first_to_start_cuda_and_touches_its_own_card_alone(open_prober, tmp_path):
    with open_prober("Small") as prober:
        server = prober._server.pid
        assert prober.budget == 4096 * MIB
        record = prober.probe(0, 3)
        assert not prober.notes
    assert (record.status, record.allocated, record.reserved) == ("ok", 3 * MIB, 4 * MIB)
    asked = calls(tmp_path)
    assert server not in asked
    _, probe = asked.values()
    begin = ["init", "choose 1", "free 1", "fraction 0.5 1", "reset 1", "move 1"]
    assert probe[: len(begin)] == begin
    step = ["reset 1", "choose 1", "synchronize 1", "choose 1", "memory 1", "memory 1"]
    assert probe[len(begin) :] == step * 3


def test_a_model_that_starts_cuda_is_opened_in_each_probe_on_the_card_that_is_meant(
    open_prober, tmp_path
):
    with open_prober("AsksForCuda") as prober:
        assert prober.probe(0, 3).status == "ok"
        assert "opening the model uses CUDA" in prober.notes[0]
    *_, probe = calls(tmp_path).values()
    assert probe[:3] == ["init", "choose 1", "current 1"]
