"""What a shell command writes, as a file that can only be read from its start (`pipe:`)."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final, NoReturn

from playhead.errors import NotSupportedError, StorageError
from playhead.storage.base import Stat
from playhead.storage.limits import limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.storage.base import ByteRange

__all__ = ["PipeStore"]

_PREFIX: Final = "pipe:"
_SAID_BYTES = 300


class PipeStore:
    """Commands of the shell; nobody knows how much one will write before it has.

    A command that fails is not tried again, as nobody knows what that would do. It fails if any
    part of a chain of commands does, where there is a bash.
    """

    def stats(self, uris: Sequence[str]) -> list[Stat]:
        """Nothing is known of any: size 0, version 0."""
        return [Stat(0, 0)] * len(uris)

    def read(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Refuse: there is no middle to read from.

        Raises
        ------
        NotSupportedError
            Whenever anything is asked for.
        """
        if ranges:
            _refuse(ranges[0].uri, "a pipe can only be read from its start")
        return []

    def read_files(self, uris: Sequence[str]) -> list[bytes]:
        """Run commands one after another, and give all that each writes.

        Raises
        ------
        StorageError
            As `stream`.
        """
        return [b"".join(self.stream(uri)) for uri in uris]

    def has_ranges(self, uri: str) -> bool:  # noqa: ARG002 - none has
        """Never: a pipe can only be read from its start."""
        return False

    def stream(self, uri: str, start: int = 0, block_bytes: int = 4 << 20) -> Iterator[bytes]:
        """Run a command and give what it writes; it is ended when nobody reads on.

        Raises
        ------
        StorageError
            If it fails, or writes nothing for as long as a request may take.
        """
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(  # noqa: S603 - running what the config says is what it is for
                _shell(uri.removeprefix(_PREFIX)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
            assert process.stdout is not None
            with process.stdout:
                try:
                    for block in _blocks(process.stdout, uri, block_bytes):
                        if start < len(block):
                            yield block[start:]
                        start = max(0, start - len(block))
                    code = _ended(process, uri)
                finally:
                    _end(process)
            if code:
                raise StorageError(
                    f"the command ended with exit code {code}{_last_words(errors)}",
                    where=uri,
                    fix="Run it by itself, and correct it",
                )

    def list(self, folder: str) -> list[str]:
        """Refuse: a command holds no files.

        Raises
        ------
        NotSupportedError
            Always.
        """
        _refuse(folder, "a pipe is no folder")

    def write(self, uri: str, data: bytes) -> None:
        """Refuse: a command is read from only.

        Raises
        ------
        NotSupportedError
            Always.
        """
        del data
        _refuse(uri, "a pipe cannot be written to")


def _refuse(uri: str, what: str) -> NoReturn:
    raise NotSupportedError(what, where=uri, fix="Write what it gives into a file, and name that")


def _shell(command: str) -> list[str]:
    bash = shutil.which("bash")
    # Without it a chain whose first command fails looks like data that end early.
    return ["/bin/sh", "-c", command] if bash is None else [bash, "-o", "pipefail", "-c", command]


def _blocks(output: IO[bytes], uri: str, block_bytes: int) -> Iterator[bytes]:
    poll = select.poll()
    poll.register(output, select.POLLIN)
    seconds = limits().request_seconds
    block = bytearray()
    while True:
        if not poll.poll(seconds * 1000):
            raise StorageError(
                f"the command wrote nothing for {seconds:g} s",
                where=uri,
                fix="Look why, or set PLAYHEAD_STORAGE_REQUEST_SECONDS to more",
            )
        piece = os.read(output.fileno(), block_bytes - len(block))
        block += piece
        if len(block) == block_bytes or not piece:
            if block:
                yield bytes(block)
            block.clear()
        if not piece:
            return


def _ended(process: subprocess.Popen[bytes], uri: str) -> int:
    seconds = limits().request_seconds
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise StorageError(
            f"the command closed its output and did not end within {seconds:g} s",
            where=uri,
            fix="Correct the command",
        ) from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that was not seen to end, and all that it started."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last_words(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - _SAID_BYTES))
    said = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
    return f": {said}" if said else ""
