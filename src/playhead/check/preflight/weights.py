"""Rules on the shares of a blend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.check.preflight.changes import diff, spot_of, written
from playhead.check.preflight.reading import faults_of
from playhead.check.preflight.rule import Seen, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.check.preflight.subject import Subject

__all__: list[str] = []


@rule("weights", "fail", "Shares of a blend follow from the weights of all siblings", 24)
def weights(subject: Subject) -> Iterator[Seen]:
    """Weights that only some have, below 0, not finite, or all 0."""
    for seen in faults_of(subject, "weights"):
        spot = spot_of(seen.where)
        is_entry = spot is not None and isinstance(written(spot), dict)
        change = diff(spot, add={"weight": 1}) if spot is not None and is_entry else ()
        yield seen._replace(change=change)


@rule("reweight-temperature", "fail", "Each level of a blend needs its own exponent", 24)
def reweight_temperature(subject: Subject) -> Iterator[Seen]:
    """Lists of temperatures of another length than there are levels."""
    for seen in faults_of(subject, "reweight-temperature"):
        change = diff(subject.section, add={"reweight_temperature": 1.0})
        yield seen._replace(change=seen.change or change)


@rule("weight-zero", "warning", "Data of weight 0 are never trained on", 24)
def weight_zero(subject: Subject) -> Iterator[Seen]:
    """Leaves that no draw goes to."""
    for named in subject.leaves:
        if not named.leaf.weight:
            yield Seen(
                f"leaf {named.leaf.name} has the weight 0",
                str(named.spot.at("weight")),
                diff(named.spot, add={"weight": 1}),
                "Give it a weight, or take the entry out",
            )
