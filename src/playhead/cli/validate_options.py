"""The options of `playhead validate`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "CheckpointAt",
    "Config",
    "ConfigOption",
    "Dataset",
    "Deadline",
    "ForceFinite",
    "InputCfg",
    "MetadataOnly",
    "Mode",
    "ModeOption",
    "NumWorkers",
    "OutputDir",
    "Phase",
    "PhaseOption",
    "Ranks",
    "ResumeRanks",
    "ResumeWorkers",
    "RunIdx",
    "SkipMissing",
    "StateDir",
    "Steps",
    "Verbose",
    "WholePass",
]

_PHASE, _ALL = "One phase, in the processes of a launcher", "All phases on this machine"


class Phase(str, Enum):
    """What one run is for."""

    BASELINE = "baseline"
    RESUMED = "resumed"
    GROUNDTRUTH = "groundtruth"


class Mode(str, Enum):
    """What is compared of a batch."""

    FAST = "fast"
    FULL = "full"


Config = Annotated[
    str | None, typer.Argument(help="Blend or training config (.yaml).", metavar="CONFIG")
]
ConfigOption = Annotated[
    str | None, typer.Option("--config", help="The config, as NeMo's script has it.", metavar="F")
]
InputCfg = Annotated[
    str | None,
    typer.Option(help="YAML whose entries stand in for those of the config.", metavar="F"),
]
OutputDir = Annotated[
    Path | None,
    typer.Option(
        "--output-dir",
        "-o",
        help="Folder for logs, states and the report; one that is removed again by default.",
        metavar="DIR",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Batches of each rank: 200 by default, or a pass where that is shorter; of a resumed"
        " run what its baseline had after the state.",
        metavar="N",
    ),
]
CheckpointAt = Annotated[
    int | None,
    typer.Option(
        min=-1,
        help="Batch of each rank, from 0, after which the baseline saves its state; -1 is never."
        " After three quarters by default, and never with --phase.",
        metavar="N",
    ),
]
ForceFinite = Annotated[
    bool,
    typer.Option("--force-finite/--no-force-finite", help="Let passes end, or stay endless."),
]
MetadataOnly = Annotated[
    bool,
    typer.Option("--metadata-only/--no-metadata-only", help="Read no audio, or read it too."),
]
NumWorkers = Annotated[
    int | None,
    typer.Option(
        "--num-workers-override", min=0, help="Worker processes of each rank.", metavar="N"
    ),
]
SkipMissing = Annotated[
    bool | None,
    typer.Option(
        "--skip-missing-manifest-entries/--fail-on-missing-manifest-entries",
        help="Say so for the whole config.",
        show_default=False,
    ),
]
ModeOption = Annotated[
    Mode,
    typer.Option(
        "--mode",
        help="fast compares which samples there are; full makes the tensors too, and compares"
        " every bit of them.",
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME",
        help="Your dataset, or a function that makes it, for --mode full; one of Playhead's by"
        " default.",
    ),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more of how far it is.")]
PhaseOption = Annotated[
    Phase | None,
    typer.Option(
        "--phase",
        help="Run this phase alone, as the rank that the launcher (torchrun) says.",
        rich_help_panel=_PHASE,
    ),
]
RunIdx = Annotated[
    int,
    typer.Option(
        "--run-idx", min=0, help="Number of the run.", metavar="N", rich_help_panel=_PHASE
    ),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        help="Folder with the states to resume from, as DIR/baseline/run0.",
        metavar="DIR",
        rich_help_panel=_PHASE,
    ),
]
Ranks = Annotated[
    int | None,
    typer.Option(
        min=1, help="Processes of the baseline; 2 by default.", metavar="N", rich_help_panel=_ALL
    ),
]
ResumeRanks = Annotated[
    str | None,
    typer.Option(
        "--resume-ranks",
        "--resume-world-size",
        help="Processes of resumed runs, as 2,3, besides those of the baseline; 1 by default. With"
        " --phase how many there have to be.",
        metavar="N,N",
        rich_help_panel=_ALL,
    ),
]
ResumeWorkers = Annotated[
    str | None,
    typer.Option(
        "--resume-workers",
        "--resume-num-workers",
        help="Worker processes of resumed runs, as 0,2: each on all ranks asked for; those of the"
        " baseline by default.",
        metavar="N,N",
        rich_help_panel=_ALL,
    ),
]
WholePass = Annotated[
    bool,
    typer.Option("--whole-pass", help="Go through a pass, however long.", rich_help_panel=_ALL),
]
Deadline = Annotated[
    float | None,
    typer.Option(
        min=1.0,
        help="Give a phase up after so many seconds; 3600 by default.",
        metavar="SECONDS",
        rich_help_panel=_ALL,
    ),
]
