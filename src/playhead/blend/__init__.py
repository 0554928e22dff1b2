"""The blend: a tree of entries in a config becomes a flat list of leaves."""

from playhead.blend.leaf import Leaf, LeafOptions
from playhead.blend.read import Blend, read_blend

__all__ = ["Blend", "Leaf", "LeafOptions", "read_blend"]
