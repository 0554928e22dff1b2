"""Processes apart, in which code of others runs: the one that searches never runs any of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.errors import FitError

if TYPE_CHECKING:
    import socket

__all__ = ["fate", "signal_name", "started_apart"]

_INSIDE: Final = "PLAYHEAD_PROBING"
_ENVIRONMENT: Final = {
    _INSIDE: "1",
    # Asking whether there is a card must not start CUDA, which would spoil forks.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    # Threads of libraries that fork badly are not worth their speed: the model runs elsewhere.
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # What it wrote before it was killed is in the log.
    "PYTHONUNBUFFERED": "1",
}


def started_apart(module: str, connection: socket.socket, log: Path) -> subprocess.Popen[bytes]:
    """Start the `main` of a module in an interpreter of its own, and a session of its own.

    Its arguments are the number of a socket, the id of this process, and the log.

    Parameters
    ----------
    module
        Name of the module.
    connection
        What it inherits, to talk to this process.
    log
        Where everything goes that it writes; it is appended to.

    Raises
    ------
    FitError
        If this process is itself such a process, or a probe.
    """
    if _INSIDE in os.environ:
        # Each would open the model and with it start the next, without end.
        raise FitError(
            "a search begins whenever the model is imported",
            fix='Put what begins it under `if __name__ == "__main__":`',
        )
    # Modules are found where they are found here, and nothing in the folder at hand hides one.
    code = f"import sys; sys.path[:] = sys.argv[4:]; from {module} import main; main()"
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603  (our own module, in our own interpreter)
            [
                sys.executable,
                "-c",
                code,
                str(connection.fileno()),
                str(os.getpid()),
                str(log.absolute()),
                *(str(Path(path).absolute()) for path in sys.path),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[connection.fileno()],
            env={**os.environ, **_ENVIRONMENT},
            # Ctrl-C is for those who search: they end it.
            start_new_session=True,
        )


def fate(code: int) -> str:
    """Return what became of a process.

    Parameters
    ----------
    code
        What it ended with; the number of a signal below zero.

    Examples
    --------
    >>> fate(3), fate(-9)
    ('ended with exit code 3', 'was killed (SIGKILL)')
    """
    return f"was killed ({signal_name(-code)})" if code < 0 else f"ended with exit code {code}"


def signal_name(number: int) -> str:
    """Return the name of a signal; those of real time have none but the first and the last.

    Examples
    --------
    >>> signal_name(9), signal_name(40)
    ('SIGKILL', 'signal 40')
    """
    names = {known.value: known.name for known in signal.Signals}
    return names.get(number, f"signal {number}")
