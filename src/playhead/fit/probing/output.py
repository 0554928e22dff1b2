"""What a process writes, copied to a log of which it cannot fill the disk."""

from __future__ import annotations

import re
from typing import IO, Final

from playhead.fit.probing.fault import one_line, own_line

__all__ = ["Output"]

HEAD_BYTES: Final = 64 << 10
"""Bytes of the beginning that are logged."""
TAIL_BYTES: Final = 16 << 10
"""Bytes of the end that are logged, where there is more."""

# What the interpreter itself writes when it dies of a signal: first the innermost call.
_FATAL = "Fatal Python error: "
_CALL = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)


class Output:
    """What one process writes: its beginning and its end are logged, all else is counted.

    Parameters
    ----------
    log
        The log, opened for appending.
    title
        A line that says what is run.
    """

    def __init__(self, log: IO[bytes], title: str) -> None:
        self._log = log
        self._room = HEAD_BYTES
        self._left_out = 0
        self._tail = b""
        self._is_at_line_start = True
        self._log.write(f"--- {title}\n".encode())

    def feed(self, data: bytes) -> None:
        """Take what was written next."""
        head, rest = data[: self._room], data[self._room :]
        self._write(head)
        self._room -= len(head)
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        self._left_out += len(rest)

    def finish(self) -> None:
        """Log the end of what was written."""
        if self._left_out:
            tail = self._tail[-min(self._left_out, TAIL_BYTES) :]
            missing = self._left_out - len(tail)
            self._write(f"\n--- {missing:,} bytes left out\n".encode() if missing else b"")
            self._write(tail)
        if not self._is_at_line_start:
            self._write(b"\n")
        self._log.flush()

    def text(self) -> str:
        """Return the end of what was written."""
        return self._tail.decode(errors="replace")

    def last_words(self) -> str:
        """Return the last line in which something is said.

        What the interpreter adds when it dies is shortened to the place where it did.
        """
        said, _, died = self.text().partition(_FATAL)
        lines = said.split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        calls = [(file, int(line), name) for file, line, name in _CALL.findall(died)]
        return "; ".join(filter(None, (one_line(last), own_line(calls))))

    def _write(self, data: bytes) -> None:
        if data:
            self._log.write(data)
            self._is_at_line_start = data.endswith(b"\n")
