"""Measures Playhead and Lhotse in turns, prints a table, and writes `bench-results.json`.

Every measurement is a process of its own; figures are medians over three turns. Nothing here is a
test: on a busy machine, look at the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from corpus import FULL, QUICK, synthesise
from figures import FIGURES
from report import table_of

_HERE = Path(__file__).parent
_DEADLINE = 600
# Nothing of these depends on the clock.
_EXACT = {"evenness", "locality"}


def main() -> int:
    options = _options()
    names = options.only or list(dict.fromkeys(figure.bench for figure in FIGURES))
    folder = Path(options.data) / ("quick" if options.quick else "full")
    folder.mkdir(parents=True, exist_ok=True)
    _say("making the corpora, the first time only")
    synthesise(folder, QUICK if options.quick else FULL)
    pythons = {"ours": sys.executable, "peer": options.peer_python}
    if not Path(pythons["peer"]).is_file():
        _say(f"no peer: {options.peer_python!r} is no Python (`make peer` makes one)")
        del pythons["peer"]
    medians: dict[str, dict[str, float]] = {side: {} for side in ("ours", "peer")}
    failed = False
    for name in names:
        turns = 1 if options.quick or name in _EXACT else options.turns
        values: dict[str, dict[str, list[float]]] = {
            side: defaultdict(list) for side in ("ours", "peer")
        }
        for turn in range(turns):
            for side, python in pythons.items():
                script = _HERE / side / f"{name}.py"
                if not script.exists():
                    continue
                begin = time.perf_counter()
                figures = _measured([python, str(script), str(folder)], quick=options.quick)
                failed |= figures is None
                for key, value in (figures or {}).items():
                    values[side][key].append(value)
                seconds = time.perf_counter() - begin
                _say(f"{name}, {side}, turn {turn + 1} of {turns}: {seconds:.0f} s")
        for side, found in values.items():
            medians[side] |= {f"{name}.{key}": statistics.median(v) for key, v in found.items()}
    _write(Path(options.output), medians)
    print(table_of([figure for figure in FIGURES if figure.bench in names], medians))
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    names = sorted({figure.bench for figure in FIGURES})
    parser.add_argument("--quick", action="store_true", help="small corpora, one turn")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--turns", type=int, default=3, help="turns of each measurement")
    parser.add_argument(
        "--peer-python",
        default=os.environ.get("PLAYHEAD_PEER_PYTHON", ".venv-peer/bin/python"),
        metavar="FILE",
        help="Python that has Lhotse 2 (default: PLAYHEAD_PEER_PYTHON, here %(default)s)",
    )
    parser.add_argument("--output", default="bench-results.json", help="where results are written")
    parser.add_argument(
        "--data",
        default=str(Path(tempfile.gettempdir()) / "playhead-bench"),
        help="where corpora are kept (about 2.5 GB)",
    )
    return parser.parse_args()


def _measured(command: list[str], *, quick: bool) -> dict[str, float] | None:
    """Figures of one measurement; None, with its last words, if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(_HERE), "PYTHONWARNINGS": "ignore"}
    try:
        ran = subprocess.run(
            [*command, *(["--quick"] if quick else [])],
            capture_output=True,
            text=True,
            timeout=_DEADLINE,
            check=True,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        _say(f"FAILED: {command[1]} took more than {_DEADLINE} s")
        return None
    except subprocess.CalledProcessError as error:
        _say(f"FAILED: {command[1]}\n{error.stderr[-2000:]}")
        return None
    return json.loads(ran.stdout.splitlines()[-1])


def _write(path: Path, medians: dict[str, dict[str, float]]) -> None:
    """Write one key a figure, and keep those of measurements that did not run this time."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    for side, figures in medians.items():
        kept |= {f"{side}.{key}": value for key, value in figures.items()}
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
