"""`playhead report`: what a config will train on, as a page, before anything is trained."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from playhead.cli import app
from playhead.cli.bins_checks import refuse_idle
from playhead.cli.configs import import_all
from playhead.cli.options import DataBlendDir, Imports, Section, Tokenizer, parse_spec
from playhead.cli.progress import say, stages
from playhead.errors import ConfigError, TopologyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.report.figures import Figures
    from playhead.report.step import StepContents

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
    section: Section = None,
    world_size: Annotated[
        int, typer.Option(min=1, help="How many ranks train together.", metavar="N")
    ] = 1,
    hours_per_hour: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1e9,
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
    tokenizer: Tokenizer = None,
    data_blend_dir: DataBlendDir = None,
    imports: Imports = None,
    step: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Print what this step trains on and why, instead of a page.",
            metavar="N",
        ),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=0, help="With --step: only what this rank trains on.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="With --step: a checkpoint of that step or an earlier one to begin with; windows"
            " are planned from the start of training otherwise.",
            metavar="CHECKPOINT",
        ),
    ] = None,
    ids: Annotated[
        bool, typer.Option("--ids", help="With --step: read what rows call their samples.")
    ] = False,
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

    With --step it prints what one step trains on instead, sample by sample, and why.
    """
    from playhead.cli.report_text import lines_of  # noqa: PLC0415  (only where asked)

    given: dict[str, Any] = {
        "section": section,
        "world_size": world_size,
        "tokenizer": tokenizer,
        "data_blend_dir": data_blend_dir,
    }
    if step is not None:
        from playhead.report.step_text import step_text  # noqa: PLC0415  (only where asked)

        refuse_idle(
            "pages",
            "Leave out --step, or these",
            output=output,
            hours_per_hour=hours_per_hour,
            windows=windows,
        )
        import_all(imports or ())
        seeded = {} if seed is None else {"seed": seed}
        given |= {"rank": rank, "read_ids": ids, "checkpoint": checkpoint, **seeded}
        contents = _step(config, step=step, **given)
        typer.echo(json.dumps(contents.to_json(), indent=2) if as_json else step_text(contents))
        return
    idle = {"rank": rank, "ids": ids or None, "from": checkpoint}
    refuse_idle("steps", "Give --step too, or leave it out", **idle)
    if as_json and output == _STDOUT:
        raise ConfigError(
            "--json and --output - would both be written to stdout",
            fix="Give the page a file, or leave one of them out",
        )
    path = output if output is not None or as_json else "report.html"
    if path is not None:
        _check_page(path)
    import_all(imports or ())
    figures = _figures(config, seed=seed, windows=windows, hours_per_hour=hours_per_hour, **given)
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


def _figures(config: str, **options: Any) -> Figures:
    from playhead.report.opening import report_figures  # noqa: PLC0415  (imports torch)

    return _planned(report_figures, config, **options)


def _step(config: str, *, step: int, **options: Any) -> StepContents:
    from playhead.report.explaining import explain_step  # noqa: PLC0415  (imports torch)

    return _planned(explain_step, config, step, **options)


def _planned(
    plan: Callable[..., Any], *arguments: Any, tokenizer: str | None, **options: Any
) -> Any:
    """Plan a config, and tell what people should know of it."""
    with warnings.catch_warnings(record=True) as caught, stages() as tell:
        warnings.simplefilter("always", UserWarning)
        tell("opening the config")
        try:
            planned = plan(*arguments, tokenizer=parse_spec(tokenizer), say=tell, **options)
        except TopologyError as error:
            # The world size is an option here, not how a job was started.
            error.exit_code = 2
            raise
    for warning in caught:
        say(f"note: {warning.message}")
    return planned


def _write(figures: Figures, path: str) -> None:
    from playhead.report.page.document import page_of  # noqa: PLC0415  (only for pages)
    from playhead.report.page.writing import write_page  # noqa: PLC0415  (same)

    page = page_of(figures)
    if path == _STDOUT:
        typer.echo(page, nl=False)
        return
    write_page(page, path)
    say(f"Wrote {path}.")
