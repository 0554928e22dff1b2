"""Probes in real processes, of a model that does what it is told."""

from __future__ import annotations

import os
import signal
import threading
import time
from itertools import chain
from pathlib import Path

import pytest
import torch

from playhead.errors import ConfigError, FitError, PlayheadError
from playhead.fit.bucket import Bucket
from playhead.fit.live_tensors import LiveTensors
from playhead.fit.model import ModelSource
from playhead.fit.models import open_model
from playhead.fit.probing.messages import Answer, Ended
from playhead.fit.probing.orphans import children
from playhead.fit.probing.output import HEAD_BYTES, TAIL_BYTES
from playhead.fit.probing.process_prober import ProcessProber
from playhead.fit.steps import prepare, train_step
from playhead.fit.training import Training
from support.processes import gone
from support.small_models import MIB, OPTIONS, small

TRAINING = Training(dtype="float32")


def peak_here(size, length):
    """What the tensors of the steps of a probe hold in this process."""
    model = open_model(small("Small"), "cpu", TRAINING)
    with LiveTensors() as tensors:
        tensors.watch(chain(model.module.parameters(), model.module.buffers()))
        prepared = prepare(model, TRAINING)
        bucket = Bucket(bound=length, input_length=length, output_length=length)
        for _ in range(3):
            train_step(prepared, bucket, size)
    return tensors.peak


def test_a_batch_that_fits_is_measured_as_it_would_be_here(prober):
    record = prober.probe(1, 50)
    assert record.status == "ok"
    assert record.allocated == record.reserved == peak_here(50, 100)
    assert (record.bucket, record.batch_size, record.budget) == (1, 50, 10 * MIB)
    assert record.seconds > 0
    assert record.reason is None


def test_a_batch_that_does_not_fit_runs_out_and_spoils_nothing(prober):
    before = prober.probe(1, 40)
    record = prober.probe(1, 1000)
    assert record.status == "oom"
    assert record.allocated is None
    assert record.reserved is None
    assert "may hold 10485760" in record.reason
    after = prober.probe(1, 40)
    assert (after.status, after.allocated) == (before.status, before.allocated)


def test_the_budget_is_the_border_to_the_byte(prober):
    slope = peak_here(51, 100) - peak_here(50, 100)
    size = 50 + (prober.budget - peak_here(50, 100)) // slope
    assert peak_here(size, 100) <= prober.budget < peak_here(size + 1, 100)
    assert [prober.probe(1, size).status, prober.probe(1, size + 1).status] == ["ok", "oom"]


def test_text_of_cublas_counts_as_memory(prober, tell):
    tell("run_out_of_cublas", 8)
    assert prober.probe(0, 8).status == "oom"
    assert prober.probe(0, 7).status == "ok"


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("abort", "it was killed by SIGABRT: the last thing that it says; tests"),
        ("segfault", "it was killed by SIGSEGV: tests"),
        ("kill_itself", "it was killed by SIGKILL"),
        ("leave", "it ended with exit code 3 without an answer"),
    ],
)
def test_a_crash_is_lost_and_says_how_and_where(prober, tell, folder, act, said):
    tell(act)
    record = prober.probe(0, 1)
    assert record.status == "lost"
    assert record.reason.replace(f"{Path.cwd()}/", "").startswith(said)
    assert f"{act} (" in f"{record.reason} (" or act in {"kill_itself", "leave"}
    assert str(folder / "probes.log") in record.reason
    tell("talk", 1000)
    assert prober.probe(0, 1).status == "ok"


def test_an_abort_for_want_of_memory_ran_out_of_it(prober, tell):
    tell("abort_for_memory")
    record = prober.probe(0, 1)
    assert record.status == "oom"
    assert "std::bad_alloc" in record.reason


def test_a_hang_is_killed_and_lost_with_all_that_it_started(impatient, tell, folder):
    tell("hang_with_children")
    record = impatient.probe(0, 1)
    assert record.status == "lost"
    assert "nothing happened for 8 s" in record.reason
    started = [int(line) for line in (folder / "children").read_text().split()]
    assert len(started) == 2
    assert all(gone(pid, 0) for pid in started)
    assert gone(int((folder / "hanging").read_text()), 0)


def test_what_a_probe_leaves_behind_ends_with_it(prober, tell, folder):
    tell("start_children")
    assert prober.probe(0, 1).status == "ok"
    started = [int(line) for line in (folder / "children").read_text().split()]
    assert len(started) == 6
    assert all(gone(pid, 0) for pid in started)
    assert not children(prober._server.pid)


def test_garbage_and_floods_are_logged_in_part_and_harm_nothing(prober, tell, folder):
    log = folder / "probes.log"
    before = log.stat().st_size
    tell("talk")
    assert prober.probe(0, 3).status == "ok"
    added = log.read_bytes()[before:]
    assert added.startswith(b"--- bucket 10, batches of 3\n\x00\xff")
    assert len(added) < HEAD_BYTES + TAIL_BYTES + 200
    assert b" bytes left out\n" in added


