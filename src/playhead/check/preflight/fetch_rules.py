"""Rules on samples that were fetched; they see nothing where none were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.check.preflight.changes import diff
from playhead.check.preflight.fetching import Fetched, LeafFetch, fetch_some
from playhead.check.preflight.modes import MODES
from playhead.check.preflight.rule import Seen, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.check.preflight.subject import Subject

__all__ = ["fetched"]


def fetched(subject: Subject) -> Fetched | None:
    """What was fetched; None where nobody asked for it."""
    if "fetch" in subject.facts and "fetched" not in subject.facts:
        subject.facts["fetched"] = fetch_some(subject, subject.facts["fetch"])
    return subject.facts.get("fetched")


def _leaves(subject: Subject) -> tuple[LeafFetch, ...]:
    found = fetched(subject)
    return () if found is None else found.leaves


@rule("fetch-storage", "fail", "Training stops where a disk or a store goes on failing", 52)
def fetch_storage(subject: Subject) -> Iterator[Seen]:
    """Samples that did not come."""
    for one in _leaves(subject):
        if one.failed:
            retry = (
                "Look at the objects by hand; USE_AIS_INDIVIDUAL_GETS=true fetches one by one"
                if one.mode == "ais-batch"
                else "Look at the disk or the store"
            )
            yield Seen(
                f"{one.failed} of {one.asked} samples of leaf {one.leaf} did not come by"
                f" {MODES[one.mode]}, and {one.not_tried} were not tried: {one.failures[-1]}",
                one.leaf,
                advice=retry,
            )


@rule("fetch-data", "fail", "Training stops at a row, an archive or an index that is wrong")
def fetch_data(subject: Subject) -> Iterator[Seen]:
    """Samples that could not be made."""
    for one in _leaves(subject):
        if one.bad_data:
            yield Seen(
                f"{one.bad_data} of {one.asked} samples of leaf {one.leaf} could not be made:"
                f" {one.failures[-1]}",
                one.leaf,
            )


@rule(
    "fetch-audio",
    "fail",
    "Training stops at audio that cannot be decoded, unless it may be left out",
)
def fetch_audio(subject: Subject) -> Iterator[Seen]:
    """Samples whose audio cannot be used."""
    tolerant = any(options.fault_tolerant_audio_loading for _, options, _, _ in subject.parts)
    for one in _leaves(subject):
        if one.bad_audio:
            yield Seen(
                f"the audio of {one.bad_audio} of {one.asked} samples of leaf {one.leaf} cannot be"
                f" used: {next(said for said in one.failures if said.startswith('bad audio'))}",
                one.leaf,
                ()
                if tolerant
                else diff(subject.section, add={"fault_tolerant_audio_loading": True}),
                "Repair or exclude them; with fault_tolerant_audio_loading they are left out and"
                " listed",
                "warning" if tolerant and one.fetched else None,
            )
