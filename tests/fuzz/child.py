"""A process that runs cases one after another and says what came of each.

To repeat one case: ``PYTHONPATH=tests python -m fuzz.child 1234``
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import shutil
import sys
import tempfile
import warnings
from dataclasses import asdict
from pathlib import Path

# What no reader of these corpora of a few kilobytes has a use for.
MOST_BYTES = 12 << 30


def fast_folder() -> str:
    """In memory where there is some, as every case writes and syncs files; `TMPDIR` wins."""
    shared = "/dev/shm"
    has_room = "TMPDIR" not in os.environ and os.access(shared, os.W_OK)
    return shared if has_room else tempfile.gettempdir()


def main(numbers: list[int]) -> None:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"
    from fuzz.cases import run_case

    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    with tempfile.TemporaryDirectory(prefix="playhead-fuzz-", dir=fast_folder()) as name:
        # What a case writes where it stands goes with the rest.
        os.chdir(name)
        for number in numbers:
            print(json.dumps({"begins": number}), flush=True)
            verdict = run_case(number, Path(name))
            print(json.dumps(asdict(verdict)), flush=True)
            shutil.rmtree(Path(name) / f"case{number}", ignore_errors=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    first, _, last = given[0].partition("-")
    main(list(range(int(first), int(last) + 1)) if last else [int(number) for number in given])