def test_code_that_fails_on_a_batch_of_one_ends_the_search_and_names_the_line(prober, tell, folder):
    tell("fail")
    with pytest.raises(FitError) as raised:
        prober.probe(1, 8)
    said = str(raised.value)
    assert "batch of one of bucket 100: IndexError: index out of range in self" in said
    assert "small_models.py:" in said
    assert " in fail)" in said
    assert str(folder / "probes.log") in said
    assert b"Traceback" in (folder / "probes.log").read_bytes()


def test_code_that_fails_on_large_batches_alone_is_avoided_and_not_called_memory(prober, tell):
    tell("fail", 5)
    record = prober.probe(1, 8)
    assert record.status == "lost"
    assert record.reason.startswith("a batch of one passes, this one does not: IndexError")
    assert prober.probe(1, 4).status == "ok"


def test_a_doubtful_failure_of_large_batches_alone_is_want_of_memory(prober, tell):
    tell("find_no_engine", 5)
    record = prober.probe(1, 8)
    assert record.status == "oom"
    assert "unable to find an engine" in record.reason


def test_a_doubtful_failure_of_a_batch_of_one_is_none_while_there_is_room(prober, tell):
    tell("find_no_engine")
    with pytest.raises(FitError, match="unable to find an engine"):
        prober.probe(1, 8)


def test_a_doubtful_failure_of_a_batch_of_one_is_one_with_most_memory_taken(
    prober, tell, monkeypatch
):
    tell("find_no_engine")
    # Of which the weights and a batch take more than half.
    monkeypatch.setattr(prober, "_budget", 110_000)
    assert prober.probe(1, 1).status == "oom"


def test_a_mix_measures_each_bucket(prober):
    record = prober.mix([50, 40], 7, seed=3)
    assert record.status == "ok"
    assert (record.done, record.steps, record.sizes) == (7, 7, (50, 40))
    assert record.failed is None
    # The optimizer holds what it holds in every one of them.
    assert record.allocated == (peak_here(50, 10), peak_here(40, 100))
    assert record.reserved == max(record.allocated)
    assert record.budget == prober.budget


def test_a_mix_names_the_bucket_that_ran_out(prober):
    record = prober.mix([2, 1000], 5, seed=3)
    assert record.status == "oom"
    assert (record.failed, record.done) == (1, 0)
    assert "may hold" in record.reason


def test_a_bucket_of_size_zero_is_left_out_of_a_mix(prober):
    record = prober.mix([0, 4], 3, seed=3)
    assert record.status == "ok"
    assert record.allocated == (0, peak_here(4, 100))
    assert prober.mix([0, 0], 3, seed=3).status == "ok"


def test_a_mix_that_crashes_names_the_bucket_too(prober, tell):
    tell("abort", 4)
    record = prober.mix([2, 4], 6, seed=3)
    assert record.status == "lost"
    assert (record.failed, record.done, record.allocated) == (1, 0, None)


def test_a_mix_that_never_began_names_no_bucket(prober, monkeypatch):
    busy = Ended(
        answer=Answer(status="busy", reason="another process has come"),
        done=0,
        signal=None,
        code=0,
        is_late=False,
        host_kills=None,
        last_words="",
        spoke_of_memory=False,
    )
    monkeypatch.setattr(prober._server, "do", lambda _: busy)
    record = prober.mix([2, 4], 6, seed=3)
    assert (record.status, record.reason) == ("lost", "another process has come")
    assert record.failed is None


@pytest.mark.slow
def test_the_server_is_started_again_when_it_has_died_between_probes(prober):
    os.kill(prober._server.pid, signal.SIGKILL)
    record = prober.probe(0, 1)
    assert record.status == "lost"
    assert "the process that has the model was killed (SIGKILL) during a probe" in record.reason
    assert prober.probe(0, 1).status == "ok"


def hang_and_kill(prober, folder, victim):
    """Begin a probe that hangs, kill the one or the other, and return what came of it."""

    def kill():
        deadline = time.monotonic() + 50
        while not (folder / "hanging").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        pids["probe"] = next(iter(children(pids["server"])))
        os.kill(pids[victim], signal.SIGKILL)

    pids = {"server": prober._server.pid}
    killer = threading.Thread(target=kill)
    killer.start()
    record = prober.probe(0, 1)
    killer.join()
    return record, pids


def test_a_probe_dies_with_its_server(prober, tell, folder):
    tell("hang_with_children")
    record, pids = hang_and_kill(prober, folder, "server")
    assert record.status == "lost"
    assert gone(pids["server"])
    assert gone(pids["probe"])
    in_its_group, _ = (int(line) for line in (folder / "children").read_text().split())
    assert gone(in_its_group)
    tell("talk", 1000)
    assert prober.probe(0, 1).status == "ok"


