"""A worker that is told to end while it still sends a batch ends well."""

from __future__ import annotations

import time

import pytest
import torch

from playhead.loader.stream import Stream, Workers


class SlowToSend:
    """Takes its time in C++ while it is pickled, as moving a large tensor does."""

    def __reduce__(self):
        begin, square = time.monotonic(), torch.ones(300, 300)
        while time.monotonic() - begin < 0.7:
            square @ square
        return (int, ())


def quick_then_slow(number):
    return number if number < 2 else SlowToSend()


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_a_worker_that_is_still_sending_is_not_aborted(method):
    stream = Stream(quick_then_slow, Workers(num_workers=1, start_method=method))
    stream.seek(lambda: iter(range(8)))
    assert [stream.next(), stream.next()] == [0, 1]
    time.sleep(0.2)
    (worker,) = stream._batches._workers
    stream.close()
    worker.join(20)
    assert worker.exitcode == 0
