"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["DataBlendDir", "Imports"]

DataBlendDir = Annotated[
    str | None, typer.Option(help="What ${data_blend_dir} stands for.", metavar="DIR")
]
Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        help="Import a module first, which registers input types or prompts of your own; may be"
        " repeated.",
        metavar="MODULE",
    ),
]
