"""`playhead demo`: a training run that is killed and resumed before one's eyes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from playhead.cli import app

__all__ = ["demo"]

# A model that makes more mistakes than this has not learnt to read yet.
_LEARNT = 0.3


@app.command()
def demo(
    *,
    manifest: Annotated[
        Path | None, typer.Option(help="Train on this NeMo manifest instead of made-up digits.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder for corpus, logs and report.")] = Path(
        "demo-run"
    ),
    steps: Annotated[int, typer.Option(min=24, help="Optimizer steps of each run.")] = 120,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the made-up corpus.")] = 0,
    workers: Annotated[
        str,
        typer.Option(
            metavar="N,N,N",
            help="Worker processes of each loader: on two processes, on one, and on three.",
        ),
    ] = "1,2,0",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON and nothing else.")
    ] = False,
) -> None:
    """Train a tiny model, kill it twice, resume on other processes, and prove what was trained."""
    from playhead.demo.story import run_demo  # noqa: PLC0415  (imports torch)

    def say(line: str) -> None:
        if not as_json:
            typer.echo(line)

    say("Playhead: a training run that is killed twice and goes on as if nothing had happened.")
    say("")
    report = run_demo(
        output.absolute(),
        manifest,
        steps=steps,
        seed=seed,
        workers=_three(workers),
        say=say,
    )
    if as_json:
        typer.echo(json.dumps({**asdict(report), "holds": report.holds}, indent=2))
    else:
        say("")
        say(f"What {report.steps} steps with two kills and three process counts proved:")
        for claim in report.claims:
            mark = typer.style("yes", fg="green") if claim.holds else typer.style("NO", fg="red")
            say(f"  {mark}  {claim.text} ({claim.detail})")
        say("")
        for said, understood in report.recognised:
            say(f"  said: {said!r:34} understood: {understood!r}")
        say("")
        say(f"Character error rate on the data it trained on: {report.error_rate:.1%}.")
        if report.error_rate > _LEARNT:
            say(
                f"({report.steps} steps of a tiny model do not learn these data; the proof stands.)"
            )
        size = len(json.dumps(report.state))
        say(f"The loader's state in the checkpoint is {size} bytes. The report: {output}/report.md")
        say(f"({report.seconds:.0f} s.) Next: `playhead index YOUR_BLEND.yaml`, then the README.")
    if not report.holds:
        raise typer.Exit(1)


def _three(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter(f"--workers {text!r} is not three numbers, as 1,2,0")
    first, second, third = map(int, parts)
    return first, second, third
