"""What the samples of a leaf are made of, and how a change of it is noticed."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from playhead.tokens.extra import extra_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.blend.leaf import Leaf
    from playhead.index.pack import LeafPack

__all__ = ["Content", "content_of"]


class Content(NamedTuple):
    """What identifies the first n rows of a leaf."""

    fingerprint: Callable[[int], str]
    """Digest of them."""
    explain_change: Callable[[str, int], str]
    """Says what differs from what an older digest was of."""


def content_of(leaf: Leaf, pack: LeafPack) -> Content:
    """Identify the rows of a leaf, with the lines that text files add to them.

    Parameters
    ----------
    leaf
        The leaf.
    pack
        Its columns.
    """
    lines = extra_lines(leaf)
    if lines is None:
        return Content(pack.fingerprint, pack.explain_change)
    files = ", ".join(dict.fromkeys(field.path for field in leaf.extra_fields))

    def fingerprint(rows: int) -> str:
        both = f"{pack.fingerprint(rows)} {lines.digest(rows)}"
        return blake2b(both.encode(), digest_size=8).hexdigest()

    def explain(fingerprint: str, rows: int) -> str:
        return f"{pack.explain_change(fingerprint, rows)}; or the lines of {files} have changed"

    return Content(fingerprint, explain)
