"""A process that opens a model once, and forks another for each probe.

It never touches CUDA, which would spoil its forks, and starts no threads, which a fork leaves
behind. The memory of a probe is all given back when its process ends, whatever went wrong in it.
"""

from __future__ import annotations

import gc
import mmap
import os
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from playhead.errors import PlayheadError
from playhead.fit.probing import fault
from playhead.fit.probing.apart import signal_name
from playhead.fit.probing.child import be_a_child, describe, facts_of, run
from playhead.fit.probing.host_kills import host_kills
from playhead.fit.probing.messages import (
    Answer,
    Ended,
    Lines,
    Opening,
    Ready,
    Refusal,
    Started,
    Task,
    decode,
)
from playhead.fit.probing.oom import speaks_of_memory
from playhead.fit.probing.orphans import adopt_orphans, children, die_with, end_children
from playhead.fit.probing.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.fit.model import FitModel
    from playhead.fit.probing.memory import Memory

__all__ = ["broken_by_fork", "main"]

_TICK_SECONDS: Final = 0.05
_JOIN_SECONDS: Final = 2.0
# A probe that has answered has nothing left to do.
_LEAVE_SECONDS: Final = 30.0
# Giving back the memory of a card takes seconds; a process that hangs in a driver stays.
_REAP_SECONDS: Final = 30.0
# The device that a process opens when it first uses CUDA in any way, and never closes.
_DRIVER: Final = "/dev/nvidia-uvm"
_BLOCK: Final = 1 << 16


def main() -> None:
    """Serve one search: the arguments are a socket, the id of the parent and the log."""
    connection, parent, log = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    # Code of others may look for arguments of its own.
    del sys.argv[1:]
    # Until the model is open nothing listens to the parent, or minds what a signal does.
    die_with(parent, signal.SIGKILL)
    adopt_orphans()
    os.set_inheritable(connection, False)  # noqa: FBT003  (positional only)
    lines = Lines(socket.socket(fileno=connection))
    opening = lines.receive(Opening)
    with log.open("ab") as file:
        server = _Server(opening, lines, file)
        ready = server.open()
        lines.send(ready)
        if ready.facts is not None:
            die_with(parent, signal.SIGTERM)
            signal.signal(signal.SIGTERM, server.leave)
            server.serve()


def broken_by_fork() -> str | None:
    """Say why a fork of this process would be of no use; None if it is good."""
    import torch  # noqa: PLC0415  (as in main)

    if torch.cuda.is_initialized() or _has_open(_DRIVER):
        return "opening the model uses CUDA"
    deadline = time.monotonic() + _JOIN_SECONDS
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    alive = [thread.name for thread in others if thread.is_alive()]
    return f"opening the model starts threads ({', '.join(alive)})" if alive else None


def _has_open(device: str) -> bool:
    for descriptor in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            if str(descriptor.readlink()) == device:
                return True
    return False


def _silence_progress_bars() -> None:
    """Keep tqdm, with which weights are loaded, from starting the thread that watches its bars."""
    with suppress(ImportError):
        from tqdm import tqdm  # noqa: PLC0415  (others may need it, this module does not)

        tqdm.monitor_interval = 0


def _open(opening: Opening) -> FitModel:
    from playhead.fit.models import open_model  # noqa: PLC0415  (after the check of the parent)

    with fault.opening(opening.source.name):
        return open_model(opening.source, "cpu", opening.training)


def _memory(device: str) -> Memory:
    if device == "cpu":
        from playhead.fit.probing.cpu_memory import CpuMemory  # noqa: PLC0415  (torch is slow)

        return CpuMemory()
    from playhead.fit.probing.cuda_memory import CudaMemory  # noqa: PLC0415  (likewise)

    return CudaMemory(device)


@dataclass
class _Probe:
    """A process that is running, and what is known of it."""

    pid: int
    answers: int
    writes: int
    output: Output
    done: mmap.mmap
    seconds: float
    said: bytes = b""
    steps: int = 0
    moved: float = field(default_factory=time.monotonic)
    is_late: bool = False

    def pipes(self) -> list[int]:
        """Return the file descriptors on which it may yet write."""
        return [number for number in (self.answers, self.writes) if number >= 0]


