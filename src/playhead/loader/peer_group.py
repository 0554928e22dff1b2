"""What the first of several peers says, heard by all of them."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from playhead.errors import WorkerError
from playhead.loader.parcel import as_bytes, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Generator
    from datetime import timedelta

    from torch.distributed import ProcessGroup

    from playhead.loader.parcel import Parcel
    from playhead.loader.peers import Peers

__all__ = ["PeerGroup", "open_peer_group"]

# By process group of the whole job and peers: a job that makes loader after loader has them once.
_opened: weakref.WeakKeyDictionary[ProcessGroup, dict[Peers, PeerGroup | None]] = (
    weakref.WeakKeyDictionary()
)


class PeerGroup:
    """A process group of peers, the first of which sends values to all others.

    Parameters
    ----------
    group
        The process group.
    ranks
        The global ranks in it.
    deadline
        How long one of them waits for another.
    """

    def __init__(self, group: ProcessGroup, ranks: tuple[int, ...], deadline: timedelta) -> None:
        self._group = group
        self._ranks = ranks
        self._deadline = deadline
        self._lock = threading.Lock()
        self._left_inside = False

    @property
    def first(self) -> int:
        """Global rank of the one that sends."""
        return self._ranks[0]

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that sends."""
        return dist.get_rank() == self.first

    def send(self, value: Any) -> None:
        """Send a value to all others, and wait until they have it.

        Tensors and arrays are not pickled; CPU tensors go over gloo, those on GPUs over NCCL.

        Raises
        ------
        WorkerError
            When one of the others is gone, or does not take it before the deadline; or when the
            value before was sent in part.
        Exception
            Whatever pickling the rest raises; then nothing was sent.
        """
        self._send(pack(value))

    def receive(self) -> Any:
        """Wait for the next value of the first.

        Raises
        ------
        WorkerError
            When it is gone, or sends nothing before the deadline; or when the value before was
            taken in part.
        Exception
            Whatever unpickling raises.
        """
        size = torch.empty(1, dtype=torch.int64)
        with self._whole():
            with self._named_failures():
                self._broadcast([size])
                skeleton = torch.empty(int(size), dtype=torch.uint8)
                self._broadcast([skeleton])
            unpacked = unpack(skeleton.numpy().tobytes())
            with self._named_failures():
                self._broadcast([as_bytes(content) for content in unpacked.contents])
        return unpacked.value()

    def _send(self, parcel: Parcel) -> None:
        skeleton = torch.frombuffer(bytearray(parcel.skeleton), dtype=torch.uint8)
        with self._whole(), self._named_failures():
            self._broadcast([torch.tensor([len(skeleton)])])
            self._broadcast([skeleton])
            self._broadcast([as_bytes(content) for content in parcel.contents])

    def _broadcast(self, tensors: list[torch.Tensor]) -> None:
        begun = [
            dist.broadcast(tensor, src=self.first, group=self._group, async_op=True)
            for tensor in tensors
            if tensor.numel()
        ]
        for work in begun:
            if work is not None:
                work.wait()

    @contextmanager
    def _whole(self) -> Generator[None]:
        """One value at a time, from its begin to its end: what follows a part of one is garbage."""
        with self._lock:
            if self._left_inside:
                named = ", ".join(map(str, self._ranks))
                raise WorkerError(
                    f"ranks {named} cannot share batches any more: one of them was interrupted"
                    " inside of one, or did not get it",
                    fix="End all of them, and resume from the last state",
                )
            self._left_inside = True
            yield
            self._left_inside = False

    @contextmanager
    def _named_failures(self) -> Generator[None]:
        try:
            yield
        except RuntimeError as error:
            others = ", ".join(str(rank) for rank in self._ranks if rank != dist.get_rank())
            said = str(error).partition("\n")[0]
            raise WorkerError(
                f"rank {self.first} could not send a batch to ranks {others}: {said}"
                if self.is_first
                else f"no batch came from rank {self.first}, which reads for rank"
                f" {dist.get_rank()}: {said}",
                fix="Look at what the other ranks said last. They wait for each other for"
                f" {self._deadline.total_seconds():.0f} s, the timeout of init_process_group",
            ) from error


def open_peer_group(peers: Peers) -> PeerGroup | None:
    """Make the process groups of all peers; every process of the job calls this.

    Parameters
    ----------
    peers
        Who shares what.

    Returns
    -------
    PeerGroup | None
        That of this process; None where it has no peers.
    """
    world = dist.group.WORLD
    assert world is not None, "there are no peers without a process group"
    known = _opened.setdefault(world, {})
    if peers not in known:
        known[peers] = _open(peers, _deadline_of(world))
    return known[peers]


def _open(peers: Peers, deadline: timedelta) -> PeerGroup | None:
    # Batches come out of workers in CPU memory, which NCCL does not send.
    backend = "cpu:gloo,cuda:nccl" if "nccl" in dist.get_backend_config() else "gloo"
    mine: PeerGroup | None = None
    for ranks in peers:
        if len(ranks) > 1:
            group = dist.new_group(list(ranks), backend=backend, timeout=deadline)
            if isinstance(group, dist.ProcessGroup):
                mine = PeerGroup(group, ranks, deadline)
    return mine


def _deadline_of(world: ProcessGroup) -> timedelta:
    """The timeout that `init_process_group` was given; torch has no public way to ask for it."""
    device = torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
    try:
        return world._get_backend(device).options._timeout  # noqa: SLF001
    except (AttributeError, RuntimeError):
        return dist.default_pg_timeout
