"""Opening the columns of a blend, with a bar for whoever watches while they are built."""

from __future__ import annotations

import sys
from os import PathLike
from typing import TYPE_CHECKING, Any

from playhead.index.build import open_leaves

if TYPE_CHECKING:
    from playhead.blend import Blend
    from playhead.index.pack import LeafPack

__all__ = ["open_columns"]


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
    named = str(config) if isinstance(config, (str, PathLike)) else "CONFIG"
    command = f"playhead index {named}"
    auto = blend.options.auto_index
    if not sys.stderr.isatty():
        return open_leaves(blend.leaves, auto_index=auto, command=command)

    from rich.console import Console  # noqa: PLC0415  (only where there is a terminal)
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("indexing", total=None)

        def show(what: str, done: float, total: float) -> None:
            bar.update(task, description=f"indexing {what}", completed=done, total=total)

        return open_leaves(blend.leaves, auto_index=auto, command=command, progress=show)
