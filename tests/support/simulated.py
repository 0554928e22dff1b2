"""Manifests of single speakers and of conversations, and simulators over them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead.blend.leaf import Leaf, LeafOptions
from playhead.blend.types import declared
from support.corpus import wav_bytes, write_jsonl

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TYPE = "multi_speaker_simulator"


def simulator_leaf(manifest: Path | str, *more: Path, tags: dict | None = None, **own: Any) -> Leaf:
    """A leaf over manifests; `options` are the leaf's, all other keys the type's own."""
    options = LeafOptions(**own.pop("options", {}))
    known = declared(TYPE)
    assert known is not None
    assert own.keys() <= known.own.keys()
    return Leaf(
        key="sim",
        name="sim",
        type=TYPE,
        weight=1 << 32,
        paths={"manifest": tuple(map(str, (manifest, *more)))},
        options=options,
        own={**known.own, **own},
        tags=tags or {},
    )


def voice_rows(seconds: Sequence[float], num_speakers: int = 3) -> list[dict[str, Any]]:
    return [
        {
            "audio_filepath": f"wav/{n:03d}.wav",
            "duration": length,
            "text": f"words {n}",
            "speaker_id": f"s{n % num_speakers}",
            "lang": "en",
        }
        for n, length in enumerate(seconds)
    ]


def voices(
    folder: Path, seconds: Sequence[float], num_speakers: int = 3, rate: int = 16000
) -> Path:
    """A manifest of single speakers, with its audio."""
    rows = voice_rows(seconds, num_speakers)
    (folder / "wav").mkdir(parents=True, exist_ok=True)
    for n, row in enumerate(rows):
        (folder / row["audio_filepath"]).write_bytes(wav_bytes(row["duration"], rate, seed=n))
    return write_jsonl(folder / "voices.json", rows)


def conversations(
    folder: Path, sessions: Sequence[Sequence[tuple[float, float, str]]], rate: int = 8000
) -> Path:
    """A manifest of conversations, each a list of begins, ends and speakers, with its audio."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for n, session in enumerate(sessions):
        name = f"talk{n}"
        seglst = [
            {
                "session_id": name,
                "speaker": speaker,
                "words": f"{speaker} at {start}",
                "start_time": start,
                "end_time": end,
            }
            for start, end, speaker in session
        ]
        (folder / f"{name}.json").write_text(json.dumps(seglst))
        end = max((end for _, end, _ in session), default=1.0)
        (folder / f"{name}.wav").write_bytes(wav_bytes(end, rate, seed=n))
        rows.append(
            {
                "audio_filepath": f"{name}.wav",
                "seglst_filepath": f"{name}.json",
                "session_id": name,
                "lang": "de",
            }
        )
    return write_jsonl(folder / "conversations.json", rows)
