"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "DataBlendDir",
    "Imports",
    "OnlySection",
    "Section",
    "SkipBadRows",
    "Tokenizer",
    "parse_spec",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON to stdout.")]
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
Section = Annotated[
    str | None,
    typer.Option(help="Section of a training config, as model.train_ds.", metavar="NAME"),
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Count rows that cannot be used, and go on.")
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        help="What makes tokens of texts, where batches depend on it: a SentencePiece model, a"
        " tokenizer.json, a folder with one, or en=PATH,de=PATH.",
        metavar="SPEC",
    ),
]


def parse_spec(spec: str | None) -> str | dict[str, str] | None:
    """Read what `--tokenizer` says: a path, or a path for each language; None for none.

    Examples
    --------
    >>> parse_spec("tokenizer.model")
    'tokenizer.model'
    >>> parse_spec("en=english.model,de=german.model")
    {'en': 'english.model', 'de': 'german.model'}
    """
    if spec is None:
        return None
    parts = [part.partition("=") for part in spec.split(",")]
    if Path(spec).exists() or not all(name and equals and path for name, equals, path in parts):
        return spec
    return {name.strip(): path.strip() for name, _, path in parts}
