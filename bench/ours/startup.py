"""Playhead: importing it, and the help of its command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from meter import Settings, main, median_cpu


def measure(settings: Settings) -> dict[str, float]:
    del settings
    command = [str(Path(sys.executable).with_name("playhead")), "--help"]
    statement = [sys.executable, "-c", "import playhead"]
    return {
        name: median_cpu(lambda line=line: subprocess.run(line, check=True, capture_output=True))
        for name, line in (("help_s", command), ("import_s", statement))
    }


if __name__ == "__main__":
    main(measure)
