"""A stand-in for Ray: tasks are done in this process, and some of them are lost on the way."""

from __future__ import annotations

import pickle
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class RayError(Exception):
    """Something is lost."""


class WorkerCrashedError(RayError):
    """A worker died."""


class RayTaskError(RayError):
    """A task raised."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"\x1b[36mray::task\x1b[39m\n{cause}")
        self.cause = cause


class FakeRay(ModuleType):
    """The part of Ray's interface that Playhead uses.

    Parameters
    ----------
    cpus
        What the cluster has.
    lose
        Says of an item and the number of its try, from 1, whether its worker dies.

    Attributes
    ----------
    most
        The most tasks that were submitted and not fetched at a time.
    """

    def __init__(self, cpus: int = 2, lose: Callable[[Any, int], bool] | None = None) -> None:
        super().__init__("ray")
        self.cpus, self.lose = cpus, lose or (lambda _item, _number: False)
        self.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
        self.started: list[dict[str, Any]] = []
        self.stopped = self.most = self.waits = 0
        self.submitted: list[Any] = []
        self.cancelled: list[Any] = []
        self.refuses: Exception | None = None
        self._results: dict[int, tuple[Any, Exception | None]] = {}
        self._pending: set[int] = set()

    def is_initialized(self) -> bool:
        return len(self.started) > self.stopped

    def init(self, **options: Any) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.started.append(options)

    def shutdown(self) -> None:
        self.stopped += 1

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.cpus)} if self.cpus else {}

    def put(self, value: Any) -> Any:
        assert isinstance(value, bytes)
        return value

    def remote(self, *, max_retries: int) -> Callable[[Any], Any]:
        assert max_retries == 0
        return lambda function: SimpleNamespace(
            remote=lambda *arguments: self._submit(function, arguments)
        )

    def _submit(self, function: Any, arguments: tuple[Any, ...]) -> int:
        item = arguments[1]
        self.submitted.append(item)
        error: Exception | None = None
        answer: Any = None
        if self.lose(item, self.submitted.count(item)):
            error = WorkerCrashedError("The worker died unexpectedly.\nMore of it")
        else:
            try:
                answer = _travelled(function(*_travelled(arguments)))
            except Exception as cause:  # noqa: BLE001 - as Ray does
                error = RayTaskError(cause)
        ref = len(self.submitted)
        self._results[ref] = (answer, error)
        self._pending.add(ref)
        self.most = max(self.most, len(self._pending))
        return ref

    def wait(self, refs: list[int], *, num_returns: int, timeout: float) -> tuple[list, list]:
        assert refs
        assert num_returns == 1
        assert timeout > 0
        self.waits += 1
        if not self.cpus:
            return [], refs
        # The youngest is done first.
        return refs[-1:], refs[:-1]

    def get(self, ref: int) -> Any:
        self._pending.remove(ref)
        answer, error = self._results.pop(ref)
        if error is not None:
            raise error
        return answer

    def cancel(self, ref: int, *, force: bool) -> None:
        assert force
        self.cancelled.append(ref)


def _travelled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))
