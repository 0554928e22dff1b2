"""The synthetic corpora, the same on every machine, made once and kept in one folder."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import soundfile as sf

from lengths import speech_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["FULL", "QUICK", "Size", "synthesise"]

_VERSION = "1"
_RATE = 16_000
_DISTINCT_SOUNDS = 400


class Size(NamedTuple):
    """How much there is of everything."""

    rows: int
    """Rows of the NeMo manifest, which has no audio."""
    cuts: int
    """Cuts of the Lhotse manifest, which has no audio."""
    shards: int
    """Archives of audio."""
    utterances: int
    """Utterances in each."""
    files: int
    """Plain files of audio."""
    column: int
    """Lengths in the column that stands for a very large leaf."""


FULL = Size(
    rows=1_000_000, cuts=200_000, shards=10, utterances=1_000, files=2_000, column=10_000_000
)
QUICK = Size(rows=200_000, cuts=50_000, shards=4, utterances=500, files=1_000, column=10_000_000)


def synthesise(folder: Path, size: Size) -> None:
    """Write all corpora unless they are there.

    Below `folder`: `nemo/manifest.json` and the same in four parts, `cuts/cuts.jsonl` and the same
    in four parts, `tarred/` (NeMo) and `shar/` (Lhotse) with the same audio, `wav/` with plain
    files and a manifest for each loader, `column.npy` with lengths (µs).
    """
    mark = folder / "made"
    stamp = f"{_VERSION} {size}"
    if mark.exists() and mark.read_text() == stamp:
        return
    for name in ("nemo", "cuts", "tarred", "shar", "wav"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    _write_in_parts(folder / "nemo", "manifest.json", _nemo_rows(speech_seconds(size.rows, 1)))
    _write_in_parts(folder / "cuts", "cuts.jsonl", _cut_rows(speech_seconds(size.cuts, 2)))
    flacs = _encoded("FLAC")
    for shard in range(size.shards):
        _write_shard(folder, shard, size.utterances, flacs)
    _write_wavs(folder / "wav", size.files)
    column = (speech_seconds(size.column, 3) * 1e6).astype(np.int64)
    np.save(folder / "column.npy", column)
    mark.write_text(stamp)


def _nemo_rows(seconds: NDArray[np.float64]) -> list[str]:
    text = "so the words of this row are only here to give it the length that rows have"
    return [
        json.dumps(
            {
                "audio_filepath": f"corpus/speaker_{i % 4999:05d}/chapter/utterance_{i:09d}.flac",
                "duration": length,
                "text": f"{text} {i:07d}",
                "lang": "en",
                "sampling_rate": _RATE,
            }
        )
        for i, length in enumerate(seconds.tolist())
    ]


def _cut_rows(seconds: NDArray[np.float64]) -> list[str]:
    return [json.dumps(_cut(f"utterance-{i:09d}", s)) for i, s in enumerate(seconds.tolist())]


def _cut(name: str, seconds: float, source: str | None = None) -> dict[str, object]:
    return {
        "id": name,
        "start": 0.0,
        "duration": seconds,
        "channel": 0,
        "supervisions": [
            {
                "id": name,
                "recording_id": name,
                "start": 0,
                "duration": seconds,
                "channel": 0,
                "text": "so the words of this row are only here to give it some length",
                "language": "en",
            }
        ],
        "recording": _recording(name, seconds, "file", source or f"corpus/audio/{name}.flac"),
        "type": "MonoCut",
    }


def _recording(name: str, seconds: float, kind: str, source: str) -> dict[str, object]:
    return {
        "id": name,
        "sources": [{"type": kind, "channels": [0], "source": source}],
        "sampling_rate": _RATE,
        "num_samples": round(seconds * _RATE),
        "duration": seconds,
        "channel_ids": [0],
    }


def _write_in_parts(folder: Path, name: str, rows: list[str]) -> None:
    _write_lines(folder / name, rows)
    quarter = len(rows) // 4
    for part in range(4):
        path = (folder / f"part_{part}").with_suffix(Path(name).suffix)
        _write_lines(path, rows[part * quarter : (part + 1) * quarter])


def _write_lines(path: Path, rows: Iterable[str]) -> None:
    with path.open("w") as file:
        for row in rows:
            file.write(row + "\n")


def _sounds(count: int) -> list[NDArray[np.float64]]:
    """Something between a voice and noise, from 1 to 3 s each."""
    rng = np.random.default_rng(4)
    sounds: list[NDArray[np.float64]] = []
    for seconds in np.round(rng.uniform(1.0, 3.0, count), 2).tolist():
        time = np.arange(round(seconds * _RATE)) / _RATE
        tone = np.sin(2 * np.pi * 140 * time) * np.abs(np.sin(2 * np.pi * 2.5 * time))
        sounds.append(0.3 * tone + rng.normal(0, 0.04, len(time)))
    return sounds


def _encoded(kind: str) -> list[tuple[bytes, float]]:
    """Files and their lengths (s)."""
    made: list[tuple[bytes, float]] = []
    for sound in _sounds(_DISTINCT_SOUNDS):
        file = io.BytesIO()
        sf.write(file, sound, _RATE, format=kind, subtype="PCM_16")
        made.append((file.getvalue(), len(sound) / _RATE))
    return made


def _write_wavs(folder: Path, count: int) -> None:
    wavs = _encoded("WAV")
    rows: list[str] = []
    cuts: list[str] = []
    for i in range(count):
        payload, seconds = wavs[i * 31 % len(wavs)]
        path = folder / f"utt-{i:05d}.wav"
        path.write_bytes(payload)
        rows.append(
            json.dumps({"audio_filepath": str(path), "duration": seconds, "text": "hello there"})
        )
        cuts.append(json.dumps(_cut(path.stem, seconds, str(path))))
    _write_lines(folder / "manifest.json", rows)
    _write_lines(folder / "cuts.jsonl", cuts)


def _write_shard(
    folder: Path, shard: int, utterances: int, flacs: list[tuple[bytes, float]]
) -> None:
    rows: list[str] = []
    cuts: list[str] = []
    with (
        tarfile.open(
            folder / f"tarred/audio_{shard}.tar", "w", format=tarfile.USTAR_FORMAT
        ) as nemo,
        tarfile.open(folder / f"shar/recording.{shard:06d}.tar", "w") as shar,
    ):
        for i in range(utterances):
            name = f"utt-{shard:03d}-{i:05d}"
            payload, seconds = flacs[(shard * 7919 + i * 31) % len(flacs)]
            row = {"audio_filepath": f"{name}.flac", "duration": seconds, "shard_id": shard}
            rows.append(json.dumps({**row, "text": "hello there", "sampling_rate": _RATE}))
            cut = _cut(name, seconds)
            recording = _recording(name, seconds, "shar", "")
            cuts.append(json.dumps({**cut, "recording": recording}))
            _add(nemo, f"{name}.flac", payload)
            _add(shar, f"{name}.flac", payload)
            _add(shar, f"{name}.json", json.dumps(recording).encode())
    _write_lines(folder / f"tarred/manifest_{shard}.json", rows)
    _write_lines(folder / f"shar/cuts.{shard:06d}.jsonl", cuts)


def _add(archive: tarfile.TarFile, name: str, payload: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(payload)
    archive.addfile(member, io.BytesIO(payload))
