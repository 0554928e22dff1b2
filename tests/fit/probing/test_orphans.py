"""Processes end with those that they work for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from playhead.fit.probing.orphans import ancestors, children
from support.processes import gone

PARENT = """
import os, signal, sys, time
from playhead.fit.probing.orphans import die_with
parent = os.getpid()
if os.fork() == 0:
    die_with(parent, signal.SIGKILL)
    print(os.getpid(), flush=True)
    time.sleep(1000)
time.sleep(1000)
"""

ADOPTING = """
import os, subprocess, sys, time
from playhead.fit.probing.orphans import adopt_orphans, children, end_children
adopt_orphans()
spared = subprocess.Popen(["sleep", "1000"])
middle = subprocess.Popen(
    ["sh", "-c", "setsid sleep 1000 & setsid sleep 1000 &"]
)
middle.wait()
deadline = time.monotonic() + 20
while len(children(os.getpid())) < 3 and time.monotonic() < deadline:
    time.sleep(0.01)
before = children(os.getpid())
end_children(frozenset({spared.pid}))
print(len(before), children(os.getpid()) == {spared.pid}, flush=True)
spared.kill()
"""


def test_a_process_dies_with_its_parent_however_that_ends():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
        assert child in children(parent.pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait(20)
    assert gone(child)


def test_orphans_are_adopted_killed_and_reaped_and_others_are_spared():
    done = subprocess.run(
        [sys.executable, "-c", ADOPTING], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "3 True\n"


def test_a_process_has_the_children_that_it_has():
    before = children(os.getpid())
    child = subprocess.Popen(["sleep", "1000"])
    assert children(os.getpid()) - before == {child.pid}
    child.kill()
    child.wait()
    assert child.pid not in children(os.getpid())


def test_ancestors_begin_with_oneself_and_end_with_the_first_process():
    assert {os.getpid(), os.getppid(), 1} <= ancestors()
    assert 0 not in ancestors()
