"""Leaves of conversations, and what a reader makes of their rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.formats import audio_turns
from support.fetching import micro_batch
from support.text_leaves import indexed, text_leaf

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.blend.leaf import Leaf
    from playhead.formats import Example

TAG = "[audio]"


def talk_leaf(
    type_: str,
    *,
    own: dict[str, Any] | None = None,
    tags: dict[str, Any] | None = None,
    **paths: Any,
) -> Leaf:
    """A leaf with its type's own options, given or as they are by default."""
    return text_leaf(type_, own=own, tags=tags, options={"audio_locator_tag": TAG}, **paths)


def write_rows(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read_talk(
    leaf: Leaf, folder: Path, *, with_audio: bool = True, **options: Any
) -> list[Example]:
    """Index a leaf and read all its rows, as a worker does."""
    pack = indexed(leaf, folder, **options)
    reader = Reader((leaf,), (pack.ref,), Timings())
    return reader.read(micro_batch(range(pack.num_rows)), with_audio=with_audio)


def said(example: Example) -> list[tuple[str, str | None]]:
    """Who says what; of audio turns how they are called."""
    return [
        (turn.role, turn.text if turn.audio is None else f"<{turn.audio.id}>")
        for turn in example.turns
    ]


def audio_of(example: Example) -> list[Any]:
    """The audio of each audio turn."""
    return [turn.audio.audio for turn in audio_turns(example) if turn.audio is not None]
