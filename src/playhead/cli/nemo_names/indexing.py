"""The scripts of `scripts/dataloading` that index data and copy indexes."""

from __future__ import annotations

from typing import Final

from playhead.cli.nemo_names.script import Script, idle, passed, run_given

__all__ = ["BUILD_INDEXES", "PREFETCH_INDEXES"]

_MADE_WITH_PACKS = "members are looked up when packs are built. Leave --kind out."

BUILD_INDEXES: Final = Script(
    about="Build the .idx of every data file that configs name, and the packs of the configs.",
    usage="INPUT_CFG [INPUT_CFG ...]",
    command=("index",),
    run=run_given,
    options=(
        passed("--force", takes=0),
        passed("--workers", default="4"),
        passed("--dry-run", takes=0),
        idle(
            "--executor",
            reasons={
                "process": "",
                "thread": "--executor thread: files are indexed in processes all the same",
            },
        ),
        passed("--indexes-root"),
        passed(
            "--kind",
            without={"wds_tar_v2": _MADE_WITH_PACKS, "sharegpt_route": _MADE_WITH_PACKS},
        ),
        passed("--data-blend-dir"),
    ),
)

PREFETCH_INDEXES: Final = Script(
    about="Copy the indexes and packs of configs' data to a disk.",
    usage="INPUT_CFG [INPUT_CFG ...]",
    command=("prefetch",),
    run=run_given,
    options=(
        passed("--indexes-root", required=True),
        passed("--source-indexes-root"),
        passed("--force", takes=0),
        passed("--workers", default="8"),
        passed("--dry-run", takes=0),
    ),
)
