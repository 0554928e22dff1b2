"""The command line in this process: as a process of its own runs it, and much quicker."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

from playhead.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["SCRIPTS", "Ran", "run_command", "run_script"]

SCRIPTS = Path(__file__).parents[2] / "scripts"


class Ran(NamedTuple):
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


def run_command(*arguments: object, cwd: Path, **environment: str) -> Ran:
    """Run `playhead ARGUMENTS` in a folder; the cache lies there too."""
    return _run(main, "playhead", arguments, cwd, environment)


def run_script(name: str, *arguments: object, cwd: Path, **environment: str) -> Ran:
    """Run `scripts/NAME ARGUMENTS` in a folder; the cache lies there too."""
    path = str(SCRIPTS / name)

    def start() -> None:
        runpy.run_path(path, run_name="__main__")

    return _run(start, path, arguments, cwd, environment)


def _run(
    start: Callable[[], object],
    program: str,
    arguments: Sequence[object],
    cwd: Path,
    environment: Mapping[str, str],
) -> Ran:
    out, err, code = io.StringIO(), io.StringIO(), 0
    before = os.getcwd()  # noqa: PTH109
    with (
        mock.patch.object(sys, "argv", [program, *map(str, arguments)]),
        mock.patch.dict(
            os.environ,
            {"PLAYHEAD_CACHE": str(cwd / "cache"), "COLUMNS": "200", **environment},
        ),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        os.chdir(cwd)
        try:
            start()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        finally:
            os.chdir(before)
    return Ran(code, out.getvalue(), err.getvalue())
