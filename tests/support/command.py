"""The command line in this process: as a process of its own runs it, and much quicker."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

from playhead.cli import main

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Ran", "run_command"]


class Ran(NamedTuple):
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


def run_command(*arguments: object, cwd: Path, **environment: str) -> Ran:
    """Run `playhead ARGUMENTS` in a folder; the cache lies there too."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    before = os.getcwd()  # noqa: PTH109
    with (
        mock.patch.object(sys, "argv", ["playhead", *map(str, arguments)]),
        mock.patch.dict(
            os.environ,
            {"PLAYHEAD_CACHE": str(cwd / "cache"), "COLUMNS": "200", **environment},
        ),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        os.chdir(cwd)
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        finally:
            os.chdir(before)
    return Ran(code, out.getvalue(), err.getvalue())
