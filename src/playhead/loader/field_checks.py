"""Fields that a config names and no row has: a misspelt one would be silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.blend.leaf import LeafOptions
from playhead.errors import PlayheadError
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.plan import MicroBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead.blend import Blend
    from playhead.formats import Example
    from playhead.index.pack import LeafPack

__all__ = ["remarks_on_fields"]

# Enough to tell a misspelt field from one that some rows lack, and few enough for any blend.
_ROWS, _LEAVES = 16, 64
_USUAL = LeafOptions()


def remarks_on_fields(blend: Blend, packs: Sequence[LeafPack]) -> list[str]:
    """Say which fields that the config names on purpose are in none of some rows, a sentence each.

    A few rows of the first leaves are looked at, spread evenly; their audio is not read. Nothing is
    said of a leaf in which one of them cannot be used.

    Parameters
    ----------
    blend
        The blend.
    packs
        The columns of its leaves.
    """
    speakers = blend.options.speaker_filter_fields or ()
    speakers = speakers if blend.options.excluded_speaker_ids else ()
    said: list[str] = []
    named: set[str] = set()
    looked_at = 0
    reader: Reader | None = None
    for number, leaf in enumerate(blend.leaves[:_LEAVES]):
        texts = leaf.options.text_field != _USUAL.text_field
        languages = leaf.options.lang_field != _USUAL.lang_field
        if not (texts or languages or speakers) or not packs[number].num_rows:
            continue
        reader = reader or Reader(blend.leaves, [pack.ref for pack in packs], Timings())
        try:
            examples = _some(reader, packs[number], number)
        except (PlayheadError, OSError):
            # Training may never draw these rows; where it does, it says what is wrong with them.
            continue
        looked_at += len(examples)
        of_cuts = any(example.cut_data is not None for example in examples)
        if texts and not of_cuts and all(example.text is None for example in examples):
            said.append(_remark(leaf.name, "text_field", leaf.options.text_field, len(examples)))
        if languages and not of_cuts and all(example.language is None for example in examples):
            said.append(_remark(leaf.name, "lang_field", leaf.options.lang_field, len(examples)))
        named.update(key for example in examples for key in _keys(example))
    missing = [field for field in speakers if field not in named]
    if looked_at and missing and len(missing) == len(speakers):
        said.append(
            f"speaker_filter_fields names {', '.join(missing)}, which none of {looked_at} rows has:"
            " no speaker is held out by it"
        )
    return said


def _remark(leaf: str, option: str, field: str, rows: int) -> str:
    return f"{option} is {field!r}, which none of {rows} rows of leaf {leaf} has"


def _some(reader: Reader, pack: LeafPack, number: int) -> list[Example]:
    count = min(_ROWS, pack.num_rows)
    rows = np.arange(count) * pack.num_rows // count
    starts = reader.joined(number)
    samples = rows if starts is None else np.unique(np.searchsorted(starts, rows, "right") - 1)
    size = len(samples)
    batch = MicroBatch(
        leaf=np.full(size, number, np.int32),
        pass_=np.zeros(size, np.int64),
        row=samples.astype(np.int64),
        part=np.zeros(size, np.int32),
        repeated=np.zeros(size, np.bool_),
        step=0,
        slot=0,
        key=0,
        sample_keys=np.zeros(size, np.uint64),
    )
    return reader.read(batch, with_audio=False)


def _keys(example: Example) -> Iterable[str]:
    """The fields of a row, and of the supervisions of a cut."""
    for member in example.members or (example,):
        yield from member.custom
        yield from _within(member.cut_data)


def _within(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _within(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _within(item)