class _Server:
    """What listens to the parent, and to the probe that runs."""

    def __init__(self, opening: Opening, lines: Lines, log: IO[bytes]) -> None:
        import torch  # noqa: PLC0415  (slow: a parent that has died is noticed before)

        # What every probe would import anew, optimizers above all. Nothing in it uses CUDA.
        for name in ("playhead.fit.steps", "torch._dynamo"):
            import_module(name)
        self._threads = torch.get_num_threads()
        torch.set_num_threads(1)
        self._opening = opening
        self._model: FitModel | None = None
        self._lines = lines
        self._log = log
        self._pid = os.getpid()
        self._running: _Probe | None = None
        # Helpers that the model's code starts are the server's, not a probe's.
        self._helpers: frozenset[int] = frozenset()

    def open(self) -> Ready:
        """Look at the device, and open the model."""
        opening = self._opening
        opens = self._opened if opening.is_cold else None
        ended = self._do(
            lambda _: describe(_memory(opening.device), opens),
            title=f"looking at {opening.device}",
            seconds=opening.seconds,
        )
        answer = ended.answer
        if answer is None or answer.facts is None:
            return Ready(ended=ended)
        if opening.is_cold:
            return Ready(facts=answer.facts)
        _silence_progress_bars()
        try:
            self._model = model = _open(opening)
        except PlayheadError as error:
            return Ready(refusal=Refusal.of(error))
        if (why := broken_by_fork()) is not None:
            return Ready(broken_by_fork=why)
        self._helpers = children(self._pid)
        # Collecting garbage in a probe would copy every page on which an object lies.
        gc.collect()
        gc.freeze()
        return Ready(facts=facts_of(answer.facts.device, model))

    def serve(self) -> None:
        """Do one task after the other until the parent ends."""
        while True:
            try:
                task = self._lines.receive(Task)
            except EOFError:
                return
            # Bound now: the name means another task in the next turn.
            work = partial(self._work, task)
            self._lines.send(self._do(work, title=task.title, seconds=task.seconds))

    def _do(self, work: Callable[[mmap.mmap], Answer], *, title: str, seconds: float) -> Ended:
        """Do some work in a process of its own."""
        kills = host_kills()
        self._running = probe = self._start(work, title, seconds)
        self._lines.send(Started(pid=probe.pid))
        self._attend(probe)
        ended = self._end(probe, kills)
        self._running = None
        return ended

    def leave(self, *_: Any) -> None:
        """End at once, and the probe that runs too."""
        if self._running is not None:
            self._kill(self._running)
        end_children(frozenset())
        os._exit(1)

    def _start(self, work: Callable[[mmap.mmap], Answer], title: str, seconds: float) -> _Probe:
        done = mmap.mmap(-1, mmap.PAGESIZE)
        answers, answer = os.pipe()
        writes, write = os.pipe()
        output = Output(self._log, title)
        for stream in (sys.stdout, sys.stderr, self._log):
            stream.flush()
        pid = os.fork()
        if pid == 0:
            self._lines.close()
            os.close(answers)
            os.close(writes)
            be_a_child(lambda: work(done), server=self._pid, answers=answer, output=write)
        os.close(answer)
        os.close(write)
        # Both sides do it: whoever comes first, the group is there before anybody is killed.
        with suppress(OSError):
            os.setpgid(pid, pid)
        return _Probe(pid, answers, writes, output, done, seconds)

    def _work(self, task: Task, done: mmap.mmap) -> Answer:
        import torch  # noqa: PLC0415  (as above)

        torch.set_num_threads(self._threads)
        torch.manual_seed(0)
        memory = _memory(self._opening.device)
        if self._opening.is_cold:
            # Constructors that name no card would take the first one.
            memory.choose()
        return run(self._opened(), self._opening.training, memory, task, done)

    def _opened(self) -> FitModel:
        return self._model or _open(self._opening)

    def _attend(self, probe: _Probe) -> None:
        """Take what a probe says until it has ended, or must."""
        listened = [self._lines.connection]
        while not _has_ended(probe.pid):
            pipes: list[Any] = [*listened, *probe.pipes()]
            ready, _, _ = select.select(pipes, [], [], _TICK_SECONDS)
            if self._lines.connection in ready:
                # Nothing is asked meanwhile: the parent has ended.
                self.leave()
            _take(probe, ready)
            steps = int.from_bytes(probe.done[:8], "little")
            if steps != probe.steps:
                probe.steps, probe.moved = steps, time.monotonic()
            has_answered = b"\n" in probe.said
            seconds = min(probe.seconds, _LEAVE_SECONDS) if has_answered else probe.seconds
            if time.monotonic() - probe.moved > seconds:
                probe.is_late = not has_answered
                # It may be in a driver that lets nobody go: the end of this has a deadline.
                return

    def _end(self, probe: _Probe, kills: int | None) -> Ended:
        # Before it is reaped, as long as nobody else can have its number.
        self._kill(probe)
        status = _reaped(probe.pid)
        end_children(self._helpers)
        for number in probe.pipes():
            os.set_blocking(number, False)
        while probe.pipes() and _take(probe, probe.pipes()):
            pass
        for number in probe.pipes():
            os.close(number)
        probe.output.finish()
        code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
        now = host_kills()
        return Ended(
            answer=_answer(probe.said),
            done=int.from_bytes(probe.done[:8], "little"),
            signal=signal_name(-code) if code < 0 else None,
            code=code if code >= 0 else None,
            is_late=probe.is_late or status is None,
            host_kills=None if kills is None or now is None else now - kills,
            last_words=probe.output.last_words(),
            spoke_of_memory=speaks_of_memory(probe.output.text()),
        )

    @staticmethod
    def _kill(probe: _Probe) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(probe.pid, signal.SIGKILL)


def _has_ended(pid: int) -> bool:
    """Say whether a child waits to be reaped."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _reaped(pid: int) -> int | None:
    """Wait for a child that was killed; None if it does not end, as in a driver that hangs."""
    deadline = time.monotonic() + _REAP_SECONDS
    while time.monotonic() < deadline:
        number, status = os.waitpid(pid, os.WNOHANG)
        if number:
            return status
        time.sleep(0.001)
    return None


def _take(probe: _Probe, ready: list[Any]) -> bool:
    """Read what a probe has written; False if there was nothing."""
    has_read = False
    for number in probe.pipes():
        if number not in ready:
            continue
        try:
            block = os.read(number, _BLOCK)
        except BlockingIOError:
            continue
        has_read = True
        if not block:
            os.close(number)
        if number == probe.answers:
            probe.said += block
            probe.answers = number if block else -1
        else:
            probe.output.feed(block)
            probe.writes = number if block else -1
    return has_read


def _answer(said: bytes) -> Answer | None:
    line, newline, _ = said.partition(b"\n")
    if not newline:
        return None
    try:
        return decode(line, Answer)
    except msgspec.MsgspecError:
        return None
