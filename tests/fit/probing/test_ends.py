"""Whoever is killed, nothing is left that runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from playhead.fit.probing.orphans import children
from support import run_prober
from support.processes import marked, none_marked
from support.small_models import FOLDER

SCRIPT = Path(run_prober.__file__)
MARK = "PLAYHEAD_TEST_MARK"


class Search:
    """A process that probes, in a group of its own as a terminal gives it."""

    def __init__(self, folder):
        self.folder = folder
        self.mark = f"{MARK}={uuid.uuid4()}"
        path = [str(SCRIPT.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                FOLDER: str(folder),
                MARK: self.mark.partition("=")[2],
                "PYTHONPATH": os.pathsep.join(path),
            },
            start_new_session=True,
        )

    def wait_until(self, line):
        assert self.process.stdout is not None
        while (said := self.process.stdout.readline().strip()) != line:
            assert said, self.process.communicate()[1]

    def hang(self, act="hang_with_children"):
        """Have it hang in the step of a probe."""
        (self.folder / "act").write_text(f"{act} 1")
        self.wait_until("open")
        deadline = time.monotonic() + 60
        while not (self.folder / "hanging").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)


@contextmanager
def searching(folder):
    search = Search(folder)
    try:
        yield search
    finally:
        for pid in (search.process.pid, *marked(search.mark)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        search.process.communicate()


@pytest.mark.e2e
def test_nothing_outlives_a_search_that_is_killed(tmp_path):
    with searching(tmp_path) as search:
        search.hang()
        # The search, the server, the probe and what that started.
        assert len(marked(search.mark)) == 5
        search.process.kill()
        search.process.wait(20)
        assert none_marked(search.mark)


@pytest.mark.e2e
def test_ctrl_c_ends_all_at_once_and_reaches_the_search(tmp_path):
    with searching(tmp_path) as search:
        search.hang()
        os.killpg(search.process.pid, signal.SIGINT)
        said, errors = search.process.communicate(timeout=20)
        assert search.process.returncode == 130, errors
        assert said.endswith("interrupted\n")
        # Not in a moment: by the time that the search has ended.
        assert not marked(search.mark)


@pytest.mark.e2e
@pytest.mark.slow
def test_nothing_outlives_a_search_that_is_asked_to_end(tmp_path):
    with searching(tmp_path) as search:
        search.hang()
        search.process.terminate()
        search.process.wait(20)
        assert none_marked(search.mark)


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_nothing_outlives_a_search_that_is_killed_or_interrupted_at_any_moment(tmp_path, number):
    sent = [signal.SIGKILL, signal.SIGINT][number % 2]
    with searching(tmp_path) as search:
        search.wait_until("started" if number < 6 else "open")
        time.sleep(0.4 * (number // 2 % 3))
        search.process.send_signal(sent)
        search.process.wait(20)
        assert none_marked(search.mark)


@pytest.mark.e2e
@pytest.mark.slow
def test_a_search_goes_on_whoever_of_its_helpers_is_killed_and_whenever(tmp_path):
    with searching(tmp_path) as search:
        search.wait_until("ok")
        for number in range(6):
            time.sleep(0.05 * number)
            (server,) = children(search.process.pid)
            victims = [server] if number % 3 == 2 else sorted(children(server))
            for victim in victims:
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
            search.wait_until("ok")
        assert search.process.poll() is None
        search.process.kill()
        search.process.wait(20)
        assert none_marked(search.mark)
