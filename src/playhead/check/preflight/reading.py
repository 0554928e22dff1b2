"""What the reader of configs refuses or remarks, under the ids of rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.check.preflight.changes import NOTHING, diff, spot_of, written
from playhead.check.preflight.rule import Seen, rule
from playhead.errors import SourceNotFoundError, UnknownOptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.check.preflight.subject import Subject
    from playhead.errors import PlayheadError

__all__ = ["fault_rule", "faults_of", "notes_of"]

_WRITE = re.compile(r"Write `([^`]+)`")
_OTHER: Final = "config-refused"
# What stands at the end of a place to the rule that a fault there belongs to.
_BY_KEY = {
    "weight": "weights",
    "type": "entry-type",
    "reweight_temperature": "reweight-temperature",
    "bucket_duration_bins": "bins",
    "bucket_batch_size": "bins",
    "sampler_weights": "multi-config",
    "prompt_format": "prompt-format",
}
# How a sentence reads to the rule that it belongs to; names and paths of people may hold any word.
_BY_SENTENCE = {
    re.compile(sentence, re.IGNORECASE): id_
    for sentence, id_ in (
        (r"\d+ of \d+ siblings have no weight", "weights"),
        (r"some \w+ paths have a weight and some have none", "weights"),
        (r"the \w+ .* has a weight that its \w+ has not", "weights"),
        (r"all weights are 0", "weights"),
        (r"the weight .* is not a number of at least 0", "weights"),
        (r"`\w+` does not belong to an entry of type .*", "entry-type"),
        (r"an entry of type .*", "entry-type"),
        (r"`index_pack` is given .*", "pack-undeclared"),
        (r"the lists of \w+ and \w+ paths have .*", "shard-pairing"),
        (r"the section has multi_config and .*", "multi-config"),
        (r"multi_config is given to the call.*", "multi-config"),
        (r"`.*` is a mapping, which multi_config takes for a sub-config.*", "multi-config"),
    )
}
# Words of the reader's remarks to the rule that they belong to.
_REMARKS = {
    "that mean nothing here": "unknown-keys",
    "reach no sub-config": "multi-config",
    "the top level decides": "multi-config",
    "no effect": "idle-options",
    "gives them no size": "longer-than-bins",
    "have no meaning here": "",
}


def fault_rule(fault: PlayheadError) -> str:
    """Return the id of the rule that something refused belongs to."""
    if isinstance(fault, UnknownOptionError):
        return "misspelt-key"
    if isinstance(fault, SourceNotFoundError):
        return "source-missing"
    spot = spot_of(fault.where)
    last = spot.keys[-1] if spot is not None and spot.keys else None
    if last in _BY_KEY:
        return _BY_KEY[str(last)]
    said = _said(fault)
    return next((id_ for form, id_ in _BY_SENTENCE.items() if form.fullmatch(said)), _OTHER)


def faults_of(subject: Subject, id_: str) -> Iterator[Seen]:
    """What the reader refuses that belongs to a rule."""
    for fault in subject.faults:
        if fault_rule(fault) == id_:
            yield Seen(_said(fault), fault.where, _change(fault), fault.advice)


def notes_of(subject: Subject, id_: str) -> Iterator[Seen]:
    """What the reader remarks that belongs to a rule."""
    remarks = [*subject.blends.notes]
    for blend in subject.blends.parts.values():
        remarks += blend.notes
    for note in dict.fromkeys(remarks):
        owner = next((owner for words, owner in _REMARKS.items() if words in note), "config-note")
        if owner == id_:
            yield Seen(note, str(subject.section))


def _said(fault: PlayheadError) -> str:
    """What happened, without the place and the advice."""
    return str(fault).partition(f" ({fault.where})")[0].rstrip(".")


def _change(fault: PlayheadError) -> tuple[str, ...]:
    """The change that a message proposes, where it proposes one word for another."""
    spot = spot_of(fault.where)
    meant = _WRITE.search(fault.advice or "")
    if spot is None or not spot.keys or meant is None:
        return ()
    *above, last = spot.keys
    mapping = type(spot)(spot.file, tuple(above))
    if isinstance(fault, UnknownOptionError):
        value = written(spot)
        return () if value is NOTHING else diff(mapping, remove=(str(last),), add={meant[1]: value})
    return diff(mapping, add={str(last): meant[1]})


@rule("config-refused", "fail", "No loader is made of a config that holds something impossible", 38)
def config_refused(subject: Subject) -> Iterator[Seen]:
    """Whatever else the reader refuses."""
    yield from faults_of(subject, _OTHER)


@rule("misspelt-key", "fail", "A misspelt key would change what is trained on in silence", 19)
def misspelt_key(subject: Subject) -> Iterator[Seen]:
    """Keys that look like known ones."""
    yield from faults_of(subject, "misspelt-key")


@rule("unknown-keys", "warning", "Nothing follows from a key that nobody knows", 19)
def unknown_keys(subject: Subject) -> Iterator[Seen]:
    """Keys of the section that are nobody's."""
    yield from notes_of(subject, "unknown-keys")


@rule("idle-options", "warning", "An option without effect was meant to have one", 39)
def idle_options(subject: Subject) -> Iterator[Seen]:
    """Options that need another one."""
    yield from notes_of(subject, "idle-options")


@rule("multi-config", "fail", "Every part has to know what it is and when its turn is", 37)
def multi_config(subject: Subject) -> Iterator[Seen]:
    """What the top level lacks, or says in vain."""
    yield from faults_of(subject, "multi-config")
    for seen in notes_of(subject, "multi-config"):
        yield seen._replace(severity="warning")


@rule("config-note", "note", "The config says something that is done in another way here")
def config_note(subject: Subject) -> Iterator[Seen]:
    """All other remarks of the reader."""
    yield from notes_of(subject, "config-note")


@rule("other-sections", "note", "Only one section is checked at a time")
def other_sections(subject: Subject) -> Iterator[Seen]:
    """Sections with data beside the one that is checked."""
    from playhead.blend.section import INPUTS  # noqa: PLC0415  (used here alone)

    found: list[str] = []

    def walk(node: object, keys: tuple[str, ...]) -> None:
        if not isinstance(node, dict) or len(keys) > 6 or keys == subject.section.keys:
            return
        if keys and any(node.get(key) is not None for key in INPUTS):
            found.append(".".join(keys))
            return
        for key, value in node.items():
            walk(value, (*keys, str(key)))

    if subject.section.keys:
        walk(subject.content, ())
    for name in found:
        command = f"playhead check {subject.command} --section {name}"
        yield Seen(f"the section {name} is not checked", name, advice=f"Run `{command}`")
