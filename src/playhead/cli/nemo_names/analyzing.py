"""The script that says how far the sources of a checkpoint were read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.cli.nemo_names.script import Script, kept, passed, run_command

if TYPE_CHECKING:
    from playhead.cli.nemo_names.script import Given

__all__ = ["ANALYZE"]


def _run(given: Given) -> None:
    """Look at the checkpoint, which is no option of the command."""
    command, *others = given.arguments
    run_command([command, *given.kept.get("--checkpoint-path", ()), *others])


ANALYZE: Final = Script(
    about="Say how far every source of a checkpoint was read.",
    usage="",
    command=("inspect", "--markdown"),
    run=_run,
    options=(
        kept("--checkpoint", "--checkpoint-path"),
        passed("--state-json"),
        passed("--config"),
        passed("--data-blend-dir"),
        passed("--indexes-root"),
        passed("--index-pack-root"),
        passed("--default-index-pack-root"),
        passed("--output-dir"),
        passed("--output-json"),
        passed("--output-md"),
        passed("--output-csv"),
        passed("--allow-full-ckpt-load", takes=0),
        passed("--max-full-load-mb"),
        passed("--print-table", takes=0),
    ),
)
