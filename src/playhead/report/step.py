"""What one step trains on, and why: everything that a page or a program shows of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from playhead.report.step_text import step_text

__all__ = ["StepBatch", "StepContents", "StepLeaf", "StepSample", "StepWindow"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepSample:
    """One sample, and the draw that it comes of."""

    leaf: str
    """Name of its source."""
    key: str
    """Key of its source."""
    pass_number: int
    """How often the source had been drawn from end to end before this draw."""
    place: int
    """Which draw of that pass it is, counted from 0: its place in the order of the pass."""
    rows_of_pass: int
    """Rows that the pass is over."""
    row: int
    """Row of the source's index."""
    part: int
    """Part of the row where a row gives several samples; 0 otherwise."""
    repeated: bool
    """Whether a finite pass repeats it to fill its last step."""
    seconds: float | None
    """Length as it is trained on; None of what has no audio."""
    tokens: int | None
    """Tokens; None where nothing counts them."""
    cost: float
    """What it counts by itself, in the unit of the part: its effective length."""
    speed: float
    """Speed that it is played at."""
    start: float
    """Where it begins in its row, once its speed is changed, seconds."""
    window: float | None
    """Seconds of its row that it is, before padding; None where it is the whole row."""
    text_window: int | None
    """Tokens of the windows that its text is cut into; None where it is whole."""
    manifest: str | None
    """The file that holds its row."""
    manifest_byte: int | None
    """Where the row begins in it; of tables the number of the row."""
    archive: str | None
    """The archive that holds its audio; None where its row names files, or has none."""
    archive_byte: int | None
    """Where the audio begins in it."""
    id: str | None = None
    """What its row calls it; None where rows were not read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepBatch:
    """One micro-batch, and how it came about."""

    slot: int
    """Its slot in the step."""
    rank: int
    """The rank that trains on it."""
    part: str
    """The blend that it is of; empty where the config is one blend."""
    unit: str
    """What it is measured by: `seconds` or `tokens`."""
    bucket: tuple[float, ...] | None
    """Upper bound of its bucket: a length, or a length and tokens; None where the config has no
    buckets, or its longest sample is above them all."""
    size: int | None
    """Samples that the config gives its bucket; None where it gives none."""
    limit: str
    """What bounds it, in words."""
    cost: float | None
    """Share of the limit that it counts, 1 = full; None where no length is limited."""
    fill: float
    """Share of what it may hold that it uses, 0 to 1."""
    longest: float
    """Its longest sample."""
    total: float
    """Sum of the lengths of its samples."""
    padding: float
    """Share of what is padded that is padding, 0 to 1."""
    cut_number: int
    """Where it stood among the batches of its window as they were cut, counted from 0."""
    batches_of_window: int
    """Batches of that window."""
    key: str
    """Its 64-bit key, in hexadecimal digits: seeds dataset code."""
    samples: tuple[StepSample, ...]
    """Its samples, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepLeaf:
    """A source that the step draws from, as its window has it."""

    name: str
    """What people call it."""
    key: str
    """Its key."""
    part: str
    """The blend that it is of."""
    weight: float
    """Its share of the blend by weight, 0 to 1; a finite pass ignores it."""
    quota: int
    """Draws of it in the window."""
    draws_of_window: int
    """Draws of all sources in the window."""
    samples: int
    """Samples of it in the step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepWindow:
    """The window of a blend that the step lies in."""

    part: str
    """The blend; empty where the config is one blend."""
    seed: int
    """The seed that it is drawn with."""
    number: int
    """Its number, counted from 0 in every pass of a finite loader."""
    step: int
    """Which of its steps it is, counted from 0."""
    steps: int
    """Its steps."""
    order: str
    """How passes that begin in it are ordered: `rows`, `shards` or `declared`."""
    shuffle: bool
    """Whether its steps, and the slots of each, are in keyed order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepContents:
    """What one step trains on; `str()` is a table for people."""

    step: int
    """The step, counted from the start of training."""
    pass_number: int
    """Pass of a finite loader; 0 of an endless one."""
    seed: int
    """The seed of training."""
    world_size: int
    """How many ranks share it."""
    micro_batches_per_step: int
    """Its micro-batches, G."""
    rank: int | None
    """The rank whose batches these are; None of all."""
    windows: tuple[StepWindow, ...]
    """The window of each blend that it is made of."""
    leaves: tuple[StepLeaf, ...]
    """The sources that it draws from, the most samples first."""
    batches: tuple[StepBatch, ...]
    """Its micro-batches by slot; of several blends joined in one, one after the other."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return asdict(self)

    def __str__(self) -> str:
        return step_text(self)
