"""Leaves over files on disk, and what a pack and a format make of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.blend.leaf import Leaf, LeafOptions
from playhead.formats import Part, Place, get_format
from playhead.index.build import open_leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.formats import Example
    from playhead.index.pack import LeafPack

UNIT = 1 << 32


def make_leaf(
    type_name: str,
    *,
    manifest: Sequence[Path] = (),
    tar: Sequence[Path] = (),
    cuts: Sequence[Path] = (),
    key: str = "leaf",
    tags: dict[str, Any] | None = None,
    **options: Any,
) -> Leaf:
    roles = {"manifest": manifest, "tar": tar, "cuts": cuts}
    return Leaf(
        key=key,
        name=key,
        type=type_name,
        weight=UNIT,
        paths={role: tuple(map(str, paths)) for role, paths in roles.items() if paths},
        options=LeafOptions(**options),
        tags=tags or {},
    )


def open_one(leaf: Leaf, pack_dir: Path, **options: Any) -> LeafPack:
    return open_leaves([leaf], pack_dir=str(pack_dir), **options)[0]


def read_bytes(pack: LeafPack, i: int) -> tuple[bytes, bytes | None]:
    """The row's bytes and, where it lies in a tar, its audio's."""
    uris = pack.shards.uris
    row = pack.row_bytes(i)
    if row is None:
        row = cut(uris[pack.shard[i]], pack.row_offset[i], pack.row_size[i])
    if pack.tar[i] < 0:
        return row, None
    return row, cut(uris[pack.tar[i]], pack.audio_offset[i], pack.audio_size[i])


def cut(path: str, offset: int, size: int) -> bytes:
    return Path(path).read_bytes()[offset : offset + size]


def read_example(leaf: Leaf, pack: LeafPack, i: int) -> Example:
    row, audio = read_bytes(pack, i)
    shard = pack.shards.uris[pack.shard[i]]
    place = Place(leaf=leaf.name, shard=shard, row=i, byte=int(pack.row_offset[i]))
    parts = [] if audio is None else [Part("audio", audio, "", 0)]
    return get_format(leaf.type).example(leaf, place, row, parts)


def read_examples(leaf: Leaf, pack: LeafPack) -> list[Example]:
    return [read_example(leaf, pack, i) for i in range(pack.num_rows)]
