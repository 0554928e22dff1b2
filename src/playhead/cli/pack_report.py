"""What `playhead pack` says of the inputs and of the pack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from playhead.cli.progress import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.index.build_target import LeafSources, Target
    from playhead.index.pack import Pack
    from playhead.index.sentinels import SidecarSize

__all__ = ["print_summary", "say_inputs", "say_written"]


def say_inputs(target: Target, sizes: Mapping[str, SidecarSize]) -> None:
    """Print what a pack would hold, an input a line.

    Parameters
    ----------
    target
        The pack.
    sizes
        What is known of the `.idx` of a data file, by the file's path.
    """
    for member in target.members:
        rows = _rows(member, sizes)
        shown = "rows unknown" if rows is None else f"{rows:,} rows"
        leaf = member.leaf
        say(f"  [{leaf.type}] {leaf.name}: {shown}, {len(member.paths):,} files  key={leaf.key}")


def say_written(pack: Pack, config: str) -> None:
    """Print what was written, and what to do with it."""
    path = Path(pack.path)
    rows = sum(entry.num_rows for entry in pack.leaves)
    say(
        f"Wrote {path}: {len(pack.leaves):,} inputs, {rows:,} rows, {len(pack.shards):,} files, "
        f"{path.stat().st_size:,} bytes."
    )
    for entry in pack.leaves:
        for reason, count in entry.dropped.items():
            say(f"  left out {count:,} ({reason}) of {entry.key}")
    if not all(entry.has_offsets for entry in pack.leaves):
        say("It has no member offsets: training needs USE_AIS_GET_BATCH=true.")
    say(
        f"Add to {config}, beside the options of the loader (as in train_ds) or to its entries:\n"
        f"  indexed: true\n  index_pack: {path}"
    )


def print_summary(
    target: Target,
    pack: Pack | None,
    *,
    failures: Sequence[str],
    sizes: Mapping[str, SidecarSize],
) -> None:
    """Print everything as one line of JSON to stdout.

    Parameters
    ----------
    target
        What was to be packed.
    pack
        The pack; None where none was written.
    failures
        Why none was.
    sizes
        What is known of the `.idx` of a data file, by the file's path.
    """
    typer.echo(
        json.dumps(
            {
                "pack": str(target.path),
                "written": pack is not None,
                "bytes": 0 if pack is None else Path(pack.path).stat().st_size,
                "inputs": [_input(member, pack, sizes) for member in target.members],
                "failures": list(failures),
            },
            ensure_ascii=False,
        )
    )


def _input(
    member: LeafSources, pack: Pack | None, sizes: Mapping[str, SidecarSize]
) -> dict[str, Any]:
    leaf = member.leaf
    entry = None if pack is None else pack.entry(member.source)
    facts: dict[str, Any] = {
        "key": leaf.key,
        "name": leaf.name,
        "type": leaf.type,
        "files": len(member.paths),
    }
    if entry is None:
        return {**facts, "rows": _rows(member, sizes)}
    return {
        **facts,
        "rows": entry.num_rows,
        "left_out": entry.dropped,
        "embedded": entry.embedded,
        "member_offsets": entry.has_offsets,
    }


def _rows(member: LeafSources, sizes: Mapping[str, SidecarSize]) -> int | None:
    """Rows of an input as the `.idx` files say; None if one does not."""
    total = 0
    for pair in member.pairs:
        found = sizes.get(pair.manifest)
        if found is None or found.records is None:
            return None
        total += found.records
    return total
