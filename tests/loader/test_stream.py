"""One DataLoader, many seeks: order, errors, dead workers, and nobody else's random numbers."""

from __future__ import annotations

import errno
import os
import random
import signal
import time

import numpy as np
import pytest
import torch

from playhead.errors import AudioError, WorkerError
from playhead.loader.stream import Stream, Workers
from playhead.storage.retries import GaveUpError


def double(number):
    return number * 2


def slow_double(number):
    time.sleep(0.02)
    return number * 2


def fail_on_three(number):
    if number == 3:
        raise AudioError("the audio cannot be decoded", where="leaf a, row 3", fix="Look at it")
    return number


def user_bug_on_three(number):
    if number == 3:
        raise KeyError("three")
    return number


def die_on_three(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def take(stream, count):
    return [stream.next() for _ in range(count)]


@pytest.mark.parametrize("num_workers", [0, 1, 3])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_batches_come_in_order_and_end(num_workers, method):
    if num_workers == 0 and method == "spawn":
        pytest.skip("no process is started")
    stream = Stream(double, Workers(num_workers=num_workers, start_method=method))
    stream.seek(lambda: iter(range(10)))
    assert take(stream, 10) == [2 * n for n in range(10)]
    for _ in range(2):
        with pytest.raises(StopIteration):
            stream.next()
    stream.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_seek_throws_away_what_is_in_flight_and_keeps_the_workers(num_workers):
    stream = Stream(slow_double, Workers(num_workers=num_workers, prefetch_factor=4))
    stream.seek(lambda: iter(range(100)))
    assert take(stream, 3) == [0, 2, 4]
    inner = stream._loader
    stream.seek(lambda: iter(range(1000, 1005)))
    assert take(stream, 5) == [2000, 2002, 2004, 2006, 2008]
    assert stream._loader is inner
    stream.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_our_errors_arrive_as_they_were_raised(num_workers):
    stream = Stream(fail_on_three, Workers(num_workers=num_workers))
    stream.seek(lambda: iter(range(10)))
    assert take(stream, 3) == [0, 1, 2]
    with pytest.raises(AudioError) as caught:
        stream.next()
    assert str(caught.value) == ("The audio cannot be decoded (leaf a, row 3). Look at it.")
    stream.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_errors_of_the_users_dataset_keep_their_type(num_workers):
    stream = Stream(user_bug_on_three, Workers(num_workers=num_workers))
    stream.seek(lambda: iter(range(10)))
    take(stream, 3)
    with pytest.raises(KeyError, match="three"):
        stream.next()
    stream.close()


def test_a_killed_worker_is_an_error_with_advice_and_a_seek_starts_new_ones():
    stream = Stream(die_on_three, Workers(num_workers=2))
    stream.seek(lambda: iter(range(10)))
    with pytest.raises(WorkerError, match="fewer workers"):
        take(stream, 10)
    stream.seek(lambda: iter(range(5, 8)))
    assert take(stream, 3) == [5, 6, 7]
    stream.close()


def test_a_seek_after_the_death_of_a_worker_says_so_and_the_next_one_goes_on():
    stream = Stream(double, Workers(num_workers=1))
    stream.seek(lambda: iter(range(10)))
    take(stream, 1)
    (worker,) = stream._batches._workers
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="killed by signal"):
        # torch raises it wherever the training process is.
        time.sleep(20)
    with pytest.raises(WorkerError, match=r"A worker process died: .* goes on from the same batch"):
        stream.seek(lambda: iter(range(5, 8)))
    stream.seek(lambda: iter(range(5, 8)))
    assert take(stream, 3) == [10, 12, 14]
    stream.close()


def generator_on_three(number):
    return (n for n in range(3)) if number == 3 else number


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_batch_that_a_worker_cannot_send_is_an_error_and_no_endless_wait(method):
    stream = Stream(generator_on_three, Workers(num_workers=1, start_method=method))
    stream.seek(lambda: iter(range(5)))
    assert take(stream, 3) == [0, 1, 2]
    with pytest.raises(WorkerError, match=r"cannot send its batch: TypeError: .*generator"):
        stream.next()
    assert stream.next() == 4
    stream.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_no_random_number_of_the_main_process_is_drawn(num_workers):
    torch.manual_seed(1)
    before = (torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())
    stream = Stream(double, Workers(num_workers=num_workers))
    stream.seek(lambda: iter(range(4)))
    take(stream, 4)
    stream.seek(lambda: iter(range(4)))
    take(stream, 4)
    stream.close()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    assert random.getstate() == before[2]


def runs_out(number):
    return next(iter([])) if number == 3 else number


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_dataset_that_raises_stop_iteration_does_not_end_the_data(num_workers):
    """A bare `next` in a dataset would end the pass without a word."""
    stream = Stream(runs_out, Workers(num_workers=num_workers))
    stream.seek(lambda: iter(range(10)))
    assert take(stream, 3) == [0, 1, 2]
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        stream.next()
    stream.close()


def disk_fails_on_three(number):
    if number == 3:
        raise GaveUpError(errno.EIO, "Input/output error (tried 5 times)", "/data/a.wav")
    return number


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_disk_that_failed_is_said_as_it_was(num_workers):
    """Out of a worker, too, with the number of the error and without a remote traceback."""
    stream = Stream(disk_fails_on_three, Workers(num_workers=num_workers))
    stream.seek(lambda: iter(range(10)))
    assert take(stream, 3) == [0, 1, 2]
    with pytest.raises(GaveUpError) as caught:
        stream.next()
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, "/data/a.wav")
    assert str(caught.value) == "[Errno 5] Input/output error (tried 5 times): '/data/a.wav'"
    stream.close()


def test_a_batch_out_of_turn_is_made_here_and_moves_nothing():
    stream = Stream(fail_on_three, Workers(num_workers=1))
    stream.seek(lambda: iter(range(10)))
    assert take(stream, 2) == [0, 1]
    assert stream.make_here(7) == 7
    with pytest.raises(AudioError, match="row 3"):
        stream.make_here(3)
    assert take(stream, 1) == [2]
    stream.close()
