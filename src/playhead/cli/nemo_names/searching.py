"""The scripts that search the largest batch of each bucket."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from playhead.cli.nemo_names.script import Script, passed, refused, run_command, run_given
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from playhead.cli.nemo_names.script import Given

__all__ = ["SPEECHLM_OOMPTIMIZER", "SPEECH_OOMPTIMIZER"]


def _run_by_one(given: Given) -> None:
    """Search on the GPU that torchrun has for this process, which has to be alone.

    Raises
    ------
    ConfigError
        If there are others.
    """
    ranks = os.environ.get("WORLD_SIZE", "1")
    if ranks != "1":
        raise ConfigError(
            f"torchrun started {ranks} processes, and one searches for all",
            fix="Give torchrun --nproc-per-node 1, or start the script with python",
        )
    device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    command, *others = given.arguments
    run_command([command, "--device", device, *others])


_SEARCH: Final = (
    passed("-b", "--buckets", default="[5,10,15,20,25,30]"),
    passed("-t", "--threshold", default="0.05"),
    passed("-s", "--start-batch-size", default="32"),
    passed("-r", "--ratio", default="12"),
    passed("-f", "--memory-fraction", default="0.9"),
    passed("-y", "--dtype", default="bfloat16"),
    passed("--ddp", takes=0),
    passed("--no-ddp", takes=0),
)
_CLASS: Final = (passed("-m", "--module-name"), passed("-c", "--config-path"))

SPEECH_OOMPTIMIZER: Final = Script(
    about="Find the largest batch that each length bucket can take.",
    usage="",
    command=("oomptimizer",),
    run=run_given,
    options=(
        passed("-n", "--pretrained-name"),
        *_CLASS,
        passed("-o", "--optimizer-name"),
        passed("-d", "--device", default="cuda:0"),
        *_SEARCH,
    ),
)

SPEECHLM_OOMPTIMIZER: Final = Script(
    about="Find the largest batch that each length bucket of a speech language model can take.",
    usage="",
    command=("oomptimizer",),
    run=_run_by_one,
    options=(
        refused(
            "-n",
            "--pretrained-name",
            why="speech language models are made from their configs. Give --module-name and "
            "--config-path.",
        ),
        *_CLASS,
        # 1.0, as in the guides, for the models that have it: others are not asked for it.
        passed("--salm-audio-token-ratio"),
        *_SEARCH,
    ),
)
