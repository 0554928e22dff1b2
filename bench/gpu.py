"""Whole searches on a GPU: what they cost, how right predictions are, whether the sizes hold.

Prints the table of `docs/oomptimizer.md` and writes `bench-gpu-results.json`. What is done is kept
in `bench-gpu-run/`: stopped, it goes on where it was. Without a GPU it says so, and exits with 2.
`--device cpu --memory 200MiB --model MODULE:NAME` goes through all of it without one: that proves
this script, and says nothing of a GPU.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.fit.record import ProbeRecord
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.fit.device import Opened
    from playhead.fit.problem import Problem

_HERE = Path(__file__).parent
_EXAMPLES = _HERE.parent / "examples"
_DEADLINE = 3 * 3600
# Of an order of steps in which the search has tried nothing: its own seeds count from 0.
_SEED = 1_000_000
_ROWS = {
    "device": "GPU",
    "tries": "tries for {buckets} buckets",
    "seconds": "seconds",
    "largest_error": "largest difference of prediction and measured tensors",
    "largest_overhead": "largest share of the allocator above the tensors",
    "mixed_steps": "mixed steps that were clean, of {steps} with another seed",
    "one_more": "buckets that pass alone with one multiple more",
    "original_tries": "the original's algorithm: tries",
    "original_seconds": "the original's algorithm: seconds",
    "original_mixed_steps": "the original's sizes: mixed steps that were clean",
    "throughput": "samples of a mixed step, ours by the original's",
}
# openai/whisper-small, by the numbers of its config: no hub is asked.
_WHISPER_SMALL = {
    "model_type": "whisper",
    "d_model": 768,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_attention_heads": 12,
    "decoder_attention_heads": 12,
    "encoder_ffn_dim": 3072,
    "decoder_ffn_dim": 3072,
    "vocab_size": 51865,
}


def main() -> int:
    options = _options()
    import torch

    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print("bench-gpu needs a GPU, and torch sees none here", file=sys.stderr)
        return 2
    sys.path[:0] = [str(_EXAMPLES)]
    # What is measured with other options is another measurement, in a folder of its own.
    asked = {key: value for key, value in vars(options).items() if key not in {"folder", "json"}}
    digest = hashlib.blake2b(json.dumps(asked).encode(), digest_size=4).hexdigest()
    folder = Path(options.folder) / digest
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, Any]] = {}
    for name, source in _models(options, folder).items():
        print(f"== {name}", file=sys.stderr, flush=True)
        stages = _Stages(folder / f"{_stem(name)}.json")
        _measure(name, source, options, folder, stages)
        results[name] = stages.result
    Path(options.json).write_text(json.dumps(results, indent=2) + "\n")
    print(_table(results, options))
    return 0 if all(one["mixed_steps"] == options.steps for one in results.values()) else 1


class _Stages:
    """What was measured of a model, stage by stage, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def do(self, key: str, measure: Callable[[], dict[str, Any]]) -> None:
        """Measure what has a key, unless it is there."""
        if key not in self.result:
            self.result.update(measure())
            with atomic_write(self._path) as file:
                file.write(json.dumps(self.result, indent=2).encode())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--memory", type=str, default=None, help="as 40GiB; all by default")
    parser.add_argument("--memory-fraction", type=float, default=0.9)
    parser.add_argument("--buckets", type=int, default=30, help="of 1, 2, … seconds")
    parser.add_argument("--steps", type=int, default=200, help="of a mix")
    parser.add_argument("--multiple-of", type=int, default=1)
    # Out of reach on any card: the default would end both searches early in the short buckets.
    parser.add_argument("--max-batch-size", type=int, default=2**15)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--model", default=None, help="MODULE:NAME in place of both models")
    parser.add_argument("--folder", default="bench-gpu-run", help="of what is done")
    parser.add_argument("--json", default="bench-gpu-results.json")
    return parser.parse_args()


def _models(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, Any]]:
    """Where each model comes from, as fields of a `ModelSource`."""
    if options.model is not None:
        return {options.model: {"kind": "code", "name": options.model}}
    config = folder / "whisper-small.json"
    config.write_text(json.dumps(_WHISPER_SMALL))
    return {
        "Whisper-small": {"kind": "hf", "name": "whisper", "config": str(config)},
        "Conformer-CTC": {"kind": "code", "name": "fit_conformer_ctc:ConformerCTC"},
    }


def _stem(name: str) -> str:
    return name.replace(":", "-")


