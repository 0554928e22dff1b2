"""What `playhead pack` says of the inputs and of the pack."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from playhead.cli.progress import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.index.build_target import LeafSources, Target
    from playhead.index.pack import Pack
    from playhead.index.sentinels import SidecarSize

__all__ = ["layout_of", "print_summary", "say_inputs", "say_written"]

# Types whose archives have two members for each sample.
_PAIRED: Final = frozenset({"lhotse", "lhotse_shar", "share_gpt_webdataset"})


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
                "files": 0 if pack is None else len(pack.shards),
                "layout": None if pack is None else layout_of(pack),
                "inputs": [_input(member, pack, sizes) for member in target.members],
                "failures": list(failures),
            },
            ensure_ascii=False,
        )
    )


def layout_of(pack: Pack) -> str:
    """Identify which data at which places a pack holds: a SHA-256, in hexadecimal digits."""
    digest = hashlib.sha256()
    for entry in pack.leaves:
        leaf = pack.leaf(entry.key, entry.source)
        told = [entry.key, entry.type, entry.num_rows, leaf.digest, leaf.shards.paths.to_pylist()]
        digest.update(json.dumps(told).encode())
    return digest.hexdigest()


def _kind(type_name: str, path: str) -> str:
    """What kind of file `playhead index` takes a path for; its suffix, where it takes it for none.

    Examples
    --------
    >>> _kind("nemo_tarred", "a.tar"), _kind("lhotse_shar", "a.tar"), _kind("nemo", "a.json.gz")
    ('nemo_tar', 'wds_tar', 'jsonl')
    """
    from playhead.storage.compression import is_archive, plain_name  # noqa: PLC0415  (NumPy)

    if is_archive(path):
        return "wds_tar" if type_name in _PAIRED else "nemo_tar"
    name = plain_name(path)
    return "jsonl" if name.endswith((".json", ".jsonl")) else Path(name).suffix[1:]


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
        "roles": {
            role: {"kind": _kind(leaf.type, paths[0]), "files": len(paths)}
            for role, paths in leaf.paths.items()
            if paths
        },
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
