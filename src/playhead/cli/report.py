"""`playhead report`: what a config will train on, as a page, before anything is trained."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from playhead.cli import app
from playhead.cli.configs import import_all
from playhead.cli.options import DataBlendDir, Imports
from playhead.cli.progress import say, stages
from playhead.errors import TopologyError

if TYPE_CHECKING:
    from playhead.report.figures import Figures

__all__ = ["report"]

_STDOUT = "-"


@app.command()
def report(
    config: Annotated[str, typer.Argument(help="Blend or training config (.yaml).")],
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="File of the page, report.html by default; - is stdout.",
            metavar="FILE",
        ),
    ] = None,
    section: Annotated[
        str | None,
        typer.Option(help="Section of a training config, as model.train_ds.", metavar="NAME"),
    ] = None,
    world_size: Annotated[
        int, typer.Option(min=1, help="How many ranks train together.", metavar="N")
    ] = 1,
    hours_per_hour: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Hours of audio that one GPU trains on in an hour, for times.",
            metavar="X",
        ),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Windows to plan of each blend; some two million samples, or a whole finite pass,"
            " by default.",
            metavar="N",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed to plan with; the config's by default.")
    ] = None,
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
        bool,
        typer.Option(
            "--json", help="Print all figures as JSON to stdout; a page only with --output."
        ),
    ] = False,
) -> None:
    """Plan a config, and show what it will train on as a page that needs no other file.

    Hours and rows, lengths, classes or buckets, how even ranks are, the blend over time,
    requests and bytes, the largest batches, steps and times. No audio is read; indexes that are
    missing are built first, as a training job would.
    """
    from playhead.cli.report_text import lines_of  # noqa: PLC0415  (only where asked)

    path = output if output is not None or as_json else "report.html"
    if path is not None:
        _check_page(path)
    import_all(imports or ())
    figures = _figures(
        config,
        section=section,
        world_size=world_size,
        hours_per_hour=hours_per_hour,
        windows=windows,
        seed=seed,
        tokenizer=tokenizer,
        data_blend_dir=data_blend_dir,
    )
    if as_json:
        typer.echo(json.dumps(figures.to_json(), indent=2))
    elif path != _STDOUT:
        for line in lines_of(figures):
            typer.echo(line)
    if path is not None:
        _write(figures, path)


def _check_page(path: str) -> None:
    """Find what stands against a page before anything is planned, which may take minutes."""
    from playhead.report.page.canvas import check_matplotlib  # noqa: PLC0415  (only for pages)
    from playhead.report.page.writing import check_target  # noqa: PLC0415  (same)

    if path != _STDOUT:
        check_target(path)
    check_matplotlib()


def _figures(config: str, *, tokenizer: str | None, **options: Any) -> Figures:
    from playhead.cli.index_tokens import parse_spec  # noqa: PLC0415  (imports torch)
    from playhead.report.opening import report_figures  # noqa: PLC0415  (same)

    spec = None if tokenizer is None else parse_spec(tokenizer)
    with warnings.catch_warnings(record=True) as caught, stages() as tell:
        warnings.simplefilter("always", UserWarning)
        tell(f"opening {config}")
        try:
            figures = report_figures(config, tokenizer=spec, say=tell, **options)
        except TopologyError as error:
            # The world size is an option here, not how a job was started.
            error.exit_code = 2
            raise
    for warning in caught:
        say(f"note: {warning.message}")
    return figures


def _write(figures: Figures, path: str) -> None:
    from playhead.report.page.document import page_of  # noqa: PLC0415  (only for pages)
    from playhead.report.page.writing import write_page  # noqa: PLC0415  (same)

    page = page_of(figures)
    if path == _STDOUT:
        typer.echo(page, nl=False)
        return
    write_page(page, path)
    say(f"Wrote {path}.")
