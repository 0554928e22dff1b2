"""What `playhead bins` says of bins, for people and for programs."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from playhead.version import own_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.bins.result import Bins

__all__ = ["header_of", "story_of", "to_json"]


def story_of(bins: Bins) -> list[str]:
    """Return what became of the samples, in sentences."""
    tally = bins.tally
    lines: list[str] = []
    if tally.refused:
        lines.append(f"Refused {_examples(sum(tally.refused.values()))}: {_reasons(bins)}.")
    few = f"{tally.weighed:,} of " if tally.weighed < tally.accepted else ""
    lines.append(f"Used {few}{_examples(tally.accepted)}.")
    if bins.left_out:
        lines.append(
            f"Left out {_examples(bins.left_out)} with far more tokens than others of their length"
            " (--token_outlier_threshold): training drops them."
        )
    if bins.gain is not None:
        gain = bins.gain
        lines.append(
            f"Padding is {gain.least:.2%} of what is batched with these edges, and"
            f" {gain.equal_mass:.2%} with edges of equal mass."
        )
    return lines


def header_of(bins: Bins, inputs: Sequence[str]) -> list[str]:
    """Return what a file of bins was made from and how, in comments."""
    return [
        f"Made by playhead {own_version()} from {_line(' '.join(inputs))}:",
        f"  playhead {_line(shlex.join(sys.argv[1:]))}",
        *story_of(bins),
    ]


def to_json(bins: Bins, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return bins for programs."""
    gain = bins.gain
    return {
        "options": dict(keys),
        "accepted": bins.tally.accepted,
        "used": bins.tally.weighed,
        "refused": bins.tally.refused,
        "left_out": bins.left_out,
        "padding": None
        if gain is None
        else {"least_padding": gain.least, "equal_mass": gain.equal_mass},
        "notes": list(bins.notes),
    }


def _examples(count: int) -> str:
    return f"{count:,} example{'' if count == 1 else 's'}"


def _reasons(bins: Bins) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in bins.tally.refused.items())


def _line(text: str) -> str:
    """One line of a comment; long lists of inputs are cut."""
    text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= 300 else f"{text[:299]}…"
