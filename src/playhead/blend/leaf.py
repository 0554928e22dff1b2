"""What the rest of Playhead knows of one source of a blend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Leaf", "LeafOptions"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LeafOptions:
    """The options of a leaf that shape its columns or its examples, after the cascade."""

    text_field: str = "text"
    """The row's key that holds the transcript."""
    lang_field: str = "lang"
    """The row's key that holds the language."""
    indexed: bool | None = None
    """Demand an `.idx` or a pack (true), or find offsets on the spot (anything else)."""
    indexes_root: str | None = None
    """Folder of `.idx` files and packs; beside the data and in the user's cache if None."""
    index_pack: str | None = None
    """A pack to use as declared, an absolute path."""
    input_sampling_rate: int | None = None
    """The source rate (Hz) of rows that do not say."""
    channel_selector: int | str | None = None
    """The channel to use, or the row's key that holds it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    """One source of samples: a type, its files, its share of the blend and its name."""

    key: str
    """Stable identity: a short explicit name, else a hash of type and declared paths."""
    name: str
    """What people read in messages and reports."""
    type: str
    """The input type's registered name (`nemo`, `nemo_tarred`, `lhotse`)."""
    weight: int
    """Share of the blend in units of 2**-32; 0 is allowed."""
    paths: Mapping[str, tuple[str, ...]]
    """Role (`manifest`, `tar`, `cuts`) to the expanded paths, in declared order."""
    options: LeafOptions = field(default_factory=LeafOptions)
    """The cascaded options."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    """Attributes that every example of the leaf gets."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Unknown keys of the entry (`corpus`, `language`, …), kept for people."""
