"""A small corpus that is made on the spot: speech-like digits, each a pair of tones."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import soundfile as sf

from playhead.errors import ManifestError, SourceNotFoundError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Corpus", "corpus_of_manifest", "make_corpus"]

_RATE = 8000
_SHARDS = 3
# Of a user's data: enough batches that there are steps inside a pass, and not too large for a CPU.
_BATCHES_OF_A_PASS = 84
_MAX_BATCH_SECONDS = 16.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """What a demonstration trains on."""

    blend: Path
    """The config, a YAML file."""
    alphabet: str
    """Characters of the transcripts."""
    num_samples: int
    """How many utterances there are."""
    what: str
    """What it is, for people."""


def make_corpus(folder: Path, *, utterances: int, seed: int) -> Corpus:
    """Make utterances of one to four digits: half as plain files, half in tars, and their blend.

    Parameters
    ----------
    folder
        Where everything goes.
    utterances
        How many to make.
    seed
        The same seed makes the same bytes.
    """
    rng = np.random.default_rng(seed)
    plain: list[dict[str, object]] = []
    tarred: list[list[tuple[dict[str, object], bytes]]] = [[] for _ in range(_SHARDS)]
    (folder / "wav").mkdir(parents=True, exist_ok=True)
    for number in range(utterances):
        digits = [int(digit) for digit in rng.integers(0, 10, rng.integers(1, 5))]
        samples = _speak(digits, rng)
        name = f"utt{number:04d}.wav"
        row: dict[str, object] = {
            "duration": len(samples) / _RATE,
            "text": "".join(map(str, digits)),
            "sampling_rate": _RATE,
        }
        if number % 2:
            tarred[number % _SHARDS].append(({"audio_filepath": name, **row}, _wav(samples)))
        else:
            (folder / "wav" / name).write_bytes(_wav(samples))
            plain.append({"audio_filepath": f"wav/{name}", **row})
    _write_rows(folder / "manifest.json", plain)
    for shard, members in enumerate(tarred):
        _write_rows(folder / f"manifest_{shard}.json", [row for row, _ in members])
        with tarfile.open(folder / f"audio_{shard}.tar", "w") as tar:
            for row, payload in members:
                info = tarfile.TarInfo(str(row["audio_filepath"]))
                info.size = len(payload)
                tar.addfile(info, io.BytesIO(payload))
    shards = f"_OP_0..{_SHARDS - 1}_CL_"
    blend = _write_blend(
        folder,
        [
            {"type": "nemo", "manifest_filepath": str(folder / "manifest.json"), "name": "plain"},
            {
                "type": "nemo_tarred",
                "manifest_filepath": str(folder / f"manifest_{shards}.json"),
                "tarred_audio_filepaths": str(folder / f"audio_{shards}.tar"),
                "name": "tarred",
            },
        ],
        rate=_RATE,
        batch_duration=8.0,
    )
    return Corpus(
        blend=blend,
        alphabet="0123456789",
        num_samples=utterances,
        what=f"{utterances} made-up utterances of one to four digits, half of them in tars",
    )


def corpus_of_manifest(manifest: Path, folder: Path) -> Corpus:
    """Take a NeMo manifest of the user's for the corpus.

    Raises
    ------
    SourceNotFoundError
        When it does not exist.
    ManifestError
        When it has no transcripts, or a row is not a JSON object with a text in it.
    """
    if not manifest.is_file():
        raise SourceNotFoundError(
            "the manifest does not exist", where=str(manifest), fix="Give a NeMo manifest"
        )
    characters: set[str] = set()
    rows, seconds = 0, 0.0
    # Bytes, so that a line that is not UTF-8 is named like any other bad one.
    with manifest.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            text, duration = _read_row(line, f"{manifest}:{number}")
            characters.update(text)
            seconds += duration
            rows += 1
    if not characters:
        raise ManifestError(
            "no row has a text", where=str(manifest), fix="Give transcripts under the key text"
        )
    folder.mkdir(parents=True, exist_ok=True)
    blend = _write_blend(
        folder,
        [{"type": "nemo", "manifest_filepath": str(manifest.absolute()), "name": "yours"}],
        rate=16000,
        batch_duration=min(max(seconds / _BATCHES_OF_A_PASS, 1.0), _MAX_BATCH_SECONDS),
    )
    return Corpus(
        blend=blend,
        alphabet="".join(sorted(characters)),
        num_samples=rows,
        what=f"the {rows} rows of {manifest}",
    )


def _read_row(line: bytes, where: str) -> tuple[str, float]:
    """The transcript of a manifest's row and its seconds, 0 where it does not say."""
    try:
        row = json.loads(line.decode("utf-8-sig"))
        text, duration = row.get("text") or "", row.get("duration") or 0.0
    except (ValueError, AttributeError):
        raise ManifestError("a row is not a JSON object", where=where, fix="Correct it") from None
    if not isinstance(text, str):
        raise ManifestError(
            f"the text of a row is {text!r}", where=where, fix="Put it between quotes"
        )
    # What is wrong with durations and paths is said when the manifest is indexed.
    return text, float(duration) if isinstance(duration, (int, float)) else 0.0


def _speak(digits: list[int], rng: np.random.Generator) -> np.ndarray:
    """Digits as two tones each, with a speed, a pitch and a loudness of their own, in noise."""
    pitch, speed = rng.uniform(0.98, 1.02), rng.uniform(0.85, 1.2)
    parts = [np.zeros(int(_RATE * rng.uniform(0.03, 0.1)))]
    for digit in digits:
        time = np.arange(int(_RATE * 0.26 * speed)) / _RATE
        tones = (300.0 + 130.0 * digit, 1700.0 + 170.0 * ((digit * 7) % 10))
        word = sum(np.sin(2 * np.pi * tone * pitch * time) for tone in tones)
        parts.append(word * np.hanning(len(time)))
        parts.append(np.zeros(int(_RATE * rng.uniform(0.06, 0.14))))
    speech = np.concatenate(parts) * rng.uniform(0.1, 0.25)
    return speech + rng.normal(0, 0.01, len(speech))


def _wav(samples: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    sf.write(buffer, samples, _RATE, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def _write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _write_blend(
    folder: Path, entries: list[dict[str, object]], *, rate: int, batch_duration: float
) -> Path:
    # JSON is YAML: what is written here reads like any other blend.
    blend = folder / "blend.yaml"
    config = {
        "input_cfg": entries,
        "sample_rate": rate,
        "batch_duration": batch_duration,
        "use_bucketing": True,
        "shuffle": True,
        "force_finite": True,
        "seed": 7,
    }
    blend.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return blend
