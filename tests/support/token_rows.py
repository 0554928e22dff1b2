"""Leaves of rows without audio, for counting what they say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.formats import Example, RowColumns, SourcePair, TableBlock, TableRow, register
from playhead.index.build import build_packs, open_leaves
from support.leaves import make_leaf

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from playhead.blend.leaf import Leaf
    from playhead.index.pack import LeafPack


def nemo_row(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {"audio_filepath": f"/a/{number}.wav", "duration": 1.5, **fields}


def cut_row(number: int = 0, supervisions: Sequence[dict] = (), **custom: Any) -> dict[str, Any]:
    recording = {
        "id": f"r{number}",
        "sources": [{"type": "file", "channels": [0], "source": f"/a/{number}.wav"}],
        "sampling_rate": 16000,
        "num_samples": 32000,
        "duration": 2.0,
    }
    return {
        "id": f"c{number}",
        "type": "MonoCut",
        "start": 0.0,
        "duration": 2.0,
        "channel": 0,
        "recording": recording,
        "supervisions": [
            {
                "id": f"s{number}-{i}",
                "recording_id": f"r{number}",
                "start": 0.0,
                "duration": 2.0,
                **one,
            }
            for i, one in enumerate(supervisions)
        ],
        "custom": custom,
    }


def mixed_row(number: int, *cuts: dict[str, Any]) -> dict[str, Any]:
    pause = {
        "id": "p",
        "type": "PaddingCut",
        "duration": 1.0,
        "sampling_rate": 16000,
        "num_samples": 16000,
        "feat_value": 0.0,
    }
    return {
        "id": f"m{number}",
        "type": "MixedCut",
        "tracks": [
            {"type": cut["type"], "cut": cut, "offset": float(i)}
            for i, cut in enumerate([*cuts, pause])
        ],
    }


def write_rows(path: Path, rows: Sequence[dict | str]) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def nemo_leaf(folder: Path, rows: Sequence[dict | str], **options: Any) -> Leaf:
    return make_leaf("nemo", manifest=[write_rows(folder / "m.json", rows)], **options)


def cuts_leaf(folder: Path, rows: Sequence[dict | str], **options: Any) -> Leaf:
    return make_leaf("lhotse", cuts=[write_rows(folder / "cuts.jsonl", rows)], **options)


def open_pack_of(leaf: Leaf, folder: Path, *, embed: bool = False) -> LeafPack:
    if embed:
        (result,) = build_packs([leaf], indexes_root=str(folder), embed_rows=True)
        assert result.error is None, result.error
        return open_leaves([leaf], pack_dir=str(folder / "playhead"))[0]
    return open_leaves([leaf], pack_dir=str(folder / "packs"))[0]


def side_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.arrow"))


@register("table_for_tests")
class Table:
    """Rows in a JSON list: a table that reads itself, some rows of which are left out."""

    def sources(self, leaf):
        return [SourcePair(manifest=path) for path in leaf.paths["manifest"]]

    def scan(self, leaf, pair, on_bad):
        rows = _rows(pair.manifest)
        kept = np.array([i for i, row in enumerate(rows) if not row.get("out")], np.int64)
        count = len(kept)
        columns = RowColumns(
            num_rows=len(rows),
            kept=kept,
            duration_us=np.full(count, 1_000_000),
            num_samples=np.zeros(count, np.int64),
            rate=np.zeros(count, np.int32),
            channels=np.zeros(count, np.int16),
            tar=np.full(count, -1, np.int32),
        )
        yield TableBlock(
            columns=columns, rows=[json.dumps(rows[i]).encode() for i in kept], place=kept
        )

    def groups(self, leaf, pair):
        count = len(_rows(pair.manifest))
        return np.array([count]), np.array([100])

    def load(self, leaf, path, places, *, with_audio):
        assert not with_audio
        rows = _rows(path)
        return [TableRow(json.dumps(rows[place]).encode(), None) for place in places.tolist()]

    def example(self, leaf, place, row, parts):
        return _example(leaf, place, json.loads(row))


@register("lines_for_tests")
class Lines:
    """A person's own type, which calls everything by another name."""

    def sources(self, leaf):
        return [SourcePair(manifest=path) for path in leaf.paths["manifest"]]

    def columns(self, leaf, pair, block):
        count = len(block.splitlines())
        return RowColumns(
            num_rows=count,
            kept=np.arange(count),
            duration_us=np.full(count, 1_000_000),
            num_samples=np.zeros(count, np.int64),
            rate=np.zeros(count, np.int32),
            channels=np.zeros(count, np.int16),
            tar=np.full(count, -1, np.int32),
        )

    def example(self, leaf, place, row, parts):
        text, language = json.loads(row)["said"].split("|")
        return _example(leaf, place, {"text": text, "lang": language})


def _rows(path: str) -> list[dict[str, Any]]:
    with open(path) as file:  # noqa: PTH123
        return json.load(file)


def _example(leaf, place, row) -> Example:
    return Example(
        id="x",
        text=row["text"],
        language=row.get("lang"),
        audio=None,
        place=place,
        custom={**row, **leaf.tags},
    )
