"""The command line: `playhead COMMAND`, one module a command."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from playhead.errors import PlayheadError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["app", "exit_codes", "main"]

app = typer.Typer(
    name="playhead",
    # Rich's own markup takes `[path, weight]` for a tag, and keeps the line breaks of docstrings.
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from playhead.version import own_version  # noqa: PLC0415  (slow, and hardly ever wanted)

        typer.echo(f"playhead {own_version()}")
        raise typer.Exit


@app.callback()
def _commands(  # pyright: ignore[reportUnusedFunction]  (typer calls it)
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Feed speech training: index and check data, and find bins and batch sizes."""
    del version  # its callback has said it


def main() -> None:
    """Run the command line: exit 0, 2 for bad input, 1 for work that failed."""
    from playhead.cli import (  # noqa: PLC0415  (they register their commands on `app`)
        bins,
        check,
        demo,
        index,
        inspect,
        oomptimizer,
        pack,
        prefetch,
        report,
        validate,
    )

    del bins, check, demo, index, inspect, oomptimizer, pack, prefetch, report, validate
    # A command looks at many files, and its workers do: a dead server is not waited for at each.
    # Training is more patient: another try of it may come when the server is there again.
    os.environ.setdefault("PLAYHEAD_STORAGE_UNREACHED_SECONDS", "30")
    with exit_codes():
        app()


@contextmanager
def exit_codes() -> Generator[None]:
    """End the process with one line where the block fails: exit 2 for bad input, 1 for the rest."""
    try:
        yield
    except PlayheadError as error:
        _say(error)
        sys.exit(error.exit_code)
    except OSError as error:
        # A disk that fails or a folder that nobody may read: no fault of the program.
        _say(error)
        sys.exit(1)


def _say(error: Exception) -> None:
    # A path may hold line ends, and scripts look for one line; what steers a terminal does not.
    line = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(error)
    )
    print(f"playhead: {line}", file=sys.stderr)  # noqa: T201
