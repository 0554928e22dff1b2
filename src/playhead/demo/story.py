"""The demonstration from beginning to end, and what is told of it."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch

import playhead
from playhead.demo.corpus import corpus_of_manifest, make_corpus
from playhead.demo.model import TinyCtc, edits
from playhead.demo.proof import Claim, History, prove, read_history, steps_in
from playhead.demo.ranks import Stage, run_stage
from playhead.errors import PlanError
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.demo.corpus import Corpus

__all__ = ["Report", "run_demo"]

_MICRO_BATCHES = 6
_SAVE_EVERY = 3
_UTTERANCES = 360
# A breath after each step, so that the kill comes where it is meant: steps take milliseconds.
_PAUSE_SECONDS = 0.1
_EXAMPLES = 5
_BATCHES_HEARD = 40
# So many steps a kill may come late and still hit the same pass.
_LATE_STEPS = 4
_MIN_STEPS_OF_A_PASS = _SAVE_EVERY + 1 + _LATE_STEPS


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What a demonstration proved."""

    corpus: str
    """What it trained on."""
    stages: list[dict[str, Any]]
    """The parts of the interrupted run."""
    claims: list[Claim]
    """What was to be proved."""
    steps: int
    """Optimizer steps of either run."""
    again: int
    """Micro-batches trained again after kills."""
    recognised: list[tuple[str, str]]
    """Some transcripts: said, understood."""
    error_rate: float
    """Characters that the model got wrong, of those said in the data that it trained on."""
    state: dict[str, Any]
    """The loader's whole state in the last checkpoint."""
    seconds: float
    """Wall seconds of all of it."""

    @property
    def holds(self) -> bool:
        """Whether everything was proved."""
        return all(claim.holds for claim in self.claims)


def run_demo(
    folder: Path,
    manifest: Path | None,
    *,
    steps: int,
    seed: int,
    workers: tuple[int, int, int],
    say: Callable[[str], None],
) -> Report:
    """Train, kill, resume, compare; write `report.json` and `report.md`.

    Parameters
    ----------
    folder
        Where everything goes; what an earlier demonstration left there is removed.
    manifest
        The user's data; None makes some.
    steps
        Optimizer steps of each run.
    seed
        Of the corpus that is made.
    workers
        Worker processes of each loader: on two processes, on one, and on three.
    say
        Gets one line after the other for people to read.

    Raises
    ------
    PlayheadError
        When the data cannot be used, or a process fails.
    """
    begin = time.monotonic()
    for name in ("corpus", "logs"):
        shutil.rmtree(folder / name, ignore_errors=True)
    logs = folder / "logs"
    logs.mkdir(parents=True)
    corpus = (
        make_corpus(folder / "corpus", utterances=_UTTERANCES, seed=seed)
        if manifest is None
        else corpus_of_manifest(manifest, folder / "corpus")
    )
    say(f"Data: {corpus.what}.")
    names = _names(corpus)
    say(f"Indexed. A step is {_MICRO_BATCHES} micro-batches, however many processes share it.")
    say(
        f"A checkpoint is written every {_SAVE_EVERY} steps and at the end of a pass; steps after"
        " the last one are lost by a kill and trained again."
    )
    say("")
    first, second = _kills(steps, _steps_of_a_pass(corpus))
    stages = [
        Stage(name="a", ranks=2, workers=workers[0], kill_at=first),
        Stage(name="b", ranks=1, workers=workers[1], kill_at=second),
        Stage(name="c", ranks=3, workers=workers[2], kill_at=None),
    ]
    told = [_told(stage, _command(corpus, logs, steps), logs, say) for stage in stages]
    whole = Stage(name="straight", ranks=1, workers=0, kill_at=None)
    say("For comparison, 1 process that nobody stops:")
    _told(whole, _command(corpus, logs, steps), logs, say)
    straight = read_history([logs / "straight.0.jsonl"])
    broken = read_history(
        [logs / f"{stage.name}.{rank}.jsonl" for stage in stages for rank in range(stage.ranks)]
    )
    saved = torch.load(logs / "broken.pt", weights_only=True)
    recognised, error_rate = _listen(corpus, saved["model"])
    report = Report(
        corpus=corpus.what,
        stages=told,
        claims=prove(
            straight,
            broken,
            names=names,
            resumed_at=[stage["first_step"] for stage in told[1:]],
        ),
        steps=broken.num_steps,
        again=broken.again,
        recognised=recognised,
        error_rate=error_rate,
        state=saved["loader"],
        seconds=time.monotonic() - begin,
    )
    _write(folder, report, straight)
    return report


def _command(corpus: Corpus, logs: Path, steps: int) -> Callable[[Stage], list[str]]:
    """The training command of a stage: those that are killed share a checkpoint."""

    def command(stage: Stage) -> list[str]:
        kind = "straight" if stage.name == "straight" else "broken"
        return [
            "-m",
            "playhead.demo.train",
            f"--blend={corpus.blend}",
            f"--alphabet={corpus.alphabet}",
            f"--checkpoint={logs / f'{kind}.pt'}",
            f"--steps={steps}",
            f"--micro-batches={_MICRO_BATCHES}",
            f"--save-every={_SAVE_EVERY}",
            f"--pause={0 if stage.kill_at is None else _PAUSE_SECONDS}",
        ]

    return command


