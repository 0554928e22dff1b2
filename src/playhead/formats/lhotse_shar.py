"""Lhotse Shar: cuts in JSONL, and their data in archives that run parallel (`lhotse_shar`)."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import ManifestError
from playhead.formats.base import BadRowError
from playhead.formats.cut_rows import cut_columns, cut_example, decode_cut, resolve_paths
from playhead.formats.registry import register
from playhead.formats.rows import decode_row
from playhead.formats.shar_fields import in_memory_manifest, set_field
from playhead.formats.shar_folders import CUTS, pairs_of_fields, pairs_of_folder
from playhead.formats.shar_record import parse_record
from playhead.storage.compression import is_archive

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns, SourcePair
    from playhead.formats.cut_rows import CutRow
    from playhead.formats.example import Example, Part, Place

__all__ = ["LhotseShar"]

_FIX = "Index the shards again if they have changed; else their order is not that of the cuts"


@register("lhotse_shar")
class LhotseShar:
    """Cuts whose recordings, features, arrays and scalars lie in shards of their own.

    - The shards are those of the folders in role `shar`, or, where roles are called like fields,
      the ones that each role names; see `pairs_of_folder` and `pairs_of_fields`.
    - A record belongs to a cut by its place, and bears its id; another id is an error.
    - Recordings may be of any format that can be decoded, arrays are `.npy` or lilcom's `.llc`;
      what is `.nodata`, and a line that has nothing but `cut_id`, leaves the field as the cut has
      it.
    - A MonoCut whose recording has no transforms also gives `audio`, which decodes faster.
    - Unlike Lhotse's reader, `shard_origin` and `shar_epoch` are not added to the cuts.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One source a shard, in declared order; the k-th shards of all fields are one."""
        if CUTS in leaf.paths:
            return pairs_of_fields(leaf.paths, leaf.name)
        return [pair for folder in leaf.paths["shar"] for pair in pairs_of_folder(folder)]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of cuts; `Format.columns`."""
        fields = {shard.field for shard in pair.fields}
        return cut_columns(block, partial(_check_field, fields))

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of one cut; `Format.example`.

        Raises
        ------
        ManifestError
            If the cut or what belongs to it cannot be used, or belongs to another cut.
        ArchiveError
            If a record is damaged.
        """
        first, *lines = row.split(b"\n")
        data = decode_cut(first, place)
        resolve_paths(data, os.path.dirname(place.shard))  # noqa: PTH120 - it may be a URL
        in_memory: dict[str, bytes] = {}
        for line in lines:
            if line:
                for field, value in _scalars(line, data["id"], place).items():
                    set_field(data, field, value)
        for part in parts:
            where = _Spot(place, part)
            if is_archive(part.path):
                _add_record(data, part, in_memory, where)
            else:
                scalars = _scalars(part.data, data["id"], where)
                if part.field in scalars:
                    set_field(data, part.field, scalars[part.field])
        return cut_example(leaf, place, data, in_memory)


class _Spot(NamedTuple):
    """Where something of a cut lies; a text only if somebody asks."""

    place: Place
    part: Part

    def __str__(self) -> str:
        part = self.part
        return f"{self.place}; field {part.field}, {part.path}, byte {part.offset}"


def _check_field(fields: AbstractSet[str], cut: CutRow) -> None:
    """Refuse a cut whose recording lies in a field that nobody names, unless it has features."""
    if not fields.isdisjoint({"recording", "features"}) or cut.recording is None:
        return
    if any(source.type == "shar" for source in cut.recording.sources):
        raise BadRowError(
            "the cut's audio lies in the field `recording`, and the shards have "
            f"{', '.join(sorted(fields)) or 'no field'} beside the cuts",
            fix="Restore the recording shards, or name them as recording in shar_path",
        )


def _scalars(line: bytes, cut_id: str, where: object) -> dict[str, Any]:
    """Return what a line says of a cut."""
    values = decode_row(line, where)
    _check_id(values.pop("cut_id", None), cut_id, where)
    return values


def _add_record(
    data: dict[str, Any], part: Part, in_memory: dict[str, bytes], where: object
) -> None:
    record = parse_record(part.data, where)
    if record is None:
        return
    _check_id(record.id, data["id"], where)
    marker = f"{record.id}/{part.field}"
    manifest = decode_row(record.manifest, where)
    set_field(data, part.field, in_memory_manifest(manifest, record, part.field, marker, where))
    in_memory[marker] = record.data


def _check_id(found: object, cut_id: str, where: object) -> None:
    # Archives that were made again by `tar cf x.tar ./*` have names that begin like this.
    if found != cut_id and str(found).removeprefix("./") != cut_id.removeprefix("./"):
        raise ManifestError(
            f"the cut is {cut_id!r} and the record that should be its own is {found!r}'s",
            where=str(where),
            fix=_FIX,
        )
