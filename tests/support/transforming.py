"""Leaves with transforms, and what the index and a fetch make of their rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import soundfile as sf
from lhotse import CutSet, MonoCut, Recording, SupervisionSegment

from playhead.blend.leaf import Leaf, Transform
from playhead.fetch.cuts import to_cut
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.formats import Example, Place
from playhead.formats.cut_rows import cut_example, decode_cut
from playhead.formats.transforms.registry import made
from playhead.index.build import build_packs, open_leaves
from playhead.index.pack import open_pack
from support.fetching import leaf_of, micro_batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lhotse.cut import Cut

    from playhead.formats import Turn
    from playhead.index.pack import LeafPack

PLACE = Place(leaf="train", shard="/data/cuts.jsonl", row=7, byte=123)
TAG = "<audio>"


def with_transforms(leaf: Leaf, *transforms: tuple[str, dict[str, Any]] | str) -> Leaf:
    """The leaf with transforms, the innermost first, each a name or a name and its options."""
    pairs = [(one, {}) if isinstance(one, str) else one for one in transforms]
    return replace(
        leaf,
        transforms=tuple(Transform(*pair) for pair in pairs),
        options=replace(leaf.options, audio_locator_tag=TAG),
    )


def apply(leaf: Leaf, example: Example, name: str, **options: Any) -> Example:
    """What one transform makes of a sample."""
    return made(Transform(name, options)).example(leaf, example)


def dropped(leaf: Leaf, example: Example, name: str, **options: Any) -> str | None:
    """Why one transform drops a sample."""
    return made(Transform(name, options)).dropped(leaf, example)


def index(leaf: Leaf, folder: Path) -> LeafPack:
    (pack,) = open_leaves([leaf], pack_dir=str(folder / "packs"))
    return pack


def index_good_rows(leaf: Leaf, folder: Path) -> LeafPack:
    """The index without the rows that cannot be used."""
    (result,) = build_packs([leaf], indexes_root=str(folder), skip_bad_rows=True)
    assert result.error is None
    return open_pack(result.path).leaf(leaf.key)


def read(leaf: Leaf, pack: LeafPack, *, with_audio: bool = True) -> list[Example]:
    """All rows of the index, as a fetch reads them."""
    rows = micro_batch(np.arange(pack.num_rows))
    return Reader([leaf], [pack.ref], Timings()).read(rows, with_audio=with_audio)


def cut_of(example: Example) -> Cut:
    return to_cut(example, None, {}, example.channel_selector)


def recording(
    folder: Path, name: str, seconds: float, *, rate: int = 16000, channels: int = 1, seed: int = 0
) -> Recording:
    """A wav of noise that no other seed gives."""
    samples = np.random.default_rng(seed).uniform(-0.5, 0.5, (round(seconds * rate), channels))
    sf.write(folder / f"{name}.wav", samples, rate, subtype="PCM_16")
    return Recording.from_file(folder / f"{name}.wav", recording_id=name)


def said(  # noqa: PLR0917 - what a segment is, in the order of time
    name: str,
    source: Recording,
    start: float,
    seconds: float,
    text: str | None,
    speaker: str,
    **k: Any,
) -> SupervisionSegment:
    return SupervisionSegment(
        name, source.id, start, seconds, text=text, language="en", speaker=speaker, **k
    )


def cut(
    name: str, source: Recording, supervisions: Sequence[SupervisionSegment] = (), **custom: Any
) -> MonoCut:
    """A cut of a whole recording."""
    return MonoCut(
        id=name,
        start=0.0,
        duration=source.duration,
        channel=0,
        recording=source,
        supervisions=list(supervisions),
        custom=custom or None,
    )


def written(folder: Path, *cuts: Cut) -> Leaf:
    """A leaf of a file of cuts."""
    CutSet.from_cuts(cuts).to_file(folder / "cuts.jsonl")
    return leaf_of("lhotse", cuts=folder / "cuts.jsonl")


def example_of(leaf: Leaf, one: Cut) -> Example:
    """The sample of a cut, without an index."""
    row = msgspec.json.encode(one.to_dict())
    return cut_example(leaf, PLACE, decode_cut(row, PLACE))


def turns(example: Example) -> list[tuple[str, str | None, str | None, float | None]]:
    """Role, text, id of the audio and its length, of each turn."""
    return [_turn(turn) for turn in example.turns]


def _turn(turn: Turn) -> tuple[str, str | None, str | None, float | None]:
    return (turn.role, turn.text, None if turn.audio is None else turn.audio.id, turn.duration)
