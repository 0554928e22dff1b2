from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from playhead.errors import WorkerError
from playhead.local_ranks import leaving_in_order, run_ranks


def run(tmp_path, code, *, ranks=2, deadline=300.0, kill=None):
    return run_ranks(
        "s",
        ranks,
        lambda rank: ["-c", code, str(tmp_path / f"s.{rank}.jsonl")],
        tmp_path,
        deadline_seconds=deadline,
        is_time_to_kill=kill,
    )


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def gone(process):
    """Whether a process ends soon; a killed orphan is reaped by init, not by us."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not alive(process):
            return True
        time.sleep(0.02)
    return False


RANK = "import os, sys, time; rank = int(os.environ['RANK']); log = sys.argv[1]\n"
PLACE = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def test_ranks_know_one_another(tmp_path):
    run(tmp_path, RANK + f"open(log, 'w').write(' '.join(os.environ[k] for k in {PLACE}))")
    said = [(tmp_path / f"s.{rank}.jsonl").read_text().split() for rank in range(2)]
    assert [words[:4] for words in said] == [
        ["0", "0", "2", "127.0.0.1"],
        ["1", "1", "2", "127.0.0.1"],
    ]
    assert said[0][4] == said[1][4]


def test_all_are_killed_with_their_workers_once_it_is_time(tmp_path):
    begin = time.monotonic()
    run(
        tmp_path,
        RANK + "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open(r'{tmp_path}/' + f'pids{{rank}}', 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"while not os.path.exists(r'{tmp_path}/pids' + str(1 - rank)): time.sleep(0.01)\n"
        "time.sleep(0.2); open(log, 'w').close(); time.sleep(60)",
        kill=(tmp_path / "s.0.jsonl").exists,
    )
    assert time.monotonic() - begin < 30
    for rank in range(2):
        for process in (tmp_path / f"pids{rank}").read_text().split():
            assert gone(int(process))


def test_the_rank_that_failed_is_named_and_those_it_left_waiting_are_not(tmp_path):
    code = RANK + "time.sleep(60) if rank == 0 else sys.exit('the disk is full')"
    with pytest.raises(WorkerError, match="Rank 1 of s failed: the disk is full") as caught:
        run(tmp_path, code)
    assert "rank 0" not in str(caught.value).lower()
    assert "s.1.err" in str(caught.value)


def test_a_rank_that_was_killed_is_said_to_have_been(tmp_path):
    code = RANK + "print('step 3', flush=True); os.kill(os.getpid(), 9)"
    with pytest.raises(
        WorkerError, match="Rank 0 of s was killed by SIGKILL, as happens"
    ) as caught:
        run(tmp_path, code, ranks=1)
    assert caught.value.exit_code == 1


def test_workers_of_a_rank_that_died_end_with_the_others(tmp_path):
    code = (
        RANK + "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open(r'{tmp_path}/pid', 'w').write(str(child.pid))\n"
        "os._exit(1)"
    )
    with pytest.raises(WorkerError, match="it said nothing"):
        run(tmp_path, code, ranks=1)
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(("codes", "wanted"), [((2, 2), 2), ((2, 1), 1), ((0, 2), 2)])
def test_wrong_input_is_what_all_that_fail_say_it_is(tmp_path, codes, wanted):
    pids = [tmp_path / f"pid{rank}" for rank in range(2)]

    def have_ended():
        for path in pids:
            while not (path.exists() and path.read_text()):
                time.sleep(0.01)
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, int(path.read_text()), os.WEXITED | os.WNOWAIT)
        return False

    code = RANK + f"open(r'{tmp_path}/' + f'pid{{rank}}', 'w').write(str(os.getpid()))\n"
    with pytest.raises(WorkerError) as caught:
        run(tmp_path, code + f"sys.exit({codes}[rank])", kill=have_ended)
    assert caught.value.exit_code == wanted


def test_nobody_waits_for_ever(tmp_path):
    with pytest.raises(WorkerError, match="was not done"):
        run(tmp_path, RANK + "time.sleep(60)", deadline=0.5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_ranks_end_with_whoever_runs_them(tmp_path, number):
    code = RANK + f"open(r'{tmp_path}/' + f'pids{{rank}}', 'w').write(str(os.getpid()))\n"
    code += "time.sleep(60)"
    runner = (
        "import pathlib, signal\n"
        "from playhead.local_ranks import run_ranks\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"run_ranks('s', 2, lambda _: ['-c', {code!r}, 'log'], pathlib.Path({str(tmp_path)!r}),"
        " deadline_seconds=60)"
    )
    with subprocess.Popen([sys.executable, "-c", runner], stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 30
        pids = [tmp_path / f"pids{rank}" for rank in range(2)]
        while not all(path.exists() and path.read_text() for path in pids):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        code = process.wait(30)
    assert code in (128 + number, -number)
    assert all(gone(int(path.read_text())) for path in pids)


def test_what_is_ignored_is_ignored_still(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with leaving_in_order():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_disk_that_is_full_is_why_a_rank_said_nothing(tmp_path, monkeypatch):
    full = SimpleNamespace(total=1, used=1, free=0)
    monkeypatch.setattr("playhead.local_ranks.shutil.disk_usage", lambda _: full)
    with pytest.raises(WorkerError, match="it said nothing, as the disk of its log is full"):
        run(tmp_path, "import os; os._exit(1)", ranks=1)
