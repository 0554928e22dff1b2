"""Probes a model that does what it is told, until somebody ends it; a line for each thing done."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from playhead.fit.probing.process_prober import ProcessProber
from playhead.fit.training import Training
from support.small_models import FOLDER, OPTIONS, small


def main():
    print("started", flush=True)
    folder = Path(os.environ[FOLDER])
    training = Training(dtype="float32")
    with ProcessProber(small("Told"), [10], training, OPTIONS, log=folder / "log") as prober:
        print("open", flush=True)
        for size in range(1, 1000):
            print(prober.probe(0, size).status, flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(130)
