"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["AsJson", "DataBlendDir", "Imports", "OnlySection", "SkipBadRows"]

AsJson = Annotated[bool, typer.Option("--json", help="Print a summary as JSON to stdout.")]
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
OnlySection = Annotated[
    str | None,
    typer.Option(help="Only this part of the configs, as model.train_ds.", metavar="NAME"),
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Count rows that cannot be used, and go on.")
]