def test_a_probe_that_somebody_kills_is_lost_and_the_server_lives(prober, tell, folder):
    tell("hang")
    record, pids = hang_and_kill(prober, folder, "probe")
    assert record.status == "lost"
    assert "killed by SIGKILL" in record.reason
    assert prober._server.pid == pids["server"]
    assert not children(pids["server"])


def test_nothing_is_predicted_without_a_predictor_and_else_what_it_says_is_kept(
    prober, monkeypatch
):
    assert prober.predict(1, 4) is None

    class Predictor:
        asked = 0

        def predict(self, bucket, batch_size):
            self.asked += 1
            return bucket.input_length * batch_size

    predictor = Predictor()
    monkeypatch.setattr(prober, "_predictor", predictor)
    assert [prober.predict(1, 4), prober.predict(1, 4)] == [400, 400]
    assert predictor.asked == 1
    assert prober.probe(1, 4).predicted == 400
    # Whatever fits is compared, asked for by the search or not.
    assert prober.probe(1, 5).predicted == 500
    assert predictor.asked == 2


def test_what_peaks_depend_on_is_told(prober):
    identity = prober.identity()
    assert identity["memory"] == 20 * MIB
    assert identity["dtype"] == "float32"
    assert identity["torch"] == torch.__version__
    assert identity["device"]
    assert prober.notes == ()
    assert prober.buckets[1] == Bucket(bound=100, input_length=100, output_length=1200)


def opened(name, folder, training=TRAINING):
    return ProcessProber(small(name), [10], training, OPTIONS, log=folder / "probes.log")


@pytest.mark.slow
def test_a_model_with_threads_is_opened_in_each_probe_and_that_is_said(tmp_path):
    with opened("Threaded", tmp_path) as prober:
        (note,) = prober.notes
        assert "opens the model anew" in note
        assert "threads (the-thread)" in note
        assert prober.probe(0, 2).status == "ok"
        assert prober.mix([2], 3, 1).status == "ok"


@pytest.mark.slow
def test_a_model_that_dies_in_forks_is_opened_in_each_probe_once_that_is_seen(tmp_path):
    with opened("UnfitForForks", tmp_path) as prober:
        assert prober.notes == ()
        assert prober.probe(0, 2).status == "ok"
        assert "killed by SIGABRT" in prober.notes[0]


@pytest.mark.slow
def test_a_model_that_cannot_be_made_is_told_with_its_line(tmp_path):
    with pytest.raises(ConfigError, match=r"ZeroDivisionError: no layers \(.*small_models\.py:\d+"):
        opened("CannotBeMade", tmp_path)


@pytest.mark.slow
def test_a_model_that_kills_the_process_that_opens_it_is_told_with_the_log(tmp_path):
    with pytest.raises(FitError, match=r"SIGABRT\) while it opened the model \(.*probes\.log\)"):
        opened("DiesAsItIsMade", tmp_path)


@pytest.mark.slow
def test_bad_input_is_refused_as_the_opening_refuses_it(tmp_path):
    with pytest.raises(ConfigError, match="no_such_module"):
        ProcessProber(
            ModelSource(kind="code", name="no_such_module:Model"),
            [10],
            TRAINING,
            OPTIONS,
            log=tmp_path / "log",
        )


@pytest.mark.slow
def test_a_server_that_dies_again_and_again_ends_the_search(tmp_path):
    with opened("Small", tmp_path) as prober:
        assert prober.probe(0, 1).status == "ok"
        for _ in range(2):
            prober._server = prober._server or None
            if prober._server is None:
                prober._start()
            os.kill(prober._server.pid, signal.SIGKILL)
            assert prober.probe(0, 1).status == "lost"
        prober._start()
        os.kill(prober._server.pid, signal.SIGKILL)
        with pytest.raises(FitError, match="3rd time in a row"):
            prober.probe(0, 1)


@pytest.mark.slow
def test_a_model_whose_import_begins_a_search_is_refused(tmp_path, monkeypatch):
    (tmp_path / "beginning.py").write_text(
        "from pathlib import Path\n"
        "from playhead.fit.probing.process_prober import ProcessProber\n"
        "from playhead.fit.training import Training\n"
        "from support.small_models import OPTIONS, Small, small\n"
        f"log = Path({str(tmp_path)!r}, 'inner')\n"
        "ProcessProber(small('Small'), [10], Training(), OPTIONS, log=log)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    source = ModelSource(kind="code", name="beginning:Small")
    with pytest.raises(PlayheadError, match=r"whenever the model is imported.*__main__"):
        ProcessProber(source, [10], TRAINING, OPTIONS, log=tmp_path / "log")
