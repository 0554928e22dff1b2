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
            history.again += place in history.batches
            history.batches[place] = line
    return history


def steps_in(log: Path) -> int:
    """How many steps the run is into, by one rank's log."""
    return max((line["step"] + 1 for line in _lines(log) if "loss" in line), default=0)


def prove(straight: History, broken: History, names: Sequence[str]) -> list[Claim]:
    """Compare the run that was killed with the one that was not.

    Parameters
    ----------
    straight
        The uninterrupted run.
    broken
        The run that was killed and resumed.
    names
        Which utterances there are; empty if nobody knows.
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
            "same loss at every step",
            furthest <= _LOSS_TOLERANCE,
            f"largest difference {furthest:.1e}",
        ),
        Claim("the loss went down", last < first, f"from {first:.2f} to {last:.2f}"),
    ]


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
    whole = sorted(passes)[:-1] or sorted(passes)
    once = all(count == 1 for seen in passes.values() for count in seen.values())
    expected = Counter(names)
    complete = all(passes[number] == expected for number in whole) if names else True
    return Claim(
        "every sample exactly once in every pass",
        bool(passes) and complete and (once or not names),
        f"{len(passes)} passes, {sum(sum(seen.values()) for seen in passes.values())} samples"
        + (f", {repeated} marked repeats" if repeated else ""),
    )


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
