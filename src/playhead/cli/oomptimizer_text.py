"""What `playhead oomptimizer` says while it searches: a line for each try, on stderr."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import typer

from playhead.cli.progress import say
from playhead.fit.record import ProbeRecord
from playhead.fit.text import VERDICTS, begin_line, mix_line, probe_line

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from rich.progress import Progress

    from playhead.fit.bucket import Bucket
    from playhead.fit.problem import Mix, Probe
    from playhead.fit.record import MixRecord, Status

__all__ = ["Teller", "Waiter"]

_PREDICTING = "predicting what steps hold …"
# Whoever waits longer wants to know for what.
_SILENT_SECONDS = 2.0
_COLOURS: dict[Status, str] = {"ok": "green", "oom": "yellow", "lost": "red"}


@final
class Teller:
    """Tell people of each try, before it and after it; colours only where they look.

    Parameters
    ----------
    buckets
        The buckets.
    """

    def __init__(self, buckets: Sequence[Bucket]) -> None:
        self._buckets = buckets

    def begin(self, action: Probe | Mix) -> None:
        """Say what will be tried."""
        say(begin_line(action, self._buckets))

    def end(self, record: ProbeRecord | MixRecord) -> None:
        """Say what became of it."""
        if isinstance(record, ProbeRecord):
            line = probe_line(record)
        else:
            line = mix_line(record, self._buckets)
        if sys.stderr.isatty():
            word = VERDICTS[record.status]
            styled = typer.style(word, fg=_COLOURS[record.status], bold=True)
            line = line.replace(word, styled, 1)
        say(line)


@final
class Waiter:
    """Tell people that predictions are made, once they take time, and why there are none.

    A line says it once; on a terminal a bar stands in for it.

    Attributes
    ----------
    said
        What was said of predictions that failed.
    """

    def __init__(self) -> None:
        self.said: list[str] = []
        self._waited = 0.0
        self._has_told = False
        self._bar: Progress | None = None

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Wait for a prediction, as long as the block lasts."""
        begin = time.monotonic()
        timer = threading.Timer(max(0.0, _SILENT_SECONDS - self._waited), self._tell)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
            self._waited += time.monotonic() - begin

    def give_up(self, why: str) -> None:
        """Say why nothing is predicted any more, once."""
        note = f"nothing is predicted: {why}"
        if note not in self.said:
            self.said.append(note)
            say(f"note: {note}")

    def _tell(self) -> None:
        if sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415  (only where there is a terminal)
            from rich.progress import Progress  # noqa: PLC0415

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.add_task(_PREDICTING, total=None)
            self._bar.start()
        elif not self._has_told:
            self._has_told = True
            say(_PREDICTING)
