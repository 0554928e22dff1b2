"""How a worker process comes to its end."""

from __future__ import annotations

import threading
from multiprocessing.context import SpawnProcess
from multiprocessing.process import current_process
from multiprocessing.util import Finalize

__all__ = ["end_in_order"]

_LONGEST_WAIT = 2.0
_AFTER_QUEUES_CLOSE = -10  # Finalizers run from high to low; queues close at 10.


def end_in_order(worker: int) -> None:
    """Let a worker outlive its own thread that sends batches.

    That thread may still be inside torch, moving a tensor to shared memory, when nobody wants the
    batch any more and the interpreter of a spawned worker is taken down. A thread that comes back
    from C++ then aborts the whole process, which the training process reports as a dead worker.
    Forked workers leave without taking anything down.

    Parameters
    ----------
    worker
        Number of the worker; a `worker_init_fn` of torch is given it.
    """
    del worker
    if isinstance(current_process(), SpawnProcess):
        Finalize(None, _join_senders, exitpriority=_AFTER_QUEUES_CLOSE)


def _join_senders() -> None:
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            # It may wait for ever to write to a reader that is gone, which harms nobody.
            thread.join(_LONGEST_WAIT)
