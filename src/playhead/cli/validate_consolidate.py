"""`playhead validate consolidate`: the verdict over the logs of all runs of a validation."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003  (typer reads annotations)
from typing import Annotated

import typer

from playhead.cli.options import AsJson  # noqa: TC001  (same)
from playhead.cli.progress import say

__all__ = ["consolidate"]


def consolidate(
    *,
    output_dir: Annotated[
        Path, typer.Option(help="Folder that the phases wrote to.", metavar="DIR")
    ],
    checkpoint_at: Annotated[
        int | None,
        typer.Option(
            help="Batch after which the baseline saved its state, from 0; -1 if it did not. What"
            " the baseline says of itself by default, and 0 of logs that NeMo wrote.",
            metavar="N",
        ),
    ] = None,
    num_determinism_runs: Annotated[
        int,
        typer.Option(
            min=1,
            help="Runs of the baseline that there have to be; all that there are, are compared.",
            metavar="N",
        ),
    ] = 1,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Say which runs were read.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say whether the runs of a validation prove that training resumes exactly.

    Five questions are asked of their logs; the answers are also in validation_report.json.

    Exit code 0: nothing fails; 1: something does; 2: logs are missing or damaged, or nothing could
    be judged.
    """
    from playhead.validate import consolidating  # noqa: PLC0415  (imports numpy)

    verdict = consolidating.consolidate(
        output_dir,
        checkpoint_at=checkpoint_at,
        determinism_runs=num_determinism_runs,
        say=say if verbose else lambda _: None,
    )
    if as_json:
        typer.echo(json.dumps(verdict.to_json(), indent=2))
    else:
        for line in verdict.lines:
            typer.echo(line)
        typer.echo(f"wrote {output_dir / consolidating.REPORT_NAME}")
    raise typer.Exit(verdict.exit_code)
