"""What the processes of a search say to each other: JSON, one line each."""

from __future__ import annotations

import select
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from playhead import errors
from playhead.errors import PlayheadError
from playhead.fit.bucket import Bucket, LengthRule
from playhead.fit.model import ModelSource  # noqa: TC001  (messages are read by their types)
from playhead.fit.training import Training  # noqa: TC001  (likewise)

if TYPE_CHECKING:
    import socket

__all__ = [
    "Answer",
    "Device",
    "Ended",
    "Facts",
    "Lines",
    "Neighbour",
    "Opening",
    "Ready",
    "Refusal",
    "Started",
    "Task",
    "decode",
    "encode",
]

_Message = TypeVar("_Message")


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """What a server is started for."""

    source: ModelSource
    """The model."""
    training: Training
    """How it is trained."""
    device: str
    """Where: `cpu`, `cuda` or `cuda:N`."""
    seconds: float
    """How long looking at the device may take, and opening the model if it is cold."""
    is_cold: bool
    """Leave the model to the probes, each of which opens it for itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """An error that was made on purpose, for whoever asked."""

    kind: str
    """Name of its class."""
    text: str
    """All that it says."""

    @classmethod
    def of(cls, error: PlayheadError) -> Refusal:
        """Return an error as it is sent."""
        return cls(kind=type(error).__name__, text=str(error))

    def error(self) -> PlayheadError:
        """Return the error again."""
        kind: type[PlayheadError] = getattr(errors, self.kind, PlayheadError)
        return kind(self.text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What one process does: a step after the other."""

    buckets: tuple[Bucket, ...]
    """All buckets."""
    sizes: tuple[int, ...]
    """Batch size of each."""
    order: tuple[int, ...]
    """Bucket of each step; the first step is for the optimizer, which holds nothing before."""
    budget: int
    """Most that the allocator may hold (bytes)."""
    seconds: float
    """How long nothing may happen: neither the first step begin nor another end."""
    title: str
    """What is run, in a line of the log."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbour:
    """Another process on the card."""

    pid: int
    """Its id."""
    name: str
    """Its program."""
    held: int | None
    """Memory that it holds (bytes); None where the driver does not tell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """What a model is tried on."""

    name: str
    """What its maker calls it."""
    total: int | None = None
    """Its memory (bytes); None where it has none of its own."""
    free: int | None = None
    """What of it was free beside a fresh context (bytes)."""
    neighbours: tuple[Neighbour, ...] = ()
    """Who else is on it."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of what decides how much memory a step takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """A device, and the model that is tried on it."""

    device: Device
    """The device."""
    model: str = ""
    """What people call the model; nothing where it is not open yet."""
    rule: LengthRule = field(default_factory=LengthRule)
    """How the bounds of buckets become lengths of its batches."""
    notes: tuple[str, ...] = ()
    """What people should know of its batches, a line each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a probe says of itself."""

    status: Literal["ok", "oom", "doubt", "fault", "busy", "refused", "facts"]
    """It fitted; memory ran out, or may have; something else broke; others hold the memory; …"""
    allocated: tuple[int, ...] = ()
    """Most that tensors held at once in the steps of each bucket that were done (bytes)."""
    reserved: int = 0
    """Most that the allocator held at once (bytes)."""
    reason: str | None = None
    """What happened, in one line."""
    where: str | None = None
    """The line of people's code where it did."""
    refusal: Refusal | None = None
    """With `refused`."""
    facts: Facts | None = None
    """With `facts`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """A probe is running."""

    pid: int
    """Its process, and the group of all that it starts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What a server saw of a probe."""

    answer: Answer | None
    """What it said; None if it died without a word."""
    done: int
    """Steps that it had done."""
    signal: str | None
    """What killed it."""
    code: int | None
    """What it ended with."""
    is_late: bool
    """It was killed because nothing happened for too long."""
    host_kills: int | None
    """How often the kernel has killed for want of memory meanwhile; None where nobody knows."""
    last_words: str
    """The last line that it wrote."""
    spoke_of_memory: bool
    """It wrote that memory ran out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """A server has looked at the device and opened the model, or has not."""

    facts: Facts | None = None
    """What it found."""
    refusal: Refusal | None = None
    """Why there is no such device or model."""
    broken_by_fork: str | None = None
    """Why probes cannot be forked from a process that has the model; it ends now."""
    ended: Ended | None = None
    """What became of the process that looked at the device, if it found nothing."""


def encode(message: Any) -> bytes:
    """Return a message as one line."""
    return msgspec.json.encode(message) + b"\n"


def decode(line: bytes, kind: type[_Message]) -> _Message:
    """Return the message of a line.

    Raises
    ------
    msgspec.MsgspecError
        If it is none of that kind.
    """
    return msgspec.json.decode(line, type=kind)


class Lines:
    """Messages over a socket.

    Parameters
    ----------
    connection
        One end of a pair.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._read = b""

    def send(self, message: Any) -> None:
        """Send a message.

        Raises
        ------
        OSError
            If nobody is there any more.
        """
        self.connection.sendall(encode(message))

    def receive(self, kind: type[_Message], seconds: float | None = None) -> _Message:
        """Wait for the next message.

        Parameters
        ----------
        kind
            What it must be.
        seconds
            How long; None waits until the other side ends.

        Raises
        ------
        EOFError
            If the other side has ended.
        TimeoutError
            If nothing came.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._read:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self.connection], [], [], left)[0]:
                raise TimeoutError
            try:
                block = self.connection.recv(1 << 16)
            except ConnectionResetError:
                block = b""
            if not block:
                raise EOFError
            self._read += block
        line, _, self._read = self._read.partition(b"\n")
        return decode(line, kind)

    def close(self) -> None:
        """Tell the other side that nobody is there."""
        self.connection.close()
