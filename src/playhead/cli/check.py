"""`playhead check`: whether training on a config can be repeated."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from playhead.cli import app
from playhead.cli.options import DataBlendDir, Imports
from playhead.cli.progress import say
from playhead.errors import PlayheadError

if TYPE_CHECKING:
    from playhead.check import Repeatability
    from playhead.loader import Loader

__all__ = ["check"]


@app.command()
def check(
    config: Annotated[str, typer.Argument(help="Blend or training config (.yaml).")],
    *,
    repeatable: Annotated[
        bool,
        typer.Option(
            "--repeatable", help="Make batches several times over and compare every bit of them."
        ),
    ] = False,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Your dataset, or a function that makes it; speech to text by default.",
        ),
    ] = None,
    section: Annotated[
        str | None,
        typer.Option(help="Section of a training config, as model.train_ds.", metavar="NAME"),
    ] = None,
    batches: Annotated[
        int, typer.Option(min=1, help="Different batches to make.", metavar="N")
    ] = 3,
    workers: Annotated[
        int,
        typer.Option(min=0, help="Fresh processes that make them too; 0 for none.", metavar="N"),
    ] = 1,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="What makes tokens of texts, where batches depend on it: a SentencePiece model, a"
            " tokenizer.json, a folder with one, or en=PATH,de=PATH.",
            metavar="SPEC",
        ),
    ] = None,
    data_blend_dir: DataBlendDir = None,
    imports: Imports = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON to stdout.")
    ] = False,
) -> None:
    """Check that your dataset gives the same batch whenever it is asked for it.

    The first batches are made, made again in another order, and made in a fresh process.

    Exit code 0: repeatable; 1: not, and where the batches differ; 2: wrong input,
    nothing was shown.
    """
    if not repeatable:
        raise typer.BadParameter(
            "say what to check: --repeatable makes batches several times over and compares them"
            " bit for bit, with your dataset (--dataset module:Name)"
        )
    from playhead.check import check_repeatable  # noqa: PLC0415  (imports torch)
    from playhead.check.user_code import blame, load_module  # noqa: PLC0415  (same)
    from playhead.cli.index_tokens import parse_spec  # noqa: PLC0415  (same)

    try:
        for name in imports or ():
            load_module(name, "--import")
        loader = _loader(
            config,
            dataset,
            tokenizer=None if tokenizer is None else parse_spec(tokenizer),
            section=section,
            data_blend_dir=data_blend_dir,
        )
        result = check_repeatable(loader, batches, workers=workers)
    except PlayheadError as error:
        # 1 is kept for batches that differ.
        error.exit_code = 2
        raise
    except Exception as error:
        raise blame(error, "the dataset failed to make a batch", fix="Correct it") from error
    if as_json:
        facts = {"repeatable": result.repeatable, **asdict(result), "advice": result.advice}
        typer.echo(json.dumps(facts, indent=2))
    else:
        _report(result)
    raise typer.Exit(0 if result.repeatable else 1)


def _loader(config: str, dataset: str | None, **options: Any) -> Loader:
    import warnings  # noqa: PLC0415  (for this alone)

    from playhead.check.user_code import load_dataset  # noqa: PLC0415  (the error tree is enough)
    from playhead.loader import dataloader  # noqa: PLC0415  (imports torch)

    made = None if dataset is None else load_dataset(dataset)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        # Where it runs, under a launcher or not, must not matter.
        loader = dataloader(config, dataset=made, rank=0, world_size=1, **options)
    for warning in caught:
        say(f"note: {warning.message}")
    return loader


def _report(result: Repeatability) -> None:
    elsewhere = f" and in {result.workers} fresh process{'es'[: 2 * (result.workers > 1)]}"
    typer.echo(
        f"{result.batches} batches were made twice here{elsewhere if result.workers else ''}."
    )
    if result.generators:
        typer.echo("Random generators in reach of the dataset:")
    for generator in result.generators:
        why = generator.why_not_seeded
        state = "seeded before each batch" if why is None else f"NOT SEEDED: {why}"
        typer.echo(f"  {generator.path}  {generator.kind}  {state}")
    for place in result.not_compared:
        typer.echo(f"Cannot be compared: {place}")
    for note in result.notes:
        typer.echo(f"Note: {note}")
    for difference in result.differences:
        typer.echo(
            f"Batch {difference.batch}, {difference.when}, differs at {difference.where}:"
            f" {difference.how}."
        )
    if result.advice is not None:
        typer.echo(f"{result.advice}.")
    typer.echo("Repeatable." if result.repeatable else "NOT repeatable.")
