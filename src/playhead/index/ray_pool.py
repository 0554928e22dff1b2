"""Tasks on a Ray cluster instead of in processes of this machine."""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import socket
import time
from collections import deque
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from playhead.errors import BuildError, ConfigError, MissingExtraError, WorkerError
from playhead.index.pool import Outcome, attempt, outcome_of
from playhead.version import own_version

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from playhead.errors import PlayheadError

__all__ = ["TRIES", "RayCluster", "ray_cluster"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

TRIES: Final = 3
"""How often an item is tried whose worker or node is lost."""

_WAKE_SECONDS = 1.0
_LOOK_SECONDS = 5.0
_NO_CPU_SECONDS = 600.0
_TASKS_A_CPU = 2
_KNOCK_SECONDS = 20.0
# Of addresses that begin with ray://.
_CLIENT_PORT = 10001
# Results are files, or as small as a few thousand numbers.
_LOCAL: Final = {"include_dashboard": False, "object_store_memory": 256 << 20}


@contextmanager
def ray_cluster(address: str, tasks: int | None = None) -> Generator[RayCluster]:
    """Connect to a Ray cluster, whose nodes must see the same files under the same names.

    Parameters
    ----------
    address
        `auto`: the cluster that this machine belongs to; `local`: one of this machine alone, for
        as long as the block lasts; else where it is, such as `ray://head:10001`.
    tasks
        How many tasks there may be at a time; as the cluster has CPUs if None.

    Raises
    ------
    MissingExtraError
        If Ray is not installed.
    ConfigError
        If there is no such cluster.
    """
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError:
        raise MissingExtraError(
            "a cluster needs ray, which is not installed",
            where=f"--ray {address}",
            fix="Run `pip install 'playhead[ray]'`, on every node of it",
        ) from None
    is_here = ray.is_initialized()
    if not is_here:
        _connect(ray, address)
    try:
        yield RayCluster(ray, address, tasks)
    finally:
        if not is_here:
            ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    # It would tell its makers of its use.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    said = {name: value for name, value in os.environ.items() if name.startswith("PLAYHEAD_")}
    try:
        _knock(address)
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={"env_vars": said},
            **(_LOCAL if address == "local" else {}),
        )
    except (OSError, RuntimeError, ValueError, AssertionError) as error:
        raise ConfigError(
            f"there is no Ray cluster to be reached: {_first_line(error)}",
            where=f"--ray {address}",
            fix="Give the address that `ray status` or your cluster's owner says, auto on one of "
            "its nodes, or local",
        ) from error


def _knock(address: str) -> None:
    """See whether anybody is there: Ray would try for many minutes."""
    where = urlsplit(address if "://" in address else f"//{address}")
    if where.hostname is not None and (where.port is not None or where.scheme == "ray"):
        port = where.port or _CLIENT_PORT
        socket.create_connection((where.hostname, port), timeout=_KNOCK_SECONDS).close()


class RayCluster:
    """A cluster that does tasks; `Cluster`.

    Parameters
    ----------
    ray
        The library, connected.
    address
        What people call the cluster.
    tasks
        How many tasks there may be at a time; as the cluster has CPUs if None.
    """

    def __init__(self, ray: Any, address: str, tasks: int | None = None) -> None:
        self._ray = ray
        self._address = address
        self._tasks = tasks
        # What is lost is submitted again here, where it is counted and said.
        self._remote = ray.remote(max_retries=0)(_serve)
        self._cpus, self._looked_at = 0, float("-inf")

    def run_each(
        self,
        task: Callable[[_Item], _Result],
        items: Sequence[_Item],
        *,
        on_death: Callable[[_Item, str], None],
    ) -> Generator[Outcome[_Item, _Result]]:
        """Do one task for each item, on the cluster, and give the outcomes as they come.

        An item whose worker or node is lost is tried again behind the others, `TRIES` times in all.

        Parameters
        ----------
        task
            As in `pool.run_each`.
        items
            What to do it for; picklable.
        on_death
            Called with the item and what happened when it will be tried again.

        Yields
        ------
        Outcome
            One for each item.

        Raises
        ------
        BuildError
            If the cluster has no CPU for ten minutes.
        """
        if not items:
            return
        ray = self._ray
        work = ray.put(pickle.dumps(task))
        here = (own_version(), os.getcwd())  # noqa: PTH109  (it is compared as text)
        queue, tries = deque(range(len(items))), [0] * len(items)
        flying: dict[Any, int] = {}
        idle_since = time.monotonic()
        try:
            while queue or flying:
                room = self._room()
                while queue and len(flying) < room:
                    index = queue.popleft()
                    tries[index] += 1
                    flying[self._remote.remote(work, items[index], here)] = index
                ready, _ = ray.wait(list(flying), num_returns=1, timeout=_WAKE_SECONDS)
                if self._cpus:
                    idle_since = time.monotonic()
                elif time.monotonic() - idle_since > _NO_CPU_SECONDS:
                    raise BuildError(
                        f"the Ray cluster has had no CPU for {_NO_CPU_SECONDS:.0f} s",
                        where=f"--ray {self._address}",
                        fix="Start nodes, and run the command again",
                    )
                for ref in ready:
                    index = flying.pop(ref)
                    answer, cause = self._answer(ref)
                    if cause is None:
                        yield outcome_of(items[index], answer)
                    elif tries[index] < TRIES:
                        queue.append(index)
                        on_death(items[index], cause)
                    else:
                        yield Outcome(item=items[index], error=_lost(cause))
        finally:
            for ref in flying:
                with suppress(Exception):
                    ray.cancel(ref, force=True)

    def _room(self) -> int:
        """How many tasks there may be: a cluster may grow while it works."""
        now = time.monotonic()
        if now - self._looked_at > _LOOK_SECONDS:
            self._cpus = int(self._ray.cluster_resources().get("CPU", 0))
            self._looked_at = now
        return self._tasks or max(1, _TASKS_A_CPU * self._cpus)

    def _answer(self, ref: Any) -> tuple[Any, str | None]:
        """Return what a task gave, or why it was lost."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(ref), None
        except errors.RayTaskError as error:
            # It would fail everywhere, and every time.
            cause = getattr(error, "cause", error)
            return _broken(f"{type(cause).__name__}: {_first_line(cause)}"), None
        except errors.RayError as error:
            return None, f"its Ray worker was lost: {type(error).__name__}: {_first_line(error)}"


def _serve(work: bytes, item: Any, here: tuple[str, str]) -> Any:
    """Do one item of a task, on a node."""
    expected, folder = here
    found = own_version()
    if found != expected:
        return _broken(f"it has Playhead {found}, and {expected} is asked for")
    with suppress(OSError):
        os.chdir(folder)
    return attempt(_loaded(work), item)


@lru_cache(maxsize=4)
def _loaded(work: bytes) -> Callable[[Any], Any]:
    """Load a task once for all items that a worker does."""
    return pickle.loads(work)  # noqa: S301  (this program wrote it)


def _broken(why: str) -> PlayheadError:
    return WorkerError(
        f"a Ray node failed: {why}",
        where=socket.gethostname(),
        fix="Install the same Playhead and your own modules on every node",
    )


def _lost(cause: str) -> PlayheadError:
    return WorkerError(
        f"{cause}, {TRIES} times", fix="Give tasks more memory, or fewer at a time (`--workers`)"
    )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".:") if lines else "no reason given"
