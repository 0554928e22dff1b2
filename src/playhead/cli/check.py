"""`playhead check`: whether a config, its data and its machine are ready for training."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from playhead.cli import app
from playhead.cli.configs import import_all
from playhead.cli.options import AsJson, DataBlendDir, Imports, Section, Tokenizer, parse_spec
from playhead.cli.progress import say
from playhead.errors import PlayheadError
from playhead.user_code import blame, load_object

if TYPE_CHECKING:
    from playhead.check import Repeatability
    from playhead.check.preflight.report import Report
    from playhead.loader import Loader

__all__ = ["check"]


@app.command()
def check(
    config: Annotated[str, typer.Argument(help="Blend or training config (.yaml).")],
    *,
    section: Section = None,
    fetch: Annotated[
        int,
        typer.Option(
            min=0,
            help="Fetch samples of every source as training will, and time them.",
            metavar="N",
        ),
    ] = 0,
    hours_per_hour: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Hours of audio that one GPU trains on in an hour: --fetch says how many workers"
            " keep it busy.",
            metavar="X",
        ),
    ] = None,
    repeatable: Annotated[
        bool,
        typer.Option(
            "--repeatable",
            help="Then make batches several times over, and compare every bit of them.",
        ),
    ] = False,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Your dataset, or a function that makes it, for --fetch and --repeatable; decoding"
            " alone and speech to text by default.",
        ),
    ] = None,
    batches: Annotated[
        int, typer.Option(min=1, help="Different batches to make for --repeatable.", metavar="N")
    ] = 3,
    workers: Annotated[
        int,
        typer.Option(min=0, help="Fresh processes that make them too; 0 for none.", metavar="N"),
    ] = 1,
    tokenizer: Tokenizer = None,
    data_blend_dir: DataBlendDir = None,
    imports: Imports = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="A rule that does not count; may be repeated.", metavar="RULE"),
    ] = None,
    exchange: Annotated[
        str | None,
        typer.Option(
            help="Folder that all nodes of a job share, by which they are compared under srun.",
            metavar="DIR",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look at a config, its data and this machine before anything is trained.

    Nothing is changed: what to change is printed as a diff. Under torchrun or srun it is done once
    on every node, and nodes that see other data are named.

    Exit code 0: nothing fails; 1: something does; 2: wrong input, nothing was shown.
    """
    from playhead.check.preflight.fetching import FetchRequest  # noqa: PLC0415  (imports torch)
    from playhead.check.preflight.rule import check_ids  # noqa: PLC0415  (same)
    from playhead.check.preflight.run import preflight  # noqa: PLC0415  (same)
    from playhead.check.preflight.subject import open_subject  # noqa: PLC0415  (same)

    if hours_per_hour is not None and not fetch:
        raise typer.BadParameter("--hours-per-hour needs --fetch N, which times the samples")
    import_all(imports or ())
    ignored = check_ids(ignore or ())
    spec = parse_spec(tokenizer)
    made = None
    if dataset is not None:
        made = load_object(dataset, kind="dataset", option="--dataset")
    subject = open_subject(
        config,
        section=section,
        data_blend_dir=data_blend_dir,
        tokenizer=spec,
        environment=os.environ,
    )
    if fetch:
        subject.facts["fetch"] = FetchRequest(
            samples=fetch, hours_per_hour=hours_per_hour, dataset=made, progress=_progress()
        )
    report = preflight(subject, ignored=ignored, exchange_folder=exchange)
    if report is None:
        # Another process speaks for this one.
        raise typer.Exit(0)
    result = None
    if repeatable:
        options = {"tokenizer": spec, "section": section, "data_blend_dir": data_blend_dir}
        result = _compared(report, config, made, batches=batches, workers=workers, **options)
    _say(report, result, as_json=as_json)
    failed = report.fails or (repeatable and (result is None or not result.repeatable))
    raise typer.Exit(1 if failed else 0)


def _progress() -> Any:
    """Say which source is fetched, where a person is looking."""
    import sys  # noqa: PLC0415  (for this alone)

    return (lambda leaf: say(f"fetching {leaf}")) if sys.stderr.isatty() else None


def _compared(
    report: Report, config: str, dataset: Any, *, batches: int, workers: int, **options: Any
) -> Repeatability | None:
    """Make batches several times over; None where that cannot be, for what the report says.

    Raises
    ------
    PlayheadError
        If it cannot be and the report says nothing of it.
    """
    from playhead.check import check_repeatable  # noqa: PLC0415  (imports torch)

    try:
        loader = _loader(config, dataset, **options)
        return check_repeatable(loader, batches, workers=workers)
    except PlayheadError as error:
        if report.fails:
            say(f"no batches could be compared: {error}")
            return None
        # 1 is kept for what was looked at and fails.
        error.exit_code = 2
        raise
    except Exception as error:
        raise blame(error, "the dataset failed to make a batch", fix="Correct it") from error


def _loader(config: str, dataset: Any, **options: Any) -> Loader:
    import warnings  # noqa: PLC0415  (for this alone)

    from playhead.loader import dataloader  # noqa: PLC0415  (imports torch)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        # Where it runs, under a launcher or not, must not matter.
        loader = dataloader(config, dataset=dataset, rank=0, world_size=1, **options)
    for warning in caught:
        say(f"note: {warning.message}")
    return loader


def _say(report: Report, result: Repeatability | None, *, as_json: bool) -> None:
    from playhead.cli.check_text import say_repeatability, say_report  # noqa: PLC0415  (torch)

    if as_json:
        facts = report.to_json()
        if result is not None:
            own = {"repeatable": result.repeatable, **asdict(result), "advice": result.advice}
            facts["repeatability"] = own
        typer.echo(json.dumps(facts, indent=2))
        return
    say_report(report)
    if result is not None:
        say_repeatability(result)
