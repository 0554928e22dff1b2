"""What the logs of an interrupted and of an uninterrupted run prove."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Claim", "History", "prove", "read_history", "steps_in"]

_LOSS_TOLERANCE = 1e-6
# The beginning and the end of a curve: as many steps each.
_STEPS_OF_A_MEAN = 6


@dataclass(slots=True)
class History:
    """What was trained on, in the order of the optimizer's steps."""

    batches: dict[tuple[int, int], Mapping[str, Any]] = field(default_factory=dict)
    """(step, slot) to its batch; trained again after a kill, the last time counts."""
    losses: dict[int, float] = field(default_factory=dict)
    """Step to the mean loss of its micro-batches."""
    again: int = 0
    """Batches that were trained again because the kill came after the last checkpoint."""
    again_otherwise: int = 0
    """Of those, the ones whose samples or tensors were other ones the second time."""

    @property
    def num_steps(self) -> int:
        """How many steps were made."""
        return len(self.losses)


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that was to be proved."""

    text: str
    """What, for people."""
    holds: bool
    """Whether it is so."""
    detail: str
    """The figures."""


def read_history(logs: Sequence[Path]) -> History:
    """Put logs together, later ones over earlier ones; half a last line counts for nothing."""
    history = History()
    for log in logs:
        for line in _lines(log):
            if "loss" in line:
                history.losses[line["step"]] = line["loss"]
                continue
            place = (line["step"], line["slot"])
            before = history.batches.get(place)
            if before is not None:
                history.again += 1
                history.again_otherwise += _content(before) != _content(line)
            history.batches[place] = line
    return history


def steps_in(log: Path) -> int:
    """How many steps the run is into, by one rank's log."""
    return max((line["step"] + 1 for line in _lines(log) if "loss" in line), default=0)


def prove(
    straight: History, broken: History, *, names: Sequence[str], resumed_at: Sequence[int]
) -> list[Claim]:
    """Compare the run that was killed with the one that was not.

    Parameters
    ----------
    straight
        The uninterrupted run.
    broken
        The run that was killed and resumed.
    names
        Which utterances there are.
    resumed_at
        The first step after each kill.
    """
    places = sorted(straight.batches)
    same_places = places == sorted(broken.batches)
    pairs = [(straight.batches[p], broken.batches.get(p, {})) for p in places]
    order = sum(one["ids"] == two.get("ids") for one, two in pairs)
    tensors = sum(one["bytes"] == two.get("bytes") for one, two in pairs)
    furthest = max(
        (
            abs(loss - broken.losses.get(step, float("inf")))
            for step, loss in straight.losses.items()
        ),
        default=float("inf"),
    )
    first, last = _ends(broken)
    return [
        _killed_inside_passes(straight, resumed_at),
        _every_sample_once(broken, names),
        Claim(
            "same samples in the same order as the uninterrupted run",
            same_places and order == len(places) > 0,
            f"{order} of {len(places)} micro-batches",
        ),
        Claim(
            "same bytes in every tensor (SHA-256)",
            same_places and tensors == len(places) > 0,
            f"{tensors} of {len(places)} micro-batches",
        ),
        Claim(
            "what a kill lost was trained again with the same bytes",
            broken.again_otherwise == 0,
            f"{broken.again - broken.again_otherwise} of {broken.again} micro-batches",
        ),
        Claim(
            "same loss at every step",
            furthest <= _LOSS_TOLERANCE,
            f"largest difference {furthest:.1e}",
        ),
        Claim("the loss went down", last < first, f"from {first:.2f} to {last:.2f}"),
    ]


def _killed_inside_passes(history: History, resumed_at: Sequence[int]) -> Claim:
    """A resume at the first step of a pass would prove little: nothing of it was drawn yet."""
    pass_of = {step: batch["of_pass"] for (step, _), batch in history.batches.items()}
    inside = [
        step for step in resumed_at if step in pass_of and pass_of.get(step - 1) == pass_of[step]
    ]
    return Claim(
        "every resume was in the middle of a pass",
        len(inside) == len(resumed_at) > 0,
        "at step " + " and ".join(map(str, resumed_at)),
    )


def _every_sample_once(history: History, names: Sequence[str]) -> Claim:
    passes: dict[int, Counter[str]] = {}
    repeated = 0
    for batch in history.batches.values():
        seen = passes.setdefault(batch["of_pass"], Counter())
        for name, again in zip(batch["ids"], batch["repeated"], strict=True):
            if again:
                repeated += 1
            else:
                seen[name] += 1
    # The run may have ended inside its last pass, and only there.
    expected = Counter(names)
    last = passes[max(passes)] if passes else Counter[str]()
    whole = [seen for seen in passes.values() if seen is not last or seen == expected]
    text = "every sample exactly once in every pass"
    if not whole:
        text = "no sample twice in the part of a pass that was trained"
    return Claim(
        text,
        bool(last) and last <= expected and all(seen == expected for seen in whole),
        f"{len(whole)} passes of {len(names)} samples"
        + (f", and {last.total()} samples of the next" if last != expected else "")
        + (f", {repeated} marked repeats" if repeated else ""),
    )


def _content(batch: Mapping[str, Any]) -> tuple[Any, Any]:
    return batch["ids"], batch["bytes"]


def _ends(history: History) -> tuple[float, float]:
    losses = [history.losses[step] for step in sorted(history.losses)]
    if not losses:
        return float("nan"), float("nan")
    first, last = losses[:_STEPS_OF_A_MEAN], losses[-_STEPS_OF_A_MEAN:]
    return sum(first) / len(first), sum(last) / len(last)


def _lines(log: Path) -> list[dict[str, Any]]:
    if not log.exists():
        return []
    lines: list[dict[str, Any]] = []
    for text in log.read_text(encoding="utf-8").splitlines(keepends=True):
        if not text.endswith("\n"):
            break
        lines.append(json.loads(text))
    return lines
