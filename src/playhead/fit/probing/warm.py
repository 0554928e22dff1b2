"""The process that has the model, as those who search see it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import msgspec

from playhead.fit.probing.apart import fate, started_apart
from playhead.fit.probing.host_kills import host_kills
from playhead.fit.probing.messages import Ended, Lines, Opening, Ready, Started, Task

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

__all__ = ["ServerDiedError", "WarmServer"]

_MODULE: Final = "playhead.fit.probing.server"
# What the server has to do after the last step of a probe: reap, log, answer.
_SLACK_SECONDS: Final = 60.0
_LEAVE_SECONDS: Final = 5.0


class ServerDiedError(Exception):
    """The process that has the model has ended, or says nothing any more.

    Attributes
    ----------
    host_kills
        How often the kernel has killed for want of memory meanwhile; None where nobody knows.
    """

    def __init__(self, what: str, host_kills: int | None) -> None:
        self.host_kills = host_kills
        super().__init__(what)


class WarmServer:
    """A process that has the model, and does tasks in processes of their own.

    Parameters
    ----------
    opening
        What it is started for.
    log
        Where everything goes that it and its probes write.

    Raises
    ------
    FitError
        If this process is itself such a process, or a probe.
    """

    def __init__(self, opening: Opening, log: Path) -> None:
        self._seconds = opening.seconds
        self._probe: int | None = None
        here, there = socket.socketpair()
        self._lines = Lines(here)
        try:
            with there:
                self._process = started_apart(_MODULE, there, log)
        except BaseException:
            self._lines.close()
            raise
        with self._watched("as it started"):
            self._lines.send(opening)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ready(self) -> Ready:
        """Wait until it has looked at the device and opened the model, or cannot.

        Raises
        ------
        ServerDiedError
            If it ended, or said nothing for too long.
        """
        with self._watched("while it opened the model"):
            self._probe = self._lines.receive(Started, self._seconds).pid
            ready = self._lines.receive(Ready, 2 * self._seconds)
        # It is gone, and its number may be another's by the time that this is closed.
        self._probe = None
        return ready

    def do(self, task: Task) -> Ended:
        """Do a task, and wait until its process is gone.

        Raises
        ------
        ServerDiedError
            If the server ended, or said nothing for too long.
        """
        with self._watched("during a probe"):
            self._lines.send(task)
            self._probe = self._lines.receive(Started, _SLACK_SECONDS).pid
            # A step ends within the seconds of a task, or the server ends the task.
            longest = (len(task.order) + 1) * task.seconds + _SLACK_SECONDS
            ended = self._lines.receive(Ended, longest)
        self._probe = None
        return ended

    def close(self) -> None:
        """End it, and all that it has started."""
        self._lines.close()
        # It may be in the middle of code of others: that ends at a signal, or is killed.
        self._process.terminate()
        try:
            self._process.wait(_LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._probe is not None:
            # A server that was killed has left alone whatever its probe had started.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._probe, signal.SIGKILL)
            self._probe = None

    @contextmanager
    def _watched(self, when: str) -> Generator[None]:
        """Wait for it, and end it if anything goes wrong, Ctrl-C included."""
        kills = host_kills()
        try:
            yield
        except (EOFError, OSError, msgspec.MsgspecError) as error:
            # One that is as good as gone ends by itself, with what it has to tell.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0 if isinstance(error, TimeoutError) else _LEAVE_SECONDS)
            code = self._process.poll()
            self.close()
            now = host_kills()
            what = "said nothing any more" if code is None else fate(code)
            raise ServerDiedError(
                f"the process that has the model {what} {when}",
                None if kills is None or now is None else now - kills,
            ) from error
        except BaseException:
            self.close()
            raise
