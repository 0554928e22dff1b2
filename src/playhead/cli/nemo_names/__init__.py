"""The scripts that NeMo's guides call, by their names: each is a command of ours.

Examples
--------
>>> from playhead.cli.nemo_names import SCRIPTS
>>> SCRIPTS["dataloading/build_indexes.py"].command
('index',)
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from playhead.cli import exit_codes
from playhead.cli.nemo_names.analyzing import ANALYZE
from playhead.cli.nemo_names.checking import PRE_VALIDATION
from playhead.cli.nemo_names.converting import CONVERT
from playhead.cli.nemo_names.estimating import DURATION_BINS, DURATION_BINS_2D, TOKEN_BINS
from playhead.cli.nemo_names.indexing import BUILD_INDEXES, PREFETCH_INDEXES
from playhead.cli.nemo_names.rebinding import REBIND
from playhead.cli.nemo_names.searching import SPEECH_OOMPTIMIZER, SPEECHLM_OOMPTIMIZER
from playhead.cli.nemo_names.text import help_of
from playhead.cli.nemo_names.translating import translated
from playhead.cli.nemo_names.validating import CONSOLIDATE, VALIDATE
from playhead.cli.progress import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.cli.nemo_names.script import Script

__all__ = ["SCRIPTS", "run_script"]

SCRIPTS: Final[Mapping[str, Script]] = {
    "dataloading/_validate_dataloader/consolidate.py": CONSOLIDATE,
    "dataloading/_validate_dataloader/pre_validation.py": PRE_VALIDATION,
    "dataloading/analyze_resumable_checkpoint.py": ANALYZE,
    "dataloading/build_indexes.py": BUILD_INDEXES,
    "dataloading/convert_indexes_to_idxpack.py": CONVERT,
    "dataloading/prefetch_indexes.py": PREFETCH_INDEXES,
    "dataloading/rebind_idxpack_collections.py": REBIND,
    "dataloading/validate_dataloader.py": VALIDATE,
    "speech_recognition/estimate_duration_bins.py": DURATION_BINS,
    "speech_recognition/estimate_duration_bins_2d.py": DURATION_BINS_2D,
    "speech_recognition/oomptimizer.py": SPEECH_OOMPTIMIZER,
    "speechlm2/estimate_token_bins.py": TOKEN_BINS,
    "speechlm2/oomptimizer.py": SPEECHLM_OOMPTIMIZER,
}
"""What is where below `scripts/`."""


def run_script(name: str) -> None:
    """Run a script with the arguments of this process, and end with the exit code of its command.

    Parameters
    ----------
    name
        Where it is below `scripts/`.
    """
    script, arguments = SCRIPTS[name], sys.argv[1:]
    with exit_codes():
        if "--help" in arguments:
            print(help_of(name, script))  # noqa: T201
            return
        given = translated(script, arguments)
        for note in given.notes:
            say(f"note: {note}")
        script.run(given)
