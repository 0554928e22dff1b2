"""The figures of a report: everything that a page or a program shows of a config's plan."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = [
    "BlendPoint",
    "BucketFigures",
    "Distribution",
    "Figures",
    "LeafFigures",
    "LocalityFigures",
    "PartFigures",
    "StepFigures",
    "TimeFigures",
    "WorstBatch",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class LeafFigures:
    """One source."""

    name: str
    """What people call it."""
    key: str
    """Its key."""
    type: str
    """Its input type."""
    rows: int
    """Rows of its index."""
    accepted: int
    """Samples that a pass trains on, after filters, windows and limits."""
    refused: dict[str, int]
    """Samples that are left out of a pass, by reason; rows without a place in the index too."""
    hours: float | None
    """Hours of audio of all rows; None where nothing is audio."""
    accepted_hours: float | None
    """Hours of audio of a pass."""
    tokens: int | None
    """Tokens of a pass; None where none are counted."""
    shortest: float | None
    """Shortest accepted length, in the unit of the part."""
    median: float | None
    """Median accepted length; of millions of samples, that of an even choice of them."""
    longest: float | None
    """Longest accepted length."""
    weight: float
    """Its share of the blend by weight, 0 to 1; a finite pass ignores it."""
    realised: float
    """Its share of the samples of the windows that were planned, 0 to 1."""
    realised_hours: float | None
    """Its share of their hours."""
    steps_per_pass: float | None
    """Optimizer steps in which all its samples come once, on average; None where it is never
    drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """How lengths are distributed in a pass; bars."""

    unit: str
    """`seconds` or `tokens`."""
    edges: tuple[float, ...]
    """Borders of the bars, ascending, one more than bars. All bars have one width but the last,
    which takes whatever is longer: its upper border is above the longest sample."""
    samples: tuple[int, ...]
    """Samples from one border on, up to the next, in one pass over every leaf that is drawn."""
    amount: tuple[float, ...]
    """Their hours, or thousands of tokens."""
    half: float
    """Length below which half of the samples are, to 10 ms or a token."""
    most: float
    """Length below which 95 % of them are."""
    half_amount: float
    """Length below which samples have half of all hours or tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BucketFigures:
    """A bucket of the config, over the windows that were planned.

    Where the config has none, batches of like length: at most twenty of about equal amounts.
    """

    bound: tuple[float, ...]
    """Its upper bound, inclusive: a length, or a length and tokens."""
    batches: int
    """Micro-batches whose longest sample is of this bucket."""
    samples: int
    """Samples in them."""
    size: int | None
    """Samples that the config gives it; None where it gives none."""
    mean_size: float
    """Samples of one batch on average."""
    fill: float | None
    """Share of what a batch may hold (its size, or the limit) that is used, 0 to 1."""
    padding: float
    """Share of what is padded that is padding, 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFigures:
    """The cost of the steps of the first window; for plots, so thinned out if many."""

    number: tuple[int, ...]
    """Which steps these are, counted from the start of training."""
    mean: tuple[float, ...]
    """Mean cost of a rank, as a share of the mean of all steps of the window."""
    least: tuple[float, ...]
    """That of the rank with the least."""
    most: tuple[float, ...]
    """That of the rank with the most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BlendPoint:
    """What the blend was over one stretch of training."""

    first_step: int
    """Where the stretch begins, steps from the start of training."""
    steps: int
    """Steps of it; of several blends, the steps that this one has."""
    shares: tuple[float, ...]
    """Share of the samples of each leaf, in the order of the leaves, 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalityFigures:
    """What one way to order passes costs at the storage."""

    locality: str
    """`rows` or `shards`."""
    is_used: bool
    """Whether the config has it."""
    requests: float
    """Reads by micro-batch on average: ranges, near ones merged; and of files that a machine keeps
    whole one each, as often as a pass needs them."""
    bytes: float
    """Bytes by micro-batch on average."""
    shards: float
    """Different files by micro-batch on average, but for files of one sample."""
    kept_bytes: int | None
    """Bytes of whole shards that a machine keeps at a time; None where it keeps none."""
    note: str = ""
    """What limits it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorstBatch:
    """A micro-batch that takes much memory."""

    step: int
    """Its step, counted from the start of training."""
    slot: int
    """Its slot."""
    rank: int
    """The rank that trains on it, with the world size of the report."""
    samples: int
    """Samples."""
    longest: float
    """Its longest sample, in the unit of the part."""
    total: float
    """Samples times the longest, what is padded to; where batches are packed the sum of all. In the
    unit of the part."""
    tokens: int | None
    """Most tokens of a sample, where they are counted."""
    cost: float | None
    """Share of the limit, 1 = full; None where nothing limits it."""
    leaves: tuple[str, ...]
    """Where its samples are from, the largest share first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartFigures:
    """One blend: all there is, but for configs with `multi_config`."""

    name: str
    """What the config calls it; empty where it is all there is."""
    unit: str
    """What batches are measured by: `seconds` or `tokens`."""
    share: float
    """Its share of the steps, 0 to 1."""
    leaves: tuple[LeafFigures, ...]
    """Its sources, in declared order."""
    distributions: tuple[Distribution, ...]
    """Lengths in seconds where there is audio, in tokens where they are counted."""
    buckets: tuple[BucketFigures, ...]
    """Its classes or buckets, from the shortest on."""
    fixed_sizes: bool
    """Whether buckets have sizes of the config's."""
    limit: str
    """What bounds a batch, in words, such as `batch_duration 600 s`."""
    windows: int
    """Windows that were planned for these figures."""
    steps: int
    """Steps in them."""
    samples: int
    """Samples in them."""
    dropped: dict[str, int]
    """Draws of them that filters and batching dropped, by reason."""
    padding: float
    """Share of what is padded that is padding, 0 to 1."""
    unused_budget: float
    """Share of what a batch may hold (its size, or the limit) that is left unused, 0 to 1."""
    small_batches: float
    """Share of the batches with less than half of what they could have."""
    imbalance: float
    """Slowest over mean rank by cost, on average over steps, for the world size: 1 is even."""
    imbalance_linear: float
    """The same where cost is length alone."""
    imbalance_quadratic: float
    """The same where cost is length squared."""
    most_copies: int
    """How often the same row is in one micro-batch, at most."""
    step_costs: StepFigures
    """Cost step by step."""
    blend: tuple[BlendPoint, ...]
    """What the blend was, stretch by stretch."""
    localities: tuple[LocalityFigures, ...]
    """What either order of passes costs."""
    worst: tuple[WorstBatch, ...]
    """Ten micro-batches that take the most memory, those that cost the most first. Those with the
    longest sample, the most samples and the most `total` are among them; each of the others is the
    most costly with its number of samples, as long as there are enough such numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeFigures:
    """How long things take, as far as the given speed tells."""

    hours_per_hour: float
    """Hours of audio that one GPU trains on in an hour, as given."""
    seconds_per_step: float
    """Seconds of one optimizer step."""
    pass_seconds: float | None
    """Seconds of a pass over everything; None where it does not end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """Everything that a report says."""

    config: str
    """The config."""
    section: str | None
    """Its section; None for a blend that stands alone."""
    version: str
    """Version of Playhead."""
    generated_at: str
    """When, UTC, ISO 8601."""
    seed: int
    """The seed that was planned with."""
    world_size: int
    """How many ranks share a step."""
    micro_batches_per_step: int
    """Micro-batches of a step, G."""
    finite: bool
    """Whether a pass ends."""
    steps_per_pass: int | None
    """Steps of a pass, estimated where a note says so; None where it does not end."""
    hours_per_step: float | None
    """Hours of audio of a step on average; None where nothing is audio."""
    tokens_per_step: float | None
    """Tokens of a step on average; None where none are counted."""
    parts: tuple[PartFigures, ...]
    """Its blends, in the order of their names."""
    time: TimeFigures | None = None
    """How long things take; None where no speed is given, or nothing is audio."""
    notes: tuple[str, ...] = field(default=())
    """What people should know, the gravest first."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return asdict(self)
