"""The sources of one blend as a position has them, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.errors import PlayheadError
from playhead.inspect.history import history_of
from playhead.inspect.summary import LeafProgress, SourceSpec, SourceSummary
from playhead.plan.changes import changed_leaves, with_moves
from playhead.plan.filters import leaf_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.index.pack import LeafPack
    from playhead.inspect.history import History
    from playhead.inspect.opening import OpenedBlend
    from playhead.plan.columns import LeafColumns
    from playhead.plan.padding import Padding
    from playhead.plan.position import Position

__all__ = ["Sources", "sources_of"]

_US_PER_HOUR = 3_600_000_000
_STATE = "playhead"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """The rows of a blend, and what is said of them together."""

    rows: tuple[SourceSummary, ...]
    """The sources, in the order of the config."""
    progress: tuple[LeafProgress, ...]
    """Their states as they stand in the position."""
    specs: tuple[SourceSpec, ...]
    """What the config says of them."""
    padding: Padding | None
    """Of what was handed out of the running window; None where it cannot be planned."""
    is_complete: bool
    """Whether hours of everything that was read are known."""
    notes: tuple[str, ...]
    """What people should know."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A leaf of the position, of the config, or of both."""

    place: int | None
    """Its place among the leaves of the position."""
    number: int | None
    """Its number in the blend."""


def sources_of(
    position: Position, opened: OpenedBlend | None, *, part: str, first: int, path: str
) -> Sources:
    """Put together what a position and its config say of every source.

    Parameters
    ----------
    position
        Where training stands.
    opened
        The blend of the config; None where there is none.
    part
        What the blend is called among several; empty where it is the only one.
    first
        Number of its first source.
    path
        Where the position stands in the checkpoint.
    """
    notes: list[str] = []
    columns: list[LeafColumns] = []
    if opened is not None:
        columns = [one for one in opened.columns if one is not None]
        # What becomes of moved leaves is said by a resume.
        position = with_moves(position, columns, [])
    of_key = {position.moved.get(one.key, one.key): one for one in columns}
    changed = changed_leaves(position, of_key, "restart_pass", [])
    usable = {key: one for key, one in of_key.items() if key not in changed}
    history = _history(position, usable, notes) if usable else None
    table = _Table(
        position=position, opened=opened, history=history, changed=frozenset(changed), part=part
    )
    sources = _in_order(position, opened)
    values = [table.values(source, first + number) for number, source in enumerate(sources)]
    table.add_shares(values, sources)
    rows = [SourceSummary(**one) for one in values]
    progress = [
        table.progress(source, first + number, path) for number, source in enumerate(sources)
    ]
    return Sources(
        rows=tuple(rows),
        progress=tuple(one for one in progress if one is not None),
        specs=tuple(
            table.spec(source.number, row)
            for source, row in zip(sources, rows, strict=True)
            if source.number is not None
        ),
        padding=None if history is None else history.padding,
        is_complete=table.is_complete,
        notes=tuple(notes),
    )


def _history(
    position: Position, columns: Mapping[str, LeafColumns], notes: list[str]
) -> History | None:
    try:
        history = history_of(position, columns)
    except PlayheadError as error:
        notes.append(f"what was read cannot be added up: {error}")
        return None
    if not history.is_exact:
        notes.append(
            "passes differ from each other (perturb_speed, slice_length) and there were many: those"
            " that were finished are taken to be like the present one"
        )
    if history.inside is None:
        notes.append(
            "the running window cannot be planned again from the present data: items of it are"
            " counted, hours and tokens are not known"
        )
    return history


