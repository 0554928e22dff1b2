"""What the rest of Playhead knows of one source of a blend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Concatenation", "ExtraField", "Kind", "Leaf", "LeafOptions", "Transform"]

Kind: TypeAlias = Literal["cut", "text", "pair", "sft", "messages", "conversation"]
"""What a sample is: a stretch of audio, a line of text, two of them, or turns of several forms."""


class Transform(NamedTuple):
    """What makes other samples of those that an input type reads."""

    name: str
    """Its name, such as `lhotse_as_conversation`."""
    options: Mapping[str, Any]
    """Its own options, with their defaults."""


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
    slice_length: int | None = None
    """Rows that a pass takes of each shard, one after another; all if None."""
    audio_locator_tag: str | None = None
    """What stands for a stretch of audio in the text of a prompt."""
    token_equivalent_duration: float | None = None
    """Seconds of audio that take the room of one token."""
    cache_bytes: int = 64 << 30
    """Most bytes that unpacked stretches of tables may take on disk, for all of a machine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Concatenation:
    """Rows of a leaf that follow each other, joined greedily into one sample."""

    max_duration: float
    """Longest joined sample, seconds, inclusive; a longer row is a sample of its own."""
    gap: float = 0.0
    """Silence between rows, seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtraField:
    """A field of every row that a line of a text file gives."""

    type: Literal["text_iter", "text_sample"]
    """Line i for row i, or a line chosen by the sample's key."""
    name: str
    """The field's name."""
    path: str
    """The text file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    """One source of samples: a type, its files, its share of the blend and its name."""

    key: str
    """Stable identity: a short explicit name, else a hash of type and declared paths."""
    name: str
    """What people read in messages and reports."""
    type: str
    """The input type's registered name, such as `nemo_tarred` or `lhotse_shar`."""
    kind: Kind = "cut"
    """What its samples are."""
    weight: int
    """Share of the blend in units of 2**-32; 0 is allowed."""
    paths: Mapping[str, tuple[str, ...]]
    """Role (`manifest`, `tar`, `cuts`, …) to the expanded paths, in declared order."""
    options: LeafOptions = field(default_factory=LeafOptions)
    """The cascaded options."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """The options that only its input type has, with their defaults."""
    extra_fields: tuple[ExtraField, ...] = ()
    """Fields that lines of text files add to its rows."""
    concatenation: Concatenation | None = None
    """How rows are joined into samples; None where each row is one."""
    transforms: tuple[Transform, ...] = ()
    """What makes other samples of those that its files hold, one after another."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    """Attributes that every example of the leaf gets."""
    outer_tags: Mapping[str, Any] = field(default_factory=dict)
    """Further attributes of what is no cut: tags of groups around it, which make no turns."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Unknown keys of the entry (`corpus`, `language`, …), kept for people."""
