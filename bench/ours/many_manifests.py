"""A blend of very many small manifests, for measurements of what looks at all of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lengths import speech_seconds
from playhead.loader.planned import open_planned

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RANKS", "blend_of"]

RANKS = 64
_ROWS = 125
# Manifests of the same lengths are as good as others: nothing looks for that.
_DISTINCT = 100
_OF_A_FOLDER = 1_000


def blend_of(data: Path, manifests: int) -> Path:
    """The config of a blend of so many manifests of 125 rows; made with its indexes, and kept."""
    folder = data / f"manifests_{manifests}"
    config = folder / "blend.yaml"
    if not config.exists():
        contents = [_manifest(seed) for seed in range(min(_DISTINCT, manifests))]
        paths: list[Path] = []
        for number in range(manifests):
            paths.append(folder / f"{number // _OF_A_FOLDER}" / f"{number}.json")
            paths[-1].parent.mkdir(parents=True, exist_ok=True)
            paths[-1].write_text(contents[number % len(contents)])
        made = folder / "blend.made"
        with made.open("w") as file:
            file.write("batch_duration: 600\nuse_bucketing: true\nshuffle: true\nseed: 1\n")
            file.write(f"sample_rate: 16000\nauto_index: true\nindexes_root: {folder}/indexes\n")
            file.write("input_cfg:\n")
            for number, path in enumerate(paths):
                weight = 1 + number % 7
                file.write(f"- {{type: nemo, manifest_filepath: {path}, weight: {weight}}}\n")
        made.rename(config)
    open_planned(str(config), world_size=RANKS)
    return config


def _manifest(seed: int) -> str:
    seconds = speech_seconds(_ROWS, seed=seed).tolist()
    rows = (
        {"audio_filepath": f"{number}.wav", "duration": round(length, 2), "text": "a text"}
        for number, length in enumerate(seconds)
    )
    return "".join(f"{json.dumps(row)}\n" for row in rows)
