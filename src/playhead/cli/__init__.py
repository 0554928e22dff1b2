"""The command line: `playhead COMMAND`, one module a command."""

from __future__ import annotations

import sys

import typer

from playhead.errors import PlayheadError

__all__ = ["app", "main"]

app = typer.Typer(
    name="playhead",
    help="Feed speech training: index data, and see a run be killed and resumed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _commands() -> None:  # pyright: ignore[reportUnusedFunction]  (typer calls it)
    """Feed speech training: index data, prove exact resume, look at plans."""


def main() -> None:
    """Run the command line: exit 0, 2 for bad input, 1 for work that failed."""
    from playhead.cli import demo, index  # noqa: PLC0415  (they register their commands on `app`)

    del demo, index
    try:
        app()
    except PlayheadError as error:
        print(f"playhead: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
    except OSError as error:
        # A disk that fails or a folder that nobody may read: no fault of the program.
        print(f"playhead: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