def _told(
    stage: Stage,
    command: Callable[[Stage], list[str]],
    logs: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    seconds = run_stage(stage, command(stage), logs, steps_in)
    history = read_history([logs / f"{stage.name}.{rank}.jsonl" for rank in range(stage.ranks)])
    trained = sorted(history.losses)
    outcome = "killed with SIGKILL" if stage.kill_at is not None else "ran to the end"
    processes = f"{stage.ranks} process{'es' if stage.ranks > 1 else ''}"
    workers = f"{stage.workers} worker{'' if stage.workers == 1 else 's'} each"
    say(
        f"  {processes}, {workers}: steps {trained[0]} to {trained[-1]}, "
        f"loss {history.losses[trained[0]]:.2f} → {history.losses[trained[-1]]:.2f}, {outcome}"
        f" ({seconds:.0f} s)"
    )
    return {
        "processes": stage.ranks,
        "workers": stage.workers,
        "first_step": trained[0],
        "last_step": trained[-1],
        "outcome": outcome,
        "seconds": round(seconds, 1),
    }


def _steps_of_a_pass(corpus: Corpus) -> int:
    loader = playhead.dataloader(
        corpus.blend, rank=0, world_size=1, micro_batches_per_step=_MICRO_BATCHES
    )
    steps = len(loader) // _MICRO_BATCHES
    if steps < _MIN_STEPS_OF_A_PASS:
        raise PlanError(
            f"the data make {steps} steps a pass, and the demonstration needs"
            f" {_MIN_STEPS_OF_A_PASS} to stop inside one",
            where=str(corpus.blend),
            fix="Take more data",
        )
    return steps


def _kills(steps: int, steps_of_a_pass: int) -> tuple[int, int]:
    """After how many steps to kill: near a third and two thirds, inside a pass each."""

    def inside(step: int) -> int:
        begin = step // steps_of_a_pass * steps_of_a_pass
        # Late enough that a checkpoint lies between, and early enough for a kill that is late.
        least, most = _SAVE_EVERY + 1, steps_of_a_pass - _LATE_STEPS
        return begin + min(max(step - begin, least), most)

    return inside(steps // 3), inside(2 * steps // 3)


def _names(corpus: Corpus) -> list[str]:
    """All utterances, by reading no audio; this is also what indexes the corpus."""
    from playhead.datasets import Ids  # noqa: PLC0415  (with torch's data tools, slow to import)

    loader = playhead.dataloader(
        corpus.blend, dataset=Ids(), rank=0, world_size=1, shuffle=False, num_workers=0
    )
    return [name for batch in loader for name in batch["ids"]]


def _listen(corpus: Corpus, weights: dict[str, Any]) -> tuple[list[tuple[str, str]], float]:
    """What the model makes of the data: some (said, understood), and its character error rate."""
    model = TinyCtc(corpus.alphabet)
    model.load_state_dict(weights)
    loader = playhead.dataloader(corpus.blend, rank=0, world_size=1, shuffle=False, num_workers=0)
    pairs: list[tuple[str, str]] = []
    for batch in islice(loader, _BATCHES_HEARD):
        understood = model.transcribe(batch["audio"], batch["audio_lens"])
        pairs += zip(batch["texts"], understood, strict=True)
    wrong = sum(edits(said, heard) for said, heard in pairs)
    return pairs[:_EXAMPLES], wrong / max(1, sum(len(said) for said, _ in pairs))


def _write(folder: Path, report: Report, straight: History) -> None:
    data = {**asdict(report), "holds": report.holds, "straight_losses": straight.losses}
    with atomic_write(folder / "report.json") as file:
        file.write(json.dumps(data, indent=2).encode())
    with atomic_write(folder / "report.md") as file:
        file.write(_markdown(report).encode())


def _markdown(report: Report) -> str:
    lines = [
        "# What the demonstration proved",
        "",
        f"Data: {report.corpus}. {report.steps} optimizer steps of {_MICRO_BATCHES} micro-batches.",
        "",
        "| processes | workers each | steps | how it ended |",
        "|---|---|---|---|",
        *(
            f"| {s['processes']} | {s['workers']} | {s['first_step']} to {s['last_step']} |"
            f" {s['outcome']} |"
            for s in report.stages
        ),
        "",
        (
            f"{report.again} micro-batches were trained again, because the kill came after the"
            " last checkpoint."
        ),
        "",
        "| claim | holds | |",
        "|---|---|---|",
        *(f"| {c.text} | {'yes' if c.holds else 'NO'} | {c.detail} |" for c in report.claims),
        "",
        f"Character error rate on the data it trained on: {report.error_rate:.1%}.",
        "",
        "The loader's whole state in the last checkpoint:",
        "",
        "```json",
        json.dumps(report.state),
        "```",
    ]
    return "\n".join(lines) + "\n"
