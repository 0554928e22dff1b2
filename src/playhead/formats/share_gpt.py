"""ShareGPT conversations in JSONL, with files or archives (`share_gpt`)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from playhead.errors import ConfigError
from playhead.formats.base import SourcePair
from playhead.formats.conversation_archives import check_archives, locate, pair_archives
from playhead.formats.conversation_audio import (
    Spoken,
    audio_turn,
    conversation_columns,
    refuse_archive_path,
)
from playhead.formats.conversation_prompts import prompts_of, with_system
from playhead.formats.example import Example, Turn
from playhead.formats.registry import register
from playhead.formats.row_fields import language_of_row
from playhead.formats.rows import convert_row, decode_row, other_fields
from playhead.formats.share_gpt_exclusions import excluded_lines, lines_of_manifests
from playhead.formats.share_gpt_paths import audio_paths
from playhead.formats.share_gpt_rows import (
    ShareGptRow,
    kept_rows,
    pieces_of,
    placeholder_pattern,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns
    from playhead.formats.example import Part, Place
    from playhead.formats.share_gpt_paths import AudioPaths

__all__ = ["NO_ID", "ShareGpt"]

NO_ID = "missing-example-id"
"""The id of conversations that have none."""

_MODES = (None, "paired", "collection")
_ROUTES = ("tar_routing_filepath", "tar_routing_index")


@register("share_gpt")
class ShareGpt:
    """Rows `{id, sound, conversations: [{from, value, duration, offset}]}`.

    - `human` and `user` are the user, `system` is the system, all others the assistant. NeMo 3.0
      takes the system for the assistant, newer versions do not.
    - `audio_placeholders` (`<sound>` and `<speech>` where nobody says) stand for audio in what the
      user says, as often as they come; elsewhere they are text. NeMo 3.0 looks for them everywhere,
      takes only the first of them in a turn, and drops what is written behind the second.
    - The audio is the first of `sound`, `speech` and `ori_sound` that is not empty, a path or a
      list; `speech` and lists are unknown to NeMo 3.0. How files and placeholders fit each other
      says `pieces_of`. Audio of a row without placeholders is not used.
    - `duration`, `offset` and `sampling_rate` stand in the turn that has the placeholder, one value
      or one for each file; those of the row itself are not read, as in NeMo. A turn without
      `duration` goes to the end and is measured when it is indexed.
    - All texts are stripped, as newer versions of NeMo do; 3.0 strips those around audio.
    - Paths: `audio_path_prefix_map` replaces the beginning of absolute ones, the longest that fits;
      `audio_root` takes the place of the manifest's folder for relative ones. With a map, paths
      that no prefix fits, and those with `.` or `..`, are refused; without one, they are as
      elsewhere.
    - With tars, the path is the name of a member. Every manifest has one tar (see `pair_archives`),
      or, with `tar_lookup_mode: collection`, the rows of all manifests look in all tars. They are
      looked up by name when they are indexed: a routing file (`tar_routing_filepath`, once called
      `tar_routing_index`) is not needed and not read.
    - The tags `system_prompt` and `override_system_prompt` are as in `multimodal_conversation`;
      NeMo 3.0 does not read them.
    - `excluded_manifest_lines` are left out and counted; their digest and audit are checked, and
      `indexed` need not be set. A digest may be written in capitals.
    - Rows whose `_skipme`, or that of their `custom` object, is truthy are dropped and counted;
      NeMo does not look.
    - `custom` holds the row's other fields, those of its `custom` object, then the leaf's tags.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """Pair manifests with tars, or each with all.

        Raises
        ------
        ConfigError
            If they do not pair, or an option is not what it should be.
        """
        placeholder_pattern(leaf)
        audio_paths(leaf)
        prompts_of(leaf)
        _check_routes(leaf)
        manifests, tars = leaf.paths["manifest"], leaf.paths.get("tar", ())
        if _is_collection(leaf):
            check_archives(tars, leaf.name)
            pairs = [SourcePair(manifest=path, tars=tuple(tars)) for path in manifests]
        else:
            pairs = pair_archives(manifests, tars, leaf.name)
        left_out = lines_of_manifests(excluded_lines(leaf), manifests, leaf.name)
        return [
            replace(pair, left_out=lines) if lines else pair
            for pair, lines in zip(pairs, left_out, strict=True)
        ]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:
        """Read a block of rows; `Format.columns`."""
        num_rows, rows = kept_rows(block)
        pattern, paths = placeholder_pattern(leaf), audio_paths(leaf)
        tar = -1 if leaf.own["tar_lookup_mode"] == "collection" else 0
        folder = os.path.dirname(pair.manifest)  # noqa: PTH120 - it may be a URL
        spoken: list[list[Spoken]] = []
        for row in rows.values():
            said = [piece.spoken for piece in pieces_of(row, pattern)]
            if pair.tars:
                spoken.append([_in_tar(one, pair, tar) for one in said if one is not None])
            else:
                spoken.append([_in_file(one, paths, folder) for one in said if one is not None])
        return conversation_columns(num_rows, list(rows), spoken)

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of one row; `Format.example`."""
        data = decode_row(row, place)
        typed = convert_row(ShareGptRow, data)
        paths = audio_paths(leaf)
        folder = os.path.dirname(place.shard)  # noqa: PTH120 - it may be a URL
        waiting = iter(parts)
        turns: list[Turn] = []
        for piece in pieces_of(typed, placeholder_pattern(leaf)):
            said = piece.spoken
            if said is None:
                turns.append(Turn(role=piece.role, text=piece.text))
                continue
            part = next(waiting, None)
            if part is not None and not part.path:
                _in_file(said, paths, folder)
            turns.append(audio_turn(leaf, place, piece.role, said, part))
        return Example(
            id=NO_ID if typed.id is None else str(typed.id),
            text=None,
            language=language_of_row(leaf, data, place),
            audio=None,
            place=place,
            kind="conversation",
            turns=tuple(with_system(prompts_of(leaf), turns)),
            custom=other_fields(leaf, data, ("conversations",)),
        )


def _check_routes(leaf: Leaf) -> None:
    """Refuse two names of the routing file that name two."""
    named = {str(PurePosixPath(leaf.own[key])) for key in _ROUTES if leaf.own[key] is not None}
    if len(named) > 1:
        raise ConfigError(
            f"the options {' and '.join(_ROUTES)} name two files: {', '.join(sorted(named))}",
            where=f"leaf {leaf.name}",
            fix=f"Keep {_ROUTES[0]}; neither is needed here",
        )


def _is_collection(leaf: Leaf) -> bool:
    mode = leaf.own["tar_lookup_mode"]
    if mode not in _MODES:
        raise ConfigError(
            f"the option tar_lookup_mode is {mode!r}",
            where=f"leaf {leaf.name}",
            fix="Write paired or collection",
        )
    if mode is not None and not leaf.paths.get("tar"):
        raise ConfigError(
            f"the option tar_lookup_mode is {mode} and there are no tars",
            where=f"leaf {leaf.name}",
            fix="Name them in tarred_audio_filepaths, or leave the mode out",
        )
    return mode == "collection"


def _in_tar(said: Spoken, pair: SourcePair, tar: int) -> Spoken:
    said.member, said.tar = locate(pair, said.name or "", tar)
    return said


def _in_file(said: Spoken, paths: AudioPaths, folder: str) -> Spoken:
    name = said.name or ""
    refuse_archive_path(name)
    said.path = paths.resolve(name, folder)
    return said
