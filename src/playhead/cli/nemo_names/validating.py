"""The scripts that prove exact resume: one phase of a validation, and the verdict over all."""

from __future__ import annotations

from typing import Final

from playhead.cli.nemo_names.script import Script, passed, run_given

__all__ = ["CONSOLIDATE", "VALIDATE"]

VALIDATE: Final = Script(
    about="Run one phase of a validation, in the processes that torchrun starts.",
    usage="",
    command=("validate",),
    run=run_given,
    options=(
        passed("--config", required=True),
        passed("--data-blend-dir"),
        passed("--section"),
        passed("--output-dir", required=True),
        passed("--phase", required=True),
        passed("--run-idx", default="0"),
        passed("--steps"),
        passed("--checkpoint-at", default="-1"),
        passed("--state-dir"),
        passed("--force-finite", takes=0),
        passed("--no-force-finite", takes=0),
        passed("--metadata-only", takes=0),
        passed("--no-metadata-only", takes=0),
        passed("--num-workers-override"),
        passed("--mode", default="fast"),
        passed("--input-cfg"),
        passed("--skip-missing-manifest-entries", takes=0),
        passed("--fail-on-missing-manifest-entries", takes=0),
        passed("-v", takes=0),
    ),
)

CONSOLIDATE: Final = Script(
    about="Say whether the runs of a validation prove that training resumes exactly.",
    usage="",
    command=("validate", "consolidate"),
    run=run_given,
    options=(
        passed("--output-dir", required=True),
        passed("--checkpoint-at"),
        passed("--num-determinism-runs", default="1"),
        passed("-v", takes=0),
    ),
)
