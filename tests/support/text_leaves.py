"""Leaves whose rows have no audio, and what a pack and a reader make of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from playhead.blend.types import declared
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.formats import Place
from playhead.index.build import build_packs, open_leaves
from support.fetching import leaf_of, micro_batch

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.blend.leaf import Leaf
    from playhead.formats import Example
    from playhead.index.pack import LeafPack

PLACE = Place(leaf="train", shard="/data/web_3.jsonl", row=41, byte=512)

# What tokenizers take: no halves of surrogate pairs.
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def text_leaf(
    type_: str,
    *,
    own: dict[str, Any] | None = None,
    tags: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    **paths: Any,
) -> Leaf:
    """A leaf with its type's own options, given or as they are by default."""
    known = declared(type_)
    assert known is not None
    assert set(paths) <= set(known.inputs)
    assert set(own or {}) <= set(known.own)
    leaf = leaf_of(type_, tags=tags, options=options, **paths)
    return replace(leaf, own={**known.own, **(own or {})}, kind=known.kind)


def json_lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def indexed(leaf: Leaf, folder: Path, **options: Any) -> LeafPack:
    """The leaf's pack; built by itself where options of `build_packs` are given."""
    leaf = replace(leaf, options=replace(leaf.options, indexes_root=str(folder / "packs")))
    if options:
        (result,) = build_packs([leaf], **options)
        assert result.error is None
    return open_leaves([leaf])[0]


def read_all(leaf: Leaf, pack: LeafPack) -> list[Example]:
    """Every row, as a worker reads it."""
    reader = Reader((leaf,), (pack.ref,), Timings())
    if pack.num_rows == 0:
        return []
    return reader.read(micro_batch(range(pack.num_rows)), with_audio=True)
