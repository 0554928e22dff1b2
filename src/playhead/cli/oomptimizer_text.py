"""What `playhead oomptimizer` says while it searches: a line for each try, on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, final

import typer

from playhead.cli.progress import say
from playhead.fit.record import ProbeRecord
from playhead.fit.text import VERDICTS, begin_line, mix_line, probe_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fit.bucket import Bucket
    from playhead.fit.problem import Mix, Probe
    from playhead.fit.record import MixRecord, Status

__all__ = ["Teller"]

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
