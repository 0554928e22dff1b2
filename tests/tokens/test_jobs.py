"""Stretches of rows, and who does what for them."""

from __future__ import annotations

import gc
import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError, WorkerError
from playhead.tokens import jobs
from playhead.tokens.jobs import Stretch, do_all, stretches

ROWS = [Stretch(i * 10, i * 10 + 10) for i in range(12)]


def who(stretch):
    return os.getpid(), threading.get_ident(), stretch.start


def fails(stretch):
    if stretch.start == 50:
        raise ConfigError("no good")
    return stretch.start


def dies(stretch):
    if stretch.start == 50:
        os.kill(os.getpid(), signal.SIGKILL)
    return stretch.start


def run(task, **options):
    settings = {"workers": 2, "in_threads": False, "on_death": lambda _: None, **options}
    return list(do_all(task, ROWS, **settings))


@pytest.fixture
def _few(monkeypatch):
    monkeypatch.setattr(jobs, "_FEW_ROWS", 20)


@given(
    st.lists(st.integers(1, 40_000_000), min_size=1, max_size=60).map(np.array), st.integers(0, 70)
)
def test_stretches_are_the_rows_in_order(sizes, start):
    start = min(start, len(sizes))
    found = stretches(start, len(sizes), sizes)
    assert [row for one in found for row in range(*one)] == list(range(start, len(sizes)))
    assert all(one.stop > one.start for one in found)


def test_long_rows_make_short_stretches():
    assert len(stretches(0, 5000, np.full(5000, 300))) == 3
    assert stretches(0, 3, np.full(3, 64 << 20)) == [Stretch(0, 1), Stretch(1, 2), Stretch(2, 3)]


@pytest.mark.usefixtures("_few")
def test_threads_processes_or_neither():
    here = os.getpid()
    threads = run(who, in_threads=True)
    assert {pid for _, (pid, _, _) in threads} == {here}
    assert threading.get_ident() not in {thread for _, (_, thread, _) in threads}
    processes = run(who)
    assert here not in {pid for _, (pid, _, _) in processes}
    alone = run(who, workers=1)
    unpickled = run(lambda stretch: tuple(who(stretch)))
    for one in (alone, unpickled):
        assert {answer[:2] for _, answer in one} == {(here, threading.get_ident())}
    for one in (threads, processes, alone, unpickled):
        assert sorted(stretch for stretch, _ in one) == ROWS
        assert all(stretch.start == answer[2] for stretch, answer in one)


def test_few_rows_start_no_processes():
    assert {answer[0] for _, answer in run(who)} == {os.getpid()}


@pytest.mark.usefixtures("_few")
@pytest.mark.parametrize("options", [{}, {"in_threads": True}, {"workers": 1}])
def test_errors_end_it(options):
    with pytest.raises(ConfigError, match="No good"):
        run(fails, **options)


@pytest.mark.usefixtures("_few")
def test_a_stretch_that_kills_twice_is_an_error():
    deaths = []
    with pytest.raises(WorkerError, match="SIGKILL, for the second time"):
        run(dies, on_death=deaths.append)
    assert deaths[0].startswith("rows 50 to 60 are tried again")


@pytest.mark.parametrize("options", [{"in_threads": True}, {"workers": 1}])
def test_the_garbage_collector_is_as_it_was(options):
    before = gc.get_threshold()
    during = {answer for _, answer in run(lambda _: gc.get_threshold()[0], **options)}
    assert min(during) > before[0]
    assert gc.get_threshold() == before
    with pytest.raises(ConfigError):
        run(fails, **options)
    assert gc.get_threshold() == before


def test_nothing_to_do_is_nothing():
    assert list(do_all(who, [], workers=4, in_threads=True, on_death=print)) == []