def _measure(
    name: str,
    source: dict[str, Any],
    options: argparse.Namespace,
    folder: Path,
    stages: _Stages,
) -> None:
    from playhead.fit.amounts import read_amount
    from playhead.fit.device import opened_device
    from playhead.fit.model import ModelSource
    from playhead.fit.problem import Problem
    from playhead.fit.training import Training

    memory = None if options.memory is None else read_amount(options.memory, "--memory")
    stem = _stem(name)
    begin = time.perf_counter()
    with opened_device(
        ModelSource(**source),
        [float(second) for second in range(1, options.buckets + 1)],
        Training(dtype=options.dtype),
        device=options.device,
        memory=memory,
        fraction=options.memory_fraction,
        seconds=900.0,
        prediction_seconds=60.0,
        log=folder / f"{stem}.log",
    ) as opened:
        problem = Problem(
            buckets=opened.buckets,
            budget=opened.prober.budget,
            multiple_of=options.multiple_of,
            max_batch_size=options.max_batch_size,
            verify_steps=options.steps,
        )
        for note in opened.notes():
            print(f"note: {note}", file=sys.stderr)
        stages.do("sizes", lambda: _searched(opened, problem, folder / f"{stem}.jsonl", begin))
        sizes = stages.result["sizes"]
        stages.do("mixed_steps", lambda: _held(opened, sizes, options))
        path = folder / f"{stem}-original.json"
        stages.do("original_tries", lambda: _original(opened, problem, source, options, path))
    stages.result["throughput"] = _ratio(sizes, stages.result["original_sizes"])


def _searched(opened: Opened, problem: Problem, path: Path, begin: float) -> dict[str, Any]:
    from playhead.fit.journal import Journal
    from playhead.fit.search import run_search

    with Journal(path, dict(opened.facts), resume=True) as journal:
        found = run_search(problem, opened.prober, journal, _Teller())
    # The tries of a run that was stopped count as well.
    seconds = max(time.perf_counter() - begin, found.seconds)
    return {
        "device": opened.facts["device"],
        "tries": found.probes + found.mixes,
        "seconds": round(seconds, 1),
        "sizes": list(found.sizes),
        **_peaks(opened, journal.records),
    }


class _Teller:
    """Says what was tried, on stderr."""

    def begin(self, action: Any) -> None:
        print(action, end="  ", file=sys.stderr, flush=True)

    def end(self, record: Any) -> None:
        print(record.status, f"{record.seconds:.1f} s", file=sys.stderr, flush=True)


def _peaks(opened: Opened, records: Sequence[Any]) -> dict[str, float | None]:
    """How far predictions are off, and the allocator above the tensors, where a size fitted."""
    fitted = [record for record in records if isinstance(record, ProbeRecord) and record.allocated]
    predicted = [opened.prober.predict(one.bucket, one.batch_size) for one in fitted]
    errors = [
        abs(foretold / one.allocated - 1)
        for one, foretold in zip(fitted, predicted, strict=True)
        if foretold and one.allocated
    ]
    above = [one.reserved / one.allocated - 1 for one in fitted if one.reserved and one.allocated]
    return {
        "largest_error": max(errors, default=None),
        "largest_overhead": max(above, default=None),
    }


def _held(opened: Opened, sizes: Sequence[int], options: argparse.Namespace) -> dict[str, int]:
    """Train a mix in another order, and try each bucket with one multiple more."""
    mix = opened.prober.mix(sizes, options.steps, _SEED)
    more = [
        opened.prober.probe(number, size + options.multiple_of).status == "ok"
        for number, size in enumerate(sizes)
        if size and size + options.multiple_of <= options.max_batch_size
    ]
    return {"mixed_steps": mix.done, "one_more": sum(more)}


def _original(
    opened: Opened,
    problem: Problem,
    source: dict[str, Any],
    options: argparse.Namespace,
    path: Path,
) -> dict[str, Any]:
    """Search with the original tool's algorithm, on the same model and budget."""
    asked = {
        "source": source,
        "dtype": options.dtype,
        "device": options.device,
        "budget": problem.budget,
        "largest": options.max_batch_size,
        "buckets": [[one.bound, one.input_length, one.output_length] for one in problem.buckets],
    }
    path.write_text(json.dumps(asked))
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(_HERE / "original.py"), str(path)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=_DEADLINE,
        check=False,
    )
    seconds = time.perf_counter() - begin
    if done.returncode:
        # Its steps share one process: one that fails otherwise than for memory ends all of them.
        print(f"the original's search ended with exit code {done.returncode}", file=sys.stderr)
        return dict.fromkeys(
            ["original_tries", "original_seconds", "original_sizes", "original_mixed_steps"]
        )
    found = json.loads(done.stdout.splitlines()[-1])
    mix = opened.prober.mix(found["sizes"], options.steps, _SEED)
    return {
        "original_tries": found["tries"],
        "original_seconds": round(seconds, 1),
        "original_sizes": found["sizes"],
        "original_mixed_steps": mix.done,
    }


def _ratio(ours: Any, original: Any) -> float | None:
    return sum(ours) / sum(original) if original and sum(original) else None


def _table(results: dict[str, dict[str, Any]], options: argparse.Namespace) -> str:
    lines = ["| | " + " | ".join(results) + " |", "|" + "---|" * (len(results) + 1)]
    for key, what in _ROWS.items():
        cells = [_cell(key, one.get(key)) for one in results.values()]
        said = what.format(buckets=options.buckets, steps=options.steps)
        lines.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "not measured"
    if key in {"largest_error", "largest_overhead"}:
        return f"{100 * value:.2f} %"
    return f"{value:.2f}" if key == "throughput" else str(value)


if __name__ == "__main__":
    sys.exit(main())
