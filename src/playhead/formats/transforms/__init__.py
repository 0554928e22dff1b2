"""Transforms: other samples made of those that an input type reads, such as conversations."""

from __future__ import annotations

from playhead.formats.transforms import to_conversation as _to_conversation
from playhead.formats.transforms.registry import (
    RowTransform,
    register_transform,
    transform_kind,
    transform_names,
)
from playhead.formats.transforms.wrapped import TransformedLines, TransformedTable, transformed

__all__ = [
    "RowTransform",
    "TransformedLines",
    "TransformedTable",
    "register_transform",
    "transform_kind",
    "transform_names",
    "transformed",
]

del _to_conversation  # imported for what it registers
