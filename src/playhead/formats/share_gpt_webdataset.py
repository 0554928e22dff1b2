"""ShareGPT conversations in WebDataset archives (`share_gpt_webdataset`)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.formats.base import SourcePair
from playhead.formats.conversation_audio import audio_turn, conversation_columns
from playhead.formats.conversation_prompts import prompts_of, with_system
from playhead.formats.example import Example, Turn
from playhead.formats.registry import register
from playhead.formats.row_fields import language_of_row
from playhead.formats.rows import convert_row, decode_row, other_fields
from playhead.formats.share_gpt_rows import (
    ShareGptRow,
    kept_rows,
    pieces_of,
    placeholder_pattern,
)
from playhead.formats.share_gpt_samples import (
    bound_members,
    keyed_samples,
    paired_samples,
    sample_key,
)
from playhead.formats.share_gpt_shards import shards_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns, Sample
    from playhead.formats.conversation_audio import Spoken
    from playhead.formats.example import Part, Place

__all__ = ["ShareGptWebdataset"]

_VERSION = "wds_sample_index_version"


@register("share_gpt_webdataset")
class ShareGptWebdataset:
    """Samples of a JSON, as `ShareGpt` reads it, and the audio beside it in one archive.

    - The shards are listed by the folder `data_dir` or found in it; see `shards_of`. Version 2 does
      not need a list; in NeMo it does.
    - Version 1 of `wds_sample_index_version` has one audio for each JSON, the two in either order;
      version 2 any number. See `paired_samples` and `keyed_samples`, and `bound_members` for which
      one a turn means. NeMo 3.0 knows version 1, and does not look whether names fit.
    - A row that names no audio means the one beside it, which is called like the conversation.
    - The id is the row's own, else its member's name without its suffix and, in version 1, without
      its folder; where nobody knows that name, the shard's and the number of the row in the leaf.
    - Everything in `ShareGpt` about roles, placeholders, durations, tags and `_skipme` holds here.
    """

    rows_are_members = True

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One source a shard, in the order of their list.

        Raises
        ------
        ConfigError
            If the list cannot be used, or an option is not what it should be.
        SourceNotFoundError
            If there are no shards.
        """
        placeholder_pattern(leaf)
        prompts_of(leaf)
        _version(leaf)
        return [
            SourcePair(manifest=shard)
            for folder in leaf.paths["data_dir"]
            for shard in shards_of(folder, leaf.name)
        ]

    def samples(self, leaf: Leaf, names: Sequence[str]) -> Iterator[Sample]:
        """Group the members of a shard; `Format`."""
        return paired_samples(names) if _version(leaf) == 1 else keyed_samples(names)

    def bind(self, leaf: Leaf, wanted: Sequence[str | None], there: Sequence[str]) -> list[int]:  # noqa: ARG002 - the protocol's
        """Which members the audio turns of a row mean; `Format`."""
        return bound_members(wanted, there)

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of rows; `Format.columns`."""
        num_rows, rows = kept_rows(block)
        pattern = placeholder_pattern(leaf)
        spoken: list[list[Spoken]] = []
        for row in rows.values():
            said = [piece.spoken for piece in pieces_of(row, pattern, is_beside_audio=True)]
            spoken.append([one for one in said if one is not None])
            for one in spoken[-1]:
                one.member = one.name
        return conversation_columns(num_rows, list(rows), spoken)

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of one row; `Format.example`."""
        data = decode_row(row, place)
        typed = convert_row(ShareGptRow, data)
        own = _id(leaf, place) if typed.id is None else str(typed.id)
        pieces = pieces_of(typed, placeholder_pattern(leaf), is_beside_audio=True)
        waiting = iter(parts)
        turns = [
            Turn(role=piece.role, text=piece.text)
            if piece.spoken is None
            else audio_turn(leaf, place, piece.role, piece.spoken, next(waiting, None), unnamed=own)
            for piece in pieces
        ]
        return Example(
            id=own,
            text=None,
            language=language_of_row(leaf, data, place),
            audio=None,
            place=place,
            kind="conversation",
            turns=tuple(with_system(prompts_of(leaf), turns)),
            custom=other_fields(leaf, data, ("conversations",)),
        )


def _version(leaf: Leaf) -> int:
    version: Any = leaf.own[_VERSION]
    if isinstance(version, bool) or version not in (1, 2):
        raise ConfigError(
            f"the option {_VERSION} is {version!r}", where=f"leaf {leaf.name}", fix="Write 1 or 2"
        )
    return version


def _id(leaf: Leaf, place: Place) -> str:
    """What a row without an id is called."""
    folder, slash, name = (place.member or "").partition(f"{place.shard}/")
    if folder or not slash:
        return f"{PurePosixPath(place.shard).stem}-{place.row:012d}"
    return PurePosixPath(name).stem if _version(leaf) == 1 else sample_key(name)
