"""How far every source of a blend has been read: one row each, whoever wrote the checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["COLUMNS", "LeafProgress", "Overall", "SourceSpec", "SourceSummary", "Summary"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceSummary:
    """How far one source has been read, over all ranks and workers together."""

    source_index: int
    """Its number in the order of the config."""
    dataset: str
    """What people call it."""
    state_type: str
    """Who keeps its progress, and how: `playhead`, or one of `nemo_state.StateType`."""
    desired_weight: float | None = None
    """Its share of the blend by weight, 0 to 1; None where nothing says it."""
    observed_weight: float | None = None
    """Its share of what was read, by items, 0 to 1."""
    consumed_items: int | None = None
    """Items that were read."""
    total_items: int | None = None
    """Items of one pass over it."""
    partitions_seen: int = 1
    """States that it was put together from: one for each rank and worker, of ours one."""
    min_epoch: int | None = None
    """Passes that the partition which is the furthest behind has finished."""
    max_epoch: int | None = None
    """Passes that the one which is the furthest ahead has finished."""
    min_position: int | None = None
    """Smallest place in a pass, items."""
    max_position: int | None = None
    """Largest place in a pass, items."""
    consumed_hours: float | None = None
    """Hours of audio that were read; None where no index says it, or nothing is audio."""
    observed_weight_hours: float | None = None
    """Its share of what was read, by hours."""
    consumed_tokens: int | None = None
    """Tokens that were read; None where none are counted."""
    observed_weight_tokens: float | None = None
    """Its share of what was read, by tokens."""
    hours_left: float | None = None
    """Hours of audio that are left of its present pass."""
    notes: tuple[str, ...] = ()
    """What is odd about it."""

    @property
    def drift_abs(self) -> float | None:
        """Observed share by items minus the desired one."""
        if self.observed_weight is None or self.desired_weight is None:
            return None
        return self.observed_weight - self.desired_weight

    @property
    def drift_ratio(self) -> float | None:
        """Observed share by items over the desired one."""
        if self.observed_weight is None or not self.desired_weight:
            return None
        return self.observed_weight / self.desired_weight

    @property
    def utilization_pct(self) -> float | None:
        """Items read by items of one pass, in percent: 250 are two passes and a half."""
        if self.consumed_items is None or not self.total_items:
            return None
        return 100 * self.consumed_items / self.total_items

    @property
    def completed_epochs(self) -> int | None:
        """Whole passes that the items read would make."""
        if self.consumed_items is None or not self.total_items:
            return None
        return self.consumed_items // self.total_items

    @property
    def current_epoch_pct(self) -> float | None:
        """How much of the pass after these, in percent."""
        if self.consumed_items is None or not self.total_items:
            return None
        return 100 * (self.consumed_items % self.total_items) / self.total_items

    def to_row(self) -> dict[str, Any]:
        """Return its columns, in the order of `COLUMNS`."""
        missing = self.total_items is None
        values = {**asdict(self), "missing_total": missing, "notes": "; ".join(self.notes)}
        return {name: values[name] if name in values else getattr(self, name) for name in COLUMNS}


COLUMNS = (
    "source_index",
    "dataset",
    "state_type",
    "desired_weight",
    "observed_weight",
    "drift_abs",
    "drift_ratio",
    "utilization_pct",
    "completed_epochs",
    "current_epoch_pct",
    "consumed_items",
    "total_items",
    "partitions_seen",
    "min_epoch",
    "max_epoch",
    "min_position",
    "max_position",
    "missing_total",
    "notes",
    "consumed_hours",
    "observed_weight_hours",
    "consumed_tokens",
    "observed_weight_tokens",
    "hours_left",
)
"""Columns of `summary.csv`: those that NeMo's analyzer writes, then ours."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeafProgress:
    """One state of one source, as it stands in the checkpoint."""

    source_index: int
    """The source that it is of."""
    rank: int | None
    """Which rank saved it; None where it is of all."""
    worker: int | None
    """Which worker; None where it is of all."""
    state_type: str
    """As `SourceSummary.state_type`."""
    epoch: int
    """Passes that were finished."""
    position: int | None
    """Items of this pass that were read; None where it cannot be told."""
    shard_id: int | None = None
    """Which part of the items this rank and worker reads."""
    num_shards: int | None = None
    """Of how many parts."""
    total_len: int | None = None
    """Items of all parts together, where the state says it."""
    state_path: str = ""
    """Where it stands in the checkpoint."""
    packed_current_shard: int | None = None
    """Of sequential packed states: the shard that is being read."""
    packed_current_position: int | None = None
    """Of sequential packed states: the place in it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceSpec:
    """What a config says of one source."""

    source_index: int
    """Its number in the order of the config."""
    name: str
    """What people call it."""
    desired_weight: float | None
    """Its share of the blend by weight, 0 to 1."""
    raw_weight: float | None = None
    """The weight as its entry has it."""
    hours: float | None = None
    """Hours of audio of one pass, where an index or the config says it."""
    kind: str = ""
    """Its input type."""
    source_path: str = ""
    """The first of its paths, as declared."""
    total_items: int | None = None
    """Items of one pass."""
    index_pack_path: str | None = None
    """The pack that says it, where one does."""
    index_pack_collection_keys: tuple[str, ...] = ()
    """Keys that its collection may have in a pack of NeMo's."""
    matched_index_pack_collection_key: str | None = None
    """The one that it has."""
    packed_shard_lengths: tuple[int, ...] = ()
    """Items of each of its shards, where a pack says it."""
    missing_index_paths: tuple[str, ...] = ()
    """Index files that were looked for and are not there, the first few."""
    tags: dict[str, Any] = field(default_factory=dict[str, Any])
    """Its tags, inherited ones among them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overall:
    """Where training stands as a whole; of positions of our own."""

    step: int
    """Optimizer steps handed out since the start of training."""
    window: int
    """Number of the running window, counted from 0 in every pass of a finite loader."""
    micro_batches_per_step: int
    """Micro-batches of a step over all ranks, G."""
    finite: bool
    """Whether a pass ends."""
    pass_: int
    """Number of the pass, where passes end."""
    seed: int
    """The seed."""
    padding: float | None = None
    """Share of what was padded that is padding, 0 to 1; None where it was not worked out."""
    padding_of: str | None = None
    """What `padding` is of: `all steps`, or `this window`."""
    hours: float | None = None
    """Hours of audio that were read."""
    hours_left: float | None = None
    """Hours of audio that are left of the pass; None where it does not end."""
    steps_left: int | None = None
    """Steps that are left of the pass; None where it does not end, or nothing says it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """What a checkpoint says of the data."""

    checkpoint_input: str
    """What was asked to be looked at."""
    checkpoint_metadata_loaded: str
    """The file that the state is from, and the place in it."""
    config_path: str | None
    """The config that names the sources; None where there is none."""
    generated_at: str
    """When, UTC, ISO 8601."""
    rows: tuple[SourceSummary, ...]
    """The sources, in the order of the config."""
    leaf_progress: tuple[LeafProgress, ...]
    """The states that they were put together from."""
    dataset_specs: tuple[SourceSpec, ...] = ()
    """What the config says of the sources."""
    overall: Overall | None = None
    """Where training stands as a whole; None for states of others."""
    indexes_root: str | None = None
    """Where indexes were looked for."""
    index_pack_root: str | None = None
    """The pack that was asked for."""
    default_index_pack_root: str | None = None
    """The pack for sources that name none."""
    notes: tuple[str, ...] = ()
    """What people should know."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types, with the keys of NeMo's analyzer and `overall`."""
        facts = asdict(self)
        facts["rows"] = [row.to_row() for row in self.rows]
        if self.overall is not None:
            facts["overall"]["pass"] = facts["overall"].pop("pass_")
        facts["num_leaf_progress_states"] = len(self.leaf_progress)
        facts["num_summary_rows"] = len(self.rows)
        return facts
