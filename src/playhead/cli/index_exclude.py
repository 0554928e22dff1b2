"""`playhead index --exclude`: leave samples out for good."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli.progress import say
from playhead.errors import ManifestError, SourceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.index.exclusions import RowName
    from playhead.index.pack import LeafPack

__all__ = ["ExcludeResult", "exclude", "read_names", "say_exclusions"]

_MOST_NAMED = 20


@dataclass(kw_only=True, slots=True)
class ExcludeResult:
    """What became of the samples that were named."""

    leaves: dict[str, list[int]] = field(default_factory=dict[str, "list[int]"])
    """For each leaf by name: rows that are left out now, and how many of them are new."""
    changed: list[str] = field(default_factory=list[str])
    """Samples whose row is another one by now."""
    unknown: list[str] = field(default_factory=list[str])
    """Samples of which no leaf has a row."""

    def to_json(self) -> dict[str, Any]:
        """Return it as the summary has it."""
        return {
            "leaves": {
                name: {"excluded": rows, "new": new} for name, (rows, new) in self.leaves.items()
            },
            "changed": self.changed,
            "unknown": self.unknown,
        }


def read_names(files: Sequence[str]) -> list[RowName]:
    """Read files that loaders wrote as `bad_samples.jsonl`, each row once.

    Raises
    ------
    SourceNotFoundError
        If there is no such file.
    ManifestError
        If a line is no record; it names the line.
    """
    import msgspec  # noqa: PLC0415  (spares others its start)

    from playhead.index.exclusions import RowName  # noqa: PLC0415  (loads pyarrow)

    decoder = msgspec.json.Decoder(RowName)
    names: dict[tuple[str, str, int, int], RowName] = {}
    for path in files:
        try:
            lines = Path(path).read_bytes().splitlines()
        except FileNotFoundError:
            raise SourceNotFoundError(
                "the list of bad samples does not exist", where=path, fix="Correct the path"
            ) from None
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                name = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise ManifestError(
                    f"the line is not the record of a bad sample: {error}",
                    where=f"{path}:{number}",
                    fix="Give a file that a loader wrote; remove a line that a full disk cut short",
                ) from None
            names.setdefault((name.leaf, name.shard, name.byte, name.row_crc), name)
    return list(names.values())


def exclude(leaves: Sequence[tuple[Leaf, LeafPack]], names: Sequence[RowName]) -> ExcludeResult:
    """Leave rows out of leaves.

    A row is left out of the leaf that it was found in; where the config has no such leaf (it may
    have been renamed), of all that hold the row.

    Parameters
    ----------
    leaves
        The leaves with their columns.
    names
        The rows.

    Raises
    ------
    PlayheadError
        If a side file cannot be read or written.
    """
    from playhead.index.exclusions import (  # noqa: PLC0415  (loads pyarrow)
        Exclusion,
        add_exclusions,
        match_rows,
        newest_exclusion,
        now_ms,
    )

    result = ExcludeResult()
    keys = {leaf.key for leaf, _ in leaves}
    # Later than all that any of the packs knows: a window that began before keeps its rows.
    at = max(now_ms(), newest_exclusion({pack.path for _, pack in leaves}) + 1)
    matched, changed = [False] * len(names), [False] * len(names)
    for leaf, pack in leaves:
        asked = [
            number
            for number, name in enumerate(names)
            if name.leaf == leaf.key or name.leaf not in keys
        ]
        matches = match_rows(pack, [names[number] for number in asked])
        found: list[Exclusion] = []
        rows: set[int] = set()
        for number, mine, other in zip(asked, *matches, strict=True):
            changed[number] |= other
            if mine:
                name = names[number]
                matched[number] = True
                rows.update(mine)
                found.append(
                    Exclusion(
                        pack.entry.source, name.shard, name.byte, name.row_crc, name.reason, at
                    )
                )
        if found:
            new = add_exclusions(pack.path, found)
            counted = result.leaves.setdefault(leaf.name, [0, 0])
            counted[0] += len(rows)
            counted[1] += new
    for name, here, other in zip(names, matched, changed, strict=True):
        if not here:
            (result.changed if other else result.unknown).append(
                f"{name.id or 'a row'} ({name.shard}, byte {name.byte})"
            )
    return result


def say_exclusions(result: ExcludeResult) -> None:
    """Print how many rows are left out of which leaf, and what matched nothing."""
    for name, (rows, new) in result.leaves.items():
        say(f"Excluded {rows:,} rows of leaf {name}, {new:,} of them new.")
    for title, samples in (
        ("rows have changed since, and are not excluded", result.changed),
        ("samples are in none of these leaves", result.unknown),
    ):
        if samples:
            say(f"{len(samples):,} {title}:")
            for sample in samples[:_MOST_NAMED]:
                say(f"  {sample}")
            if len(samples) > _MOST_NAMED:
                say(f"  and {len(samples) - _MOST_NAMED:,} more")
    if not (result.leaves or result.changed or result.unknown):
        say("Nothing is named to exclude.")
