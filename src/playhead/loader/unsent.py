"""What becomes of a batch that a worker process cannot send."""

from __future__ import annotations

from multiprocessing.queues import Queue
from typing import TYPE_CHECKING, Any

from playhead.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["answer_for_unsent"]


def answer_for_unsent(answer: Callable[[WorkerError], Any]) -> None:
    """Let this worker send an answer in place of a batch that it cannot send.

    A queue pickles in a thread of its own. What fails there is printed, and whoever waits for the
    batch would wait for ever.

    Parameters
    ----------
    answer
        Makes what is sent instead, of what went wrong.
    """

    def answer_for(queue: Queue[Any], error: Exception, item: Any) -> None:
        if not isinstance(item, tuple):
            raise error
        number, _ = item  # pyright: ignore[reportUnknownVariableType]
        refused = WorkerError(
            f"a worker process cannot send its batch: {type(error).__name__}: {error}",
            fix="Let the dataset return what can be pickled. If files or shared memory ran out,"
            " raise `ulimit -n` or enlarge /dev/shm",
        )
        queue.put((number, answer(refused)))

    # Neither torch nor Python offers another way to hear of it.
    Queue._on_queue_feeder_error = answer_for  # pyright: ignore[reportAttributeAccessIssue]  # noqa: SLF001
