"""What every node says, gathered on all of them within a deadline."""

from __future__ import annotations

import json
import re
import secrets
import socket
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from playhead.errors import ConfigError, PlayheadError
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Mapping

__all__ = ["Alone", "Exchange", "Node", "find_exchange", "find_node"]

DEADLINE_SECONDS = 120.0
"""How long one waits for another node."""

_PAUSE_SECONDS = 0.1


class Node(NamedTuple):
    """Where this process is."""

    host: str
    """Name of the machine."""
    number: int
    """Number of the node in the job."""
    nodes: int
    """How many nodes the job has."""
    speaks: bool
    """Whether this process looks and speaks for its node: the first one there."""
    run: str
    """What tells this run of the job from others."""


class Exchange(Protocol):
    """Gathers what the nodes say."""

    def gather(self, about: str, said: Any) -> dict[str, Any]:
        """Return what each node said, by its name; None of one that said nothing in time.

        Parameters
        ----------
        about
            What it is about; each node asks for the same things in the same order.
        said
            What this node says, JSON types; None of processes that do not speak.
        """
        ...


def find_node(environment: Mapping[str, str]) -> Node:
    """Say where this process is, by what torchrun or srun has set.

    Parameters
    ----------
    environment
        The environment variables.

    Examples
    --------
    >>> find_node({"SLURM_NODEID": "1", "SLURM_NNODES": "2", "SLURM_LOCALID": "0",
    ...            "SLURMD_NODENAME": "b"})[:4]
    ('b', 1, 2, True)
    """
    host = environment.get("SLURMD_NODENAME") or socket.gethostname()
    run = "-".join(
        environment[name]
        for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "TORCHELASTIC_RUN_ID", "MASTER_PORT")
        if environment.get(name)
    )
    run = re.sub(r"[^\w.-]", "_", run) or "run"
    if "LOCAL_RANK" in environment:
        local = _number(environment, "LOCAL_RANK")
        per_node = max(1, _number(environment, "LOCAL_WORLD_SIZE", 1))
        count = max(1, _number(environment, "WORLD_SIZE", 1) // per_node)
        number = _number(environment, "GROUP_RANK", _number(environment, "RANK") // per_node)
        return Node(host, number, count, local == 0, run)
    local = _number(environment, "SLURM_LOCALID")
    count = _number(environment, "SLURM_STEP_NUM_NODES", _number(environment, "SLURM_NNODES", 1))
    return Node(host, _number(environment, "SLURM_NODEID"), max(1, count), local == 0, run)


def _number(environment: Mapping[str, str], name: str, default: int = 0) -> int:
    text = environment.get(name)
    try:
        return default if text is None else int(text)
    except ValueError:
        raise ConfigError(
            f"{name} is {text!r}, which is no whole number",
            where="environment",
            fix="Unset it, or start with torchrun or srun",
        ) from None


class Alone:
    """The exchange of a node that is alone.

    Parameters
    ----------
    node
        The node.
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def gather(self, about: str, said: Any) -> dict[str, Any]:  # noqa: ARG002
        """See `Exchange.gather`."""
        return {self._node.host: said}


class _Folder:
    """An exchange by files in a folder that all nodes see, one a node.

    A file tells whose files its node has read, each by a number that is drawn at the start: one
    that has not read mine is of an older run.
    """

    def __init__(self, folder: str, node: Node, deadline_seconds: float) -> None:
        self._folder = Path(folder) / f"playhead-check-{node.run}"
        self._node = node
        self._seconds = deadline_seconds
        self._own = secrets.token_hex(8)
        self._seen: dict[str, str] = {}
        self._said: dict[str, Any] = {}
        self._read: dict[int, tuple[os.stat_result, Any]] = {}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write()
        except OSError as error:
            raise ConfigError(
                f"the folder cannot be used: {error.strerror}",
                where=f"--exchange {folder}",
                fix="Give a folder that all nodes share and may write to",
            ) from None

    def gather(self, about: str, said: Any) -> dict[str, Any]:
        """See `Exchange.gather`."""
        self._said[about] = said
        self._write()
        mine = str(self._node.number)
        heard: dict[int, Any] = {self._node.number: [self._node.host, said]}
        end = time.monotonic() + self._seconds
        while True:
            for number in range(self._node.nodes):
                told = None if number in heard else self._look(number)
                if told is None:
                    continue
                if self._seen.get(str(number)) != told["own"]:
                    self._seen[str(number)] = told["own"]
                    self._write()
                if told["seen"].get(mine) == self._own and about in told["said"]:
                    heard[number] = [told["host"], told["said"][about]]
            if len(heard) == self._node.nodes or time.monotonic() > end:
                return _by_host([heard.get(number) for number in range(self._node.nodes)])
            time.sleep(_PAUSE_SECONDS)

    def _write(self) -> None:
        told = {"host": self._node.host, "own": self._own, "seen": self._seen, "said": self._said}
        with atomic_write(self._path(self._node.number)) as file:
            file.write(json.dumps(told).encode())

    def _look(self, number: int) -> Any:
        """What a node tells by now; None if it tells nothing yet."""
        try:
            now = self._path(number).stat()
            before = self._read.get(number)
            if before is None or (before[0].st_ino, before[0].st_mtime_ns) != (
                now.st_ino,
                now.st_mtime_ns,
            ):
                self._read[number] = now, json.loads(self._path(number).read_bytes())
        except OSError:
            return None
        return self._read[number][1]

    def _path(self, number: int) -> Path:
        return self._folder / f"node-{number}.json"


class _Group:
    """An exchange by torch.distributed."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def gather(self, about: str, said: Any) -> dict[str, Any]:  # noqa: ARG002
        """See `Exchange.gather`."""
        import torch.distributed as dist  # noqa: PLC0415  (heavy)

        mine = [self._node.host, said] if self._node.speaks else None
        everyone: list[Any] = [None] * dist.get_world_size()
        try:
            dist.all_gather_object(everyone, mine)
        except (RuntimeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise PlayheadError(
                f"a node was lost while all were compared: {reason}", where=self._node.host
            ) from None
        return _by_host([one for one in everyone if one is not None])


def _by_host(said: list[Any]) -> dict[str, Any]:
    """What nodes said by their names, which are made different where they are not."""
    found: dict[str, Any] = {}
    for number, one in enumerate(said):
        host, what = one if one is not None else (f"node {number}", None)
        found[host if host not in found else f"{host} (node {number})"] = what
    return found


@contextmanager
def find_exchange(
    node: Node,
    folder: str | None,
    environment: Mapping[str, str],
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Generator[Exchange | None]:
    """Open the way in which nodes hear of each other; None where there are several and no way.

    Parameters
    ----------
    node
        This one.
    folder
        A folder that all see; torch.distributed where torchrun has started this if None.
    environment
        The environment variables.
    deadline_seconds
        How long one waits for another node.

    Raises
    ------
    ConfigError
        If the folder cannot be used.
    PlayheadError
        If not all processes come in time.
    """
    if node.nodes == 1:
        yield Alone(node)
    elif folder is not None:
        yield _Folder(folder, node, deadline_seconds)
    elif all(environment.get(name) for name in ("MASTER_ADDR", "MASTER_PORT", "RANK")):
        import torch.distributed as dist  # noqa: PLC0415  (heavy)

        try:
            dist.init_process_group("gloo", timeout=timedelta(seconds=deadline_seconds))
        except (RuntimeError, ValueError, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise PlayheadError(
                f"the processes of this job did not find each other: {reason}",
                where=f"node {node.number}, {node.host}",
                fix="Look at the nodes that did not come, or give --exchange DIR, a folder that all"
                " share",
            ) from None
        try:
            yield _Group(node)
        finally:
            dist.destroy_process_group()
    else:
        yield None
