"""Opening the columns of a blend, with a bar for whoever watches while they are built."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

from playhead.index.build import open_leaves

if TYPE_CHECKING:
    from collections.abc import Generator

    from playhead.blend import Blend
    from playhead.index.build_pace import Progress as Told
    from playhead.index.pack import LeafPack

__all__ = ["index_command", "open_columns", "shown"]


def index_command(config: Any) -> str:
    """The command that indexes a config, for messages."""
    return f"playhead index {config if isinstance(config, (str, PathLike)) else 'CONFIG'}"


def open_columns(blend: Blend, config: Any) -> list[LeafPack]:
    """Open the packs of a blend's leaves; build what is missing.

    Parameters
    ----------
    blend
        The blend.
    config
        What it was read from: messages name the command that indexes it.

    Raises
    ------
    PlayheadError
        When a source cannot be used, or building would take too long.
    """
    with shown("indexing") as told:
        return open_leaves(
            blend.leaves,
            auto_index=blend.options.auto_index,
            command=index_command(config),
            progress=told,
        )


@contextmanager
def shown(doing: str) -> Generator[Told | None]:
    """Show work on a bar where there is a terminal; gives who is told of it, or None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  (only where there is a terminal)
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def show(what: str, done: float, total: float) -> None:
            bar.update(task, description=f"{doing} {what}", completed=done, total=total)

        yield show
