"""What the plan sees of leaves, out of their packs and what is known beside them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from playhead.errors import ConfigError
from playhead.index.concatenation import joined_content, joined_durations, joined_rows
from playhead.index.exclusions import find_exclusions
from playhead.loader.content import content_of
from playhead.plan import LeafColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Concatenation, Kind, Leaf
    from playhead.index.exclusions import Exclusions
    from playhead.index.pack import LeafPack
    from playhead.loader.row_facts import SideColumns

__all__ = ["columns_of", "has_tables", "slice_length_of"]


def has_tables(packs: Sequence[LeafPack]) -> bool:
    """Whether the rows of any leaf are read in stretches."""
    return any(pack.groups is not None for pack in packs)


def slice_length_of(leaves: Sequence[Leaf]) -> int | None:
    """How many rows a pass takes of each shard of a leaf that is sliced.

    Raises
    ------
    ConfigError
        When two leaves name different numbers.
    """
    lengths = {leaf.options.slice_length for leaf in leaves} - {None}
    if len(lengths) > 1:
        raise ConfigError(
            f"slice_length is {' and '.join(map(str, sorted(filter(None, lengths))))} in parts of"
            " one blend",
            fix="Set one for the whole section",
        )
    return next(iter(lengths), None)


def columns_of(
    leaves: Sequence[Leaf],
    packs: Sequence[LeafPack],
    sides: Sequence[SideColumns],
    *,
    by_status: bool,
) -> tuple[LeafColumns, ...]:
    """Give the plan its view of each leaf.

    Parameters
    ----------
    leaves, packs, sides
        The leaves, their columns, and what is known of their rows beside them.
    by_status
        Whether rows are chosen by their `validation_status`.

    Raises
    ------
    ConfigError
        When slices are wanted of shards whose rows do not stand together.
    """
    return tuple(
        _columns(leaf, pack, side, by_status=by_status)
        for leaf, pack, side in zip(leaves, packs, sides, strict=True)
    )


class _Shards(NamedTuple):
    of_row: NDArray[np.int32]
    num_bytes: NDArray[np.int64]


def _columns(leaf: Leaf, pack: LeafPack, side: SideColumns, *, by_status: bool) -> LeafColumns:
    content = content_of(leaf, pack)
    if leaf.concatenation is not None:
        return _joined(leaf, pack, side, leaf.concatenation)
    # Also where rows are drawn one by one: a pass that has begun goes on as it began.
    shards = _shards(leaf, pack)
    # What is no cut passes this filter, as in NeMo.
    has_status = by_status and bool(pack.entry.statuses) and leaf.kind == "cut"
    excluded = _excluded(leaf, pack)
    return LeafColumns(
        key=leaf.key,
        name=leaf.name,
        weight=leaf.weight,
        duration_us=pack.duration_us,
        fingerprint=content.fingerprint,
        explain_change=content.explain_change,
        shard=None if shards is None else shards.of_row,
        shard_bytes=None if shards is None else shards.num_bytes,
        status=pack.status if has_status else None,
        statuses=tuple(pack.entry.statuses),
        excluded_rows=None if excluded is None else excluded.rows,
        excluded_at=None if excluded is None else excluded.at,
        side=side,
        slice_shard=_slice_shard(leaf, pack) if leaf.options.slice_length is not None else None,
        kind=_KINDS[leaf.kind],
        # Of a pair neither half is a text by itself.
        windows=leaf.kind == "text",
    )


_KINDS: dict[Kind, Literal["cut", "text", "conversation"]] = {
    "cut": "cut",
    "text": "text",
    "pair": "text",
    "sft": "conversation",
    "messages": "conversation",
    "conversation": "conversation",
}


def _joined(leaf: Leaf, pack: LeafPack, side: SideColumns, how: Concatenation) -> LeafColumns:
    """Samples of several rows: to filters on rows they say nothing, but their tokens count."""
    starts = joined_rows(pack.duration_us, how)
    content = joined_content(*content_of(leaf, pack), starts, how)
    excluded = _excluded(leaf, pack)
    if excluded is not None:
        samples = np.searchsorted(starts, excluded.rows, side="right") - 1
        distinct, first = np.unique(samples, return_index=True)
        earliest = np.minimum.reduceat(excluded.at, first)
        excluded = excluded._replace(rows=distinct, at=earliest)

    def joined_side(digest: str) -> Mapping[str, NDArray[Any]] | None:
        columns = side(digest)
        if columns is None:
            return None
        first = starts[:-1]
        return {
            name: _AS_ONE[name](column, first) if len(first) else column[:0]
            for name, column in columns.items()
        }

    return LeafColumns(
        key=leaf.key,
        name=leaf.name,
        weight=leaf.weight,
        duration_us=joined_durations(pack.duration_us, starts, how),
        fingerprint=content.fingerprint,
        explain_change=content.explain_change,
        excluded_rows=None if excluded is None else excluded.rows,
        excluded_at=None if excluded is None else excluded.at,
        side=joined_side,
    )


def _excluded(leaf: Leaf, pack: LeafPack) -> Exclusions | None:
    """The rows that were left out for good; those that have changed since are said and drawn."""
    found = find_exclusions(pack)
    if found is None:
        return None
    if found.stale:
        warnings.warn(
            f"{found.stale} rows of leaf {leaf.name} that were left out have changed since, and are"
            " drawn again",
            stacklevel=2,
        )
    return found if len(found.rows) else None


def _unknown(column: NDArray[Any], first: NDArray[np.int64]) -> NDArray[Any]:
    return np.full(len(first), np.nan, column.dtype)


_AS_ONE: dict[str, Callable[[NDArray[Any], NDArray[np.int64]], NDArray[Any]]] = {
    "tokens": np.add.reduceat,
    "input": np.add.reduceat,
    "output": np.add.reduceat,
    "context": np.add.reduceat,
    "answer": np.add.reduceat,
    "cer": _unknown,
    "similarity": _unknown,
    "speaker": np.logical_or.reduceat,
}


def _shards(leaf: Leaf, pack: LeafPack) -> _Shards | None:
    """What is read end to end: row groups, archives, or a manifest with all files of its rows."""
    if pack.groups is not None:
        return _Shards(*pack.groups)
    if _has_tar_each(leaf, pack):
        return _Shards(pack.tar, pack.shards.sizes)
    if pack.entry.fields:
        manifests = np.array(pack.entry.manifests, np.int32)
        sizes = np.add.reduceat(pack.shards.sizes, manifests)
        return _Shards(np.searchsorted(manifests, pack.shard).astype(np.int32), sizes)
    return None


def _has_tar_each(leaf: Leaf, pack: LeafPack) -> bool:
    """Whether every row has one member of one archive; what rows have several of are parts."""
    return "tar" in leaf.paths and not pack.entry.fields


def _slice_shard(leaf: Leaf, pack: LeafPack) -> NDArray[np.int32]:
    shard = pack.tar if _has_tar_each(leaf, pack) else pack.shard
    changes = int(np.count_nonzero(np.diff(shard)))
    if changes >= len(np.unique(shard)):
        raise ConfigError(
            "slice_length takes slices of shards, and the manifest does not keep the rows of a"
            " shard together",
            where=f"leaf {leaf.name}, {pack.shards.uris[0]}",
            fix="Sort its rows by shard_id, or leave slice_length out",
        )
    return shard
