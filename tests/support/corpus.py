"""Small corpora for the tests: noise of known lengths, manifests, tars."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING

import numpy as np
import soundfile as sf

if TYPE_CHECKING:
    from pathlib import Path


def tone(seconds: float, rate: int = 16000, channels: int = 1, seed: int = 0) -> np.ndarray:
    """(samples, channels) int16 noise, the same for the same arguments."""
    rng = np.random.default_rng(seed)
    return rng.integers(-8000, 8000, (round(seconds * rate), channels), dtype=np.int16)


def wav_bytes(
    seconds: float, rate: int = 16000, channels: int = 1, seed: int = 0, format: str = "WAV"
) -> bytes:
    buffer = io.BytesIO()
    sf.write(buffer, tone(seconds, rate, channels, seed), rate, format=format)
    return buffer.getvalue()


def write_jsonl(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def nemo_corpus(
    folder: Path, durations: list[float], rate: int = 16000, prefix: str = "utt"
) -> Path:
    """Wavs and a NeMo manifest with relative paths; the transcript names the utterance."""
    rows = []
    for i, seconds in enumerate(durations):
        name = f"wav/{prefix}{i:05d}.wav"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(wav_bytes(seconds, rate, seed=i))
        rows.append(
            {"audio_filepath": name, "duration": seconds, "text": f"{prefix} {i}", "lang": "en"}
        )
    return write_jsonl(folder / "manifest.json", rows)


def write_tar(
    path: Path, members: list[tuple[str, bytes]], format: int = tarfile.USTAR_FORMAT
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=format) as tar:
        for name, payload in members:
            info = tarfile.TarInfo(name)
            info.size = len(payload)
            tar.addfile(info, io.BytesIO(payload))
    return path


def tarred_corpus(
    folder: Path, durations: list[float], shards: int, rate: int = 16000
) -> tuple[str, str]:
    """Patterns of a manifest and a tar per shard, utterances dealt to shards in turn."""
    for shard in range(shards):
        members, rows = [], []
        for i in range(shard, len(durations), shards):
            name = f"utt{i:05d}.wav"
            members.append((name, wav_bytes(durations[i], rate, seed=i)))
            rows.append(
                {
                    "audio_filepath": name,
                    "duration": durations[i],
                    "text": f"utt {i}",
                    "shard_id": shard,
                }
            )
        write_tar(folder / f"audio_{shard}.tar", members)
        write_jsonl(folder / f"manifest_{shard}.json", rows)
    span = f"_OP_0..{shards - 1}_CL_"
    return str(folder / f"manifest_{span}.json"), str(folder / f"audio_{span}.tar")
