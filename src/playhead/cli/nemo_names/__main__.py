"""`python -m playhead.cli.nemo_names speechlm2/oomptimizer.py …`, for want of a checkout."""

from __future__ import annotations

import sys

from playhead.cli.nemo_names import SCRIPTS, run_script

__all__: list[str] = []

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in SCRIPTS:
        print("playhead: give one of", ", ".join(SCRIPTS), file=sys.stderr)  # noqa: T201
        sys.exit(2)
    name = sys.argv.pop(1)
    run_script(name)