def _in_order(position: Position, opened: OpenedBlend | None) -> list[_Source]:
    places = {key: place for place, key in enumerate(position.leaves)}
    if opened is None:
        order = position.order or range(len(places))
        return [_Source(place, None) for place in order]
    sources: list[_Source] = []
    for number, leaf in enumerate(opened.blend.leaves):
        place = places.pop(position.moved.get(leaf.key, leaf.key), None)
        sources.append(_Source(place, number))
    return sources + [_Source(place, None) for place in places.values()]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Table:
    position: Position
    opened: OpenedBlend | None
    history: History | None
    changed: frozenset[str]
    part: str
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.position.leaves))

    @property
    def is_complete(self) -> bool:
        """Whether hours and tokens of everything that was read are known."""
        history = self.history
        return history is not None and history.inside is not None and bool(history.known.all())

    def leaf(self, number: int | None) -> Leaf | None:
        if self.opened is None or number is None:
            return None
        return self.opened.blend.leaves[number]

    def pack(self, number: int | None) -> LeafPack | None:
        return None if self.opened is None or number is None else self.opened.packs[number]

    def columns(self, number: int | None) -> LeafColumns | None:
        return None if self.opened is None or number is None else self.opened.columns[number]

    def values(self, source: _Source, index: int) -> dict[str, Any]:
        """The fields of the row of a source, without its shares."""
        leaf, place = self.leaf(source.number), source.place
        name = self._name(leaf, place)
        if place is None:
            values = self._new(source)
        else:
            history = self.history
            if history is not None and bool(history.known[place]):
                values = self._known(place, history, leaf)
            else:
                values = self._drawn(place)
            values["notes"] = tuple(self._notes(source, place))
        values["source_index"] = index
        values["dataset"] = name
        values["state_type"] = _STATE
        return values

    def _name(self, leaf: Leaf | None, place: int | None) -> str:
        """What people call a source: its name, which has that of the part, or its key."""
        if leaf is not None:
            return leaf.name
        key = self.keys[place or 0]
        return f"{self.part}/{key}" if self.part else key

    def add_shares(self, values: Sequence[dict[str, Any]], sources: Sequence[_Source]) -> None:
        """Add what each source has of all, and is to have; of hours only where all are known."""
        shares = {
            "desired_weight": self._weights(sources, values),
            "observed_weight": _observed(values, "consumed_items"),
        }
        if self.is_complete:
            shares["observed_weight_hours"] = _observed(values, "consumed_hours")
            shares["observed_weight_tokens"] = _observed(values, "consumed_tokens")
        for name, column in shares.items():
            for one, share in zip(values, column, strict=True):
                one[name] = share

    def _new(self, source: _Source) -> dict[str, Any]:
        columns = self.columns(source.number)
        total = None
        if columns is not None:
            shape, batching = self.position.shape, self.position.chain[-1].batching
            facts = leaf_facts(columns, shape, batching, in_tokens=batching.in_tokens)
            total = facts.accepted // facts.copies
        note = "new: it joins at the next window"
        return {
            "consumed_items": 0,
            "total_items": total,
            "partitions_seen": 0,
            "notes": (note,),
        }

    def _inside(self, place: int) -> int:
        return 0 if self.position.read is None else self.position.read[place]

    def _drawn(self, place: int) -> dict[str, Any]:
        """Of a leaf without columns: rows that were drawn, and samples of the running window."""
        progress = self.position.leaves[self.keys[place]]
        items = progress.pass_ * progress.rows + progress.done + self._inside(place)
        return self._placed(items, progress.rows, progress.done + self._inside(place), place)

    def _known(self, place: int, history: History, leaf: Leaf | None) -> dict[str, Any]:
        """Of a leaf with columns: samples, hours and tokens."""
        items = int(history.before.items[place]) + self._inside(place)
        in_pass = int(history.in_pass.items[place]) + self._inside(place)
        values = self._placed(items, int(history.of_pass.items[place]), in_pass, place)
        inside, read = history.inside, history.read
        if inside is None or read is None:
            return values
        pass_us = int(history.of_pass.us[place])
        if pass_us > 0 or leaf is None or leaf.kind == "cut":
            here = int(history.in_pass.us[place]) + int(inside.us[place])
            here = here if self.position.shape.finite else here % max(pass_us, 1)
            values["consumed_hours"] = int(read.us[place]) / _US_PER_HOUR
            values["hours_left"] = max(pass_us - here, 0) / _US_PER_HOUR
        if read.tokens is not None:
            values["consumed_tokens"] = int(read.tokens[place])
        return values

    def _placed(self, items: int, total: int, in_pass: int, place: int) -> dict[str, Any]:
        """Items, and the place in a pass that they come to."""
        if self.position.shape.finite or not total:
            epoch, at = self.position.leaves[self.keys[place]].pass_, in_pass
        else:
            epoch, at = divmod(items, total)
        return {
            "consumed_items": items,
            "total_items": total,
            "min_epoch": epoch,
            "max_epoch": epoch,
            "min_position": at,
            "max_position": at,
        }

    def _notes(self, source: _Source, place: int) -> list[str]:
        key = self.keys[place]
        progress = self.position.leaves[key]
        notes: list[str] = []
        if source.number is None and self.opened is not None:
            notes.append("gone: it is not in the config")
        if key in self.changed:
            notes.append("its data are not those that were drawn from")
        elif (progress.rows, progress.fingerprint) != (
            progress.next_rows,
            progress.next_fingerprint,
        ):
            notes.append(
                f"its next pass is over {progress.next_rows:,} rows, this one is over"
                f" {progress.rows:,}"
            )
        columns = self.columns(source.number)
        if key not in self.changed and columns is not None and progress.slice_length is None:
            more = columns.num_rows - progress.next_rows
            if more > 0:
                notes.append(f"{more:,} rows were appended: they join at the next pass")
        return notes

    def _weights(
        self, sources: Sequence[_Source], values: Sequence[dict[str, Any]]
    ) -> list[float | None]:
        """The share of each source that is aimed at."""
        if self.position.shape.finite:
            # A pass that ends takes every item once.
            totals = [one["total_items"] for one in values]
            if any(total is None for total in totals):
                return [None] * len(totals)
            return _shares([float(total or 0) for total in totals])
        if self.opened is None:
            return _shares([float(self.position.weights[one.place or 0]) for one in sources])
        leaves = [self.leaf(one.number) for one in sources]
        return _shares([0.0 if leaf is None else float(leaf.weight) for leaf in leaves])

    def progress(self, source: _Source, index: int, path: str) -> LeafProgress | None:
        if source.place is None:
            return None
        key = self.keys[source.place]
        state = self.position.leaves[key]
        parts = [path, *(("parts", self.part) if self.part else ()), "leaves", key]
        return LeafProgress(
            source_index=index,
            rank=None,
            worker=None,
            state_type=_STATE,
            epoch=state.pass_,
            position=state.done,
            total_len=state.rows,
            state_path=".".join(one for one in parts if one),
        )

    def spec(self, number: int, row: SourceSummary) -> SourceSpec:
        leaf, pack = self.leaf(number), self.pack(number)
        assert leaf is not None
        hours: float | None = None
        if pack is not None and (leaf.kind == "cut" or bool((pack.duration_us > 0).any())):
            hours = int(np.maximum(pack.duration_us, 0).sum()) / _US_PER_HOUR
        paths = next(iter(leaf.paths.values()), ())
        return SourceSpec(
            source_index=row.source_index,
            name=row.dataset,
            desired_weight=row.desired_weight,
            hours=hours,
            kind=leaf.type,
            source_path=paths[0] if paths else "",
            total_items=row.total_items,
            index_pack_path=None if pack is None else str(pack.path),
            tags={**leaf.labels, **leaf.outer_tags, **leaf.tags},
        )


def _shares(values: Sequence[float]) -> list[float | None]:
    total = sum(values)
    return [value / total if total else None for value in values]


def _observed(values: Sequence[dict[str, Any]], name: str) -> list[float | None]:
    """Share of each in what all have together; none where its own is not known."""
    column = [one.get(name) for one in values]
    total = sum(value for value in column if value is not None)
    return [None if value is None or not total else value / total for value in column]
