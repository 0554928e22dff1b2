"""How far the sources of a run of NeMo or Lhotse 2 have been read, over all ranks and workers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playhead.inspect.nemo_config import declared_sources
from playhead.inspect.nemo_consumed import consumed_items, position_in_pass
from playhead.inspect.nemo_samplers import find_samplers
from playhead.inspect.nemo_sources import gather
from playhead.inspect.summary import LeafProgress, SourceSpec, SourceSummary, Summary
from playhead.inspect.totals import Roots, Total, totals_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.inspect.nemo_declared import DeclaredSource
    from playhead.inspect.nemo_sources import Partition, Sources

__all__ = ["summarise_nemo"]

_MOST_NAMED: Final = 3


def summarise_nemo(
    content: Any,
    *,
    file: str,
    checkpoint: str | None = None,
    config: Any = None,
    section: str | None = None,
    data_blend_dir: str | None = None,
    indexes_root: str | None = None,
    index_pack_root: str | None = None,
    default_index_pack_root: str | None = None,
) -> Summary | None:
    """Say how far each source was read, out of a state of NeMo's or Lhotse's loader.

    Parameters
    ----------
    content
        What a file of a checkpoint holds: plain containers, numbers and texts.
    file
        The file.
    checkpoint
        What was asked to be looked at; the file if None.
    config
        The config of the run, which names the sources: a YAML path or a mapping. None leaves them
        without names and totals.
    section
        Its section; the training section if None.
    data_blend_dir
        What `${data_blend_dir}` stands for in it.
    indexes_root
        Folder of `.idx` files, which wins over the config's.
    index_pack_root
        A pack or a folder of packs, which wins over the config's.
    default_index_pack_root
        A pack or a folder of packs, for sources that name none.

    Returns
    -------
    Summary or None
        None where there is no such state.

    Raises
    ------
    ConfigError
        When the config cannot be used.
    SourceNotFoundError
        When a YAML file does not exist.
    """
    found = find_samplers(content)
    if not found.samplers:
        return None
    declared: list[DeclaredSource] | None = None
    notes = list(found.notes)
    if config is not None:
        read = declared_sources(config, section=section, data_blend_dir=data_blend_dir)
        declared = read.sources
        notes += read.notes
    sources = gather(found.samplers, None if declared is None else len(declared))
    roots = Roots(indexes=indexes_root, pack=index_pack_root, default_pack=default_index_pack_root)
    totals = totals_of(declared or (), roots)
    rows: list[SourceSummary] = []
    leaves: list[LeafProgress] = []
    for index, partitions in enumerate(sources.partitions):
        source = None if declared is None or index >= len(declared) else declared[index]
        total = totals[index] if index < len(totals) else Total()
        row = _row(index, partitions, source, total, has_config=declared is not None)
        rows.append(row)
        lengths = total.shard_lengths
        leaves += (_progress(row, partition, lengths) for partition in partitions)
    return Summary(
        checkpoint_input=checkpoint or file,
        checkpoint_metadata_loaded=file,
        config_path=str(config) if isinstance(config, (str, Path)) else None,
        generated_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        rows=tuple(_with_shares(rows)),
        leaf_progress=tuple(leaves),
        dataset_specs=tuple(
            _spec(index, source, total)
            for index, (source, total) in enumerate(zip(declared or (), totals, strict=True))
        ),
        indexes_root=indexes_root,
        index_pack_root=index_pack_root,
        default_index_pack_root=default_index_pack_root,
        notes=(*notes, *sources.notes, *_notes(rows, sources, declared)),
    )


def _row(
    index: int,
    partitions: Sequence[Partition],
    source: DeclaredSource | None,
    total: Total,
    *,
    has_config: bool,
) -> SourceSummary:
    items = _items_of_pass(partitions, total)
    counts = [consumed_items(one.leaf, items, total.shard_lengths) for one in _readers(partitions)]
    known = [one for one in counts if one is not None]
    consumed = sum(known) if len(known) == len(counts) else None
    leaves = [one.leaf for one in partitions if one.leaf.state_type != "unknown"]
    places = [position_in_pass(leaf, items, total.shard_lengths) for leaf in leaves]
    positions = [place for place in places if place is not None]
    row = SourceSummary(
        source_index=index,
        dataset=f"source-{index}" if source is None else source.name,
        state_type=", ".join(dict.fromkeys(one.leaf.state_type for one in partitions)),
        desired_weight=None if source is None else source.desired_weight,
        consumed_items=consumed,
        total_items=items,
        partitions_seen=len(partitions),
        min_epoch=min((leaf.epoch for leaf in leaves), default=None),
        max_epoch=max((leaf.epoch for leaf in leaves), default=None),
        min_position=min(positions, default=None),
        max_position=max(positions, default=None),
        notes=tuple(_row_notes(partitions, source, total, items, has_config=has_config)),
    )
    hours = _hours_of_pass(source, total)
    if hours is None or consumed is None or not items:
        return row
    left = 1 - (consumed % items) / items
    return replace(row, consumed_hours=hours * consumed / items, hours_left=hours * left)


def _items_of_pass(partitions: Sequence[Partition], total: Total) -> int | None:
    """Items of a pass; what the states say of it is what their positions are places in."""
    said = [one.leaf.total_len for one in partitions if one.leaf.total_len is not None]
    return max(said, default=total.items)


def _hours_of_pass(source: DeclaredSource | None, total: Total) -> float | None:
    return total.hours if total.hours is not None or source is None else source.hours


def _readers(partitions: Sequence[Partition]) -> Iterator[Partition]:
    """The processes whose items add up: of those that all read everything, the furthest alone."""
    furthest: dict[tuple[int | None, int | None], Partition] = {}
    for one in partitions:
        if one.sampler.readers == 1:
            yield one
            continue
        key = (one.leaf.shard_id, one.leaf.num_shards)
        best = furthest.setdefault(key, one)
        if (one.leaf.epoch, one.leaf.position or 0) > (best.leaf.epoch, best.leaf.position or 0):
            furthest[key] = one
    yield from furthest.values()


def _row_notes(
    partitions: Sequence[Partition],
    source: DeclaredSource | None,
    total: Total,
    items: int | None,
    *,
    has_config: bool,
) -> Iterator[str]:
    if any(one.leaf.state_type == "unknown" for one in partitions):
        yield "its state cannot be read"
    if source is None and has_config:
        yield "the config has no source of this number"
    yield from total.notes
    if items is None and source is not None:
        yield "no index says how many items it has"
    if items is not None and total.items is not None and items != total.items:
        yield f"the run read {items:,} items a pass, and the index has {total.items:,} now"
    if total.missing:
        listed = ", ".join(total.missing[:_MOST_NAMED])
        more = len(total.missing) - _MOST_NAMED
        yield f"missing index: {listed}{f' and {more} more' if more > 0 else ''}"


def _with_shares(rows: Sequence[SourceSummary]) -> Iterator[SourceSummary]:
    items = sum(row.consumed_items or 0 for row in rows)
    hours = sum(row.consumed_hours or 0 for row in rows)
    # Hours of some sources alone say nothing of the shares of all.
    has_hours = all(row.consumed_hours is not None for row in rows)
    for row in rows:
        by_items, by_hours = row.consumed_items, row.consumed_hours
        yield replace(
            row,
            observed_weight=None if by_items is None or not items else by_items / items,
            observed_weight_hours=(
                None if by_hours is None or not hours or not has_hours else by_hours / hours
            ),
        )


def _progress(
    row: SourceSummary, partition: Partition, shard_lengths: Sequence[int]
) -> LeafProgress:
    leaf = partition.leaf
    is_sequence = leaf.current_shard is not None
    return LeafProgress(
        source_index=row.source_index,
        rank=partition.sampler.rank,
        worker=partition.sampler.worker,
        state_type=leaf.state_type,
        epoch=leaf.epoch,
        position=position_in_pass(leaf, row.total_items, shard_lengths),
        shard_id=leaf.shard_id,
        num_shards=leaf.num_shards,
        total_len=leaf.total_len,
        state_path=partition.path,
        packed_current_shard=leaf.current_shard,
        packed_current_position=leaf.position if is_sequence else None,
    )


def _spec(index: int, source: DeclaredSource, total: Total) -> SourceSpec:
    return SourceSpec(
        source_index=index,
        name=source.name,
        desired_weight=source.desired_weight,
        raw_weight=source.raw_weight,
        hours=_hours_of_pass(source, total),
        kind=source.type,
        source_path=source.first_path,
        total_items=total.items,
        index_pack_path=total.pack,
        index_pack_collection_keys=total.keys,
        matched_index_pack_collection_key=total.matched_key,
        packed_shard_lengths=total.shard_lengths if total.pack is not None else (),
        missing_index_paths=total.missing,
        tags=dict(source.tags),
    )


def _notes(
    rows: Sequence[SourceSummary], sources: Sources, declared: Sequence[DeclaredSource] | None
) -> Iterator[str]:
    if declared is None:
        yield "without a config (--config) sources have no names, weights or totals"
    elif len(declared) != len(rows):
        yield (
            f"the config has {_sources(len(declared))} and the checkpoint {len(rows):,}: they are"
            " matched by their order alone, so check that the names are right"
        )
    missing = sum(row.total_items is None for row in rows)
    if declared is not None and missing:
        yield (
            f"the items of a pass are unknown for {missing:,} of {_sources(len(rows))}: build"
            " indexes (playhead index CONFIG), or say where they are (--indexes-root)"
        )
    unknown = sum(row.consumed_items is None for row in rows)
    if unknown:
        yield (
            f"the items that were read are unknown for {unknown:,} of {_sources(len(rows))}:"
            " observed weights are shares of what the others read"
        )
    if any(one.sampler.readers > 1 for partitions in sources.partitions for one in partitions):
        yield (
            "every rank reads all items and keeps its share of the batches (map-style dataset):"
            " items are counted once"
        )
    if sources.buffered:
        yield (
            f"{sources.buffered:,} of the items that were read wait in buffers, and no batch has"
            " had them yet"
        )


def _sources(count: int) -> str:
    return f"{count:,} source{'' if count == 1 else 's'}"
