"""Real speech on disk in every layout that Playhead reads, for the end-to-end tests.

The 553 transcribed English prompts of Asterisk (Debian packages) and the 3,000 digits of FSDD. What
is not installed makes the test skip, with the reason.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile as sf
from filelock import FileLock

from support.corpus import write_jsonl, write_tar

if TYPE_CHECKING:
    from collections.abc import Callable

RATE = 8000
SOUNDS = Path("/usr/share/asterisk/sounds/en_US_f_Allison")
TRANSCRIPTS = Path("/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz")
REPOSITORY = Path(__file__).parents[2]
NUM_SHARDS = 8
LONG_SECONDS = 4.0
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


@dataclass(frozen=True)
class Prompt:
    """One recording: its name, what is said, and where its wav is."""

    key: str
    text: str
    path: Path
    num_samples: int

    @property
    def seconds(self) -> float:
        return self.num_samples / RATE

    def samples(self) -> np.ndarray:
        return sf.read(self.path, dtype="int16")[0]


def asterisk_prompts() -> list[Prompt]:
    """All transcribed prompts, in the order of the transcripts."""
    if not TRANSCRIPTS.exists() or not SOUNDS.is_dir():
        pytest.skip(
            "no prompts: apt-get install asterisk-core-sounds-en-wav asterisk-core-sounds-en"
        )
    prompts = []
    for line in gzip.decompress(TRANSCRIPTS.read_bytes()).decode().splitlines():
        key, _, text = line.strip().partition(":")
        path = SOUNDS / f"{key}.wav"
        spoken = text.strip() and text.strip()[0] not in "[("
        if line.startswith(";") or not spoken or not path.exists():
            continue
        prompts.append(Prompt(key, text.strip(), path, sf.info(path).frames))
    return prompts


def digits_archive() -> Path:
    """The archive of the Free Spoken Digit Dataset."""
    named = os.environ.get("PLAYHEAD_FSDD")
    path = Path(named) if named else REPOSITORY.parent / "shared/data/fsdd/fsdd.tar.xz"
    if not path.exists():
        pytest.skip("PLAYHEAD_FSDD names no archive of the Free Spoken Digit Dataset")
    return path


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """`folder`, filled by `make` in one process while the others wait."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock", timeout=120):
        done = folder / ".done"
        if not done.exists():
            make(folder)
            done.touch()
    return folder


def write_digits(folder: Path) -> None:
    """`manifest.json`: the 3,000 digits with relative paths, speakers and takes."""
    with tarfile.open(digits_archive()) as archive:
        archive.extractall(folder, filter="data")
    rows = []
    for path in sorted((folder / "fsdd").glob("*.wav")):
        digit, speaker, take = path.stem.split("_")
        rows.append(
            {
                "audio_filepath": f"fsdd/{path.name}",
                "duration": sf.info(path).frames / RATE,
                "sampling_rate": RATE,
                "text": WORDS[int(digit)],
                "lang": "en",
                "speaker": speaker,
                "take": int(take),
            }
        )
    write_jsonl(folder / "manifest.json", rows)


def write_prompts(folder: Path) -> None:
    """Every layout of the prompts; see the functions below for what lies where."""
    prompts = asterisk_prompts()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "wav").symlink_to(SOUNDS)
    write_nemo(folder, prompts)
    write_nemo_segments(folder, prompts)
    write_tarred(folder / "tarred", prompts)
    write_tarred_segments(folder / "segments", prompts)
    write_buckets(folder / "buckets", prompts)
    write_cuts(folder, prompts)


def row_of(prompt: Prompt, path: str) -> dict:
    return {"audio_filepath": path, "duration": prompt.seconds, "text": prompt.text}


def write_nemo(folder: Path, prompts: list[Prompt]) -> None:
    """`nemo.json`: relative and absolute paths in turn, custom fields, rows to skip and not to."""
    rows = []
    for i, prompt in enumerate(prompts):
        relative = i % 2 == 0
        row = row_of(prompt, f"wav/{prompt.key}.wav" if relative else str(prompt.path))
        row |= {"lang": "en", "key": prompt.key, "num_words": len(prompt.text.split())}
        if i % 3 == 0:
            row["sampling_rate"] = RATE
        if i % 3 == 1:
            row["sample_rate"] = RATE
        if i % 10 == 0:
            rows.append({**row, "_skipme": "bad transcript" if i % 20 else True, "text": "skipped"})
            row["_skipme"] = "" if i % 20 else False
        rows.append(row)
    write_jsonl(folder / "nemo.json", rows)


def segments_of(prompt: Prompt, seconds: float = 1.3) -> list[tuple[float, float]]:
    """(offset, duration) of the stretches that a long prompt is cut into, the last one shorter."""
    bounds = [*np.arange(0.0, prompt.seconds - 0.4, seconds).round(3).tolist(), prompt.seconds]
    return [(start, round(end - start, 6)) for start, end in itertools.pairwise(bounds)]


def write_nemo_segments(folder: Path, prompts: list[Prompt]) -> None:
    """`nemo_segments.json`: stretches of the long prompts by offset, under other field names."""
    rows = []
    for prompt in prompts:
        if prompt.seconds < LONG_SECONDS:
            continue
        for i, (offset, duration) in enumerate(segments_of(prompt)):
            rows.append(
                {
                    "audio_filepath": f"wav/{prompt.key}.wav",
                    "offset": offset,
                    "duration": duration,
                    "transcript": f"{prompt.text} ({i})",
                    "language": "en-US",
                }
            )
    write_jsonl(folder / "nemo_segments.json", rows)


def write_tarred(folder: Path, prompts: list[Prompt]) -> None:
    """`manifest_{0..7}.json` with `audio_{0..7}.tar`, and `tarred_audio_manifest.json` for all."""
    everything = []
    for shard in range(NUM_SHARDS):
        members, rows = [], []
        for prompt in prompts[shard::NUM_SHARDS]:
            name = prompt.key.replace("/", "_") + ".wav"
            members.append((name, prompt.path.read_bytes()))
            rows.append({**row_of(prompt, name), "shard_id": shard, "lang": "en"})
        # Rows need not stand in the order of the members.
        rows = rows[1::2] + rows[0::2]
        rows.insert(3, {**rows[0], "_skipme": True})
        write_tar(folder / f"audio_{shard}.tar", members)
        write_jsonl(folder / f"manifest_{shard}.json", rows)
        everything += rows
    write_jsonl(folder / "tarred_audio_manifest.json", everything[::-1])


def write_tarred_segments(folder: Path, prompts: list[Prompt], shards: int = 4) -> None:
    """Long members with `-subN` rows by offset; GNU tars, some names longer than a header holds."""
    long = [prompt for prompt in prompts if prompt.seconds >= LONG_SECONDS]
    for shard in range(shards):
        members, rows = [], []
        for i, prompt in enumerate(long[shard::shards]):
            stem = prompt.key.replace("/", "_")
            if i % 3 == 0:
                stem = f"{'prompt-' * 16}{stem}"
            members.append((f"{stem}.wav", prompt.path.read_bytes()))
            for j, (offset, duration) in enumerate(segments_of(prompt)):
                row = row_of(prompt, f"{stem}-sub{j}.wav") | {"text": f"{prompt.text} ({j})"}
                rows.append(row | {"offset": offset, "duration": duration, "shard_id": shard})
        write_tar(folder / f"audio_{shard}.tar", members, format=tarfile.GNU_FORMAT)
        write_jsonl(folder / f"manifest_{shard}.json", rows)


def write_buckets(folder: Path, prompts: list[Prompt]) -> None:
    """`bucket{1,2}`, each with `tarred/audio_{0..3}.tar` and `manifests/manifest_{0..3}.json`."""
    median = float(np.median([prompt.seconds for prompt in prompts]))
    for bucket in (1, 2):
        chosen = [prompt for prompt in prompts if (prompt.seconds > median) == (bucket == 2)]
        for shard in range(4):
            members, rows = [], []
            for prompt in chosen[shard::4]:
                name = f"{prompt.key}.flac"
                members.append((name, flac_of(prompt)))
                rows.append({**row_of(prompt, name), "shard_id": shard, "sampling_rate": RATE})
            write_tar(folder / f"bucket{bucket}/tarred/audio_{shard}.tar", members)
            write_jsonl(folder / f"bucket{bucket}/manifests/manifest_{shard}.json", rows)


def flac_of(prompt: Prompt) -> bytes:
    buffer = io.BytesIO()
    sf.write(buffer, prompt.samples(), RATE, format="FLAC", subtype="PCM_16")
    return buffer.getvalue()


def write_cuts(folder: Path, prompts: list[Prompt]) -> None:
    """`cuts.jsonl`, `cuts_segments.jsonl` and `cuts_mixed.jsonl`, made with Lhotse itself."""
    from lhotse import CutSet, MonoCut, Recording, SupervisionSegment
    from lhotse.audio import AudioSource

    whole, segments = [], []
    for i, prompt in enumerate(prompts):
        source = f"wav/{prompt.key}.wav" if i % 2 else str(prompt.path)
        recording = Recording(
            id=f"rec-{prompt.key}",
            sources=[AudioSource(type="file", channels=[0], source=source)],
            sampling_rate=RATE,
            num_samples=prompt.num_samples,
            duration=prompt.seconds,
        )
        said = SupervisionSegment(
            id=f"sup-{prompt.key}",
            recording_id=recording.id,
            start=0.0,
            duration=prompt.seconds,
            text=prompt.text,
            language="English",
            speaker="allison",
        )
        cut = MonoCut(
            id=f"cut-{prompt.key}",
            start=0.0,
            duration=prompt.seconds,
            channel=0,
            recording=recording,
            supervisions=[said],
            custom={"key": prompt.key, "score": i / 7},
        )
        whole.append(cut)
        if prompt.seconds >= LONG_SECONDS:
            segments += [
                cut.truncate(offset=offset, duration=duration, preserve_id=False).with_id(
                    f"{cut.id}-{j}"
                )
                for j, (offset, duration) in enumerate(segments_of(prompt))
            ]
    short = [cut for cut in whole if cut.duration < 2.0][:120]
    padded = [cut.pad(duration=2.5).with_id(f"{cut.id}-padded") for cut in short[:40]]
    joined = [
        first.append(second).with_id(f"{first.id}-joined")
        for first, second in zip(short[40:80], short[80:120], strict=True)
    ]
    for name, cuts in (
        ("cuts", whole),
        ("cuts_segments", segments),
        ("cuts_mixed", padded + joined),
    ):
        CutSet.from_cuts(cuts).to_file(folder / f"{name}.jsonl")


def leaves(prompts: Path) -> dict[str, dict]:
    """Every layout as an entry of an `input_cfg`, by name."""
    shards = f"_OP_0..{NUM_SHARDS - 1}_CL_"
    tarred = prompts / "tarred"
    segments = prompts / "segments"
    buckets = prompts / "buckets/bucket_OP_1..2_CL_"
    return {
        "nemo": {"type": "nemo", "manifest_filepath": str(prompts / "nemo.json")},
        "nemo_segments": {
            "type": "nemo",
            "manifest_filepath": str(prompts / "nemo_segments.json"),
            "text_field": "transcript",
            "lang_field": "language",
        },
        "tarred": {
            "type": "nemo_tarred",
            "manifest_filepath": str(tarred / f"manifest_{shards}.json"),
            "tarred_audio_filepaths": str(tarred / f"audio_{shards}.tar"),
        },
        "tarred_by_shard_id": {
            "type": "nemo_tarred",
            "manifest_filepath": str(tarred / "tarred_audio_manifest.json"),
            "tarred_audio_filepaths": str(tarred / f"audio_{shards}.tar"),
        },
        "tarred_segments": {
            "type": "nemo_tarred",
            "manifest_filepath": str(segments / "manifest_{0..3}.json"),
            "tarred_audio_filepaths": str(segments / "audio_{0..3}.tar"),
        },
        "buckets": {
            "type": "nemo_tarred",
            "manifest_filepath": str(buckets / "manifests/manifest__OP_0..3_CL_.json"),
            "tarred_audio_filepaths": str(buckets / "tarred/audio__OP_0..3_CL_.tar"),
        },
        "cuts": {"type": "lhotse", "cuts_path": str(prompts / "cuts.jsonl")},
        "cuts_segments": {"type": "lhotse", "cuts_path": str(prompts / "cuts_segments.jsonl")},
        "cuts_mixed": {"type": "lhotse", "cuts_path": str(prompts / "cuts_mixed.jsonl")},
    }


def write_blend(path: Path, prompts: Path, digits: Path, **options: object) -> Path:
    """A weighted blend of everything: groups, a YAML reference, tags and temperatures.

    JSON is YAML; what the file shows is what a person would write.
    """
    entry = leaves(prompts)
    path.parent.mkdir(parents=True, exist_ok=True)
    referred = path.with_name(f"{path.stem}_cuts.yaml")
    referred.write_text(
        json.dumps(
            [
                {**entry["cuts"], "weight": 2, "tags": {"style": "whole"}},
                {**entry["cuts_segments"], "weight": 1},
                {**entry["cuts_mixed"], "weight": 0.5},
            ]
        )
    )
    tarred = [
        {**entry[name], "weight": weight}
        for name, weight in (("tarred", 3), ("tarred_by_shard_id", 2), ("tarred_segments", 1))
    ]
    blend = {
        "input_cfg": [
            {
                "type": "group",
                "weight": 0.5,
                "tags": {"domain": "prompts"},
                "input_cfg": [
                    {**entry["nemo"], "weight": 0.4, "corpus": "asterisk"},
                    {**entry["nemo_segments"], "weight": 0.2},
                    {"type": "group", "weight": 0.3, "input_cfg": tarred},
                    {**entry["buckets"], "weight": 0.1, "tags": {"codec": "flac"}},
                ],
            },
            {"type": "group", "weight": 0.2, "input_cfg": referred.name},
            {
                "type": "nemo",
                "weight": 0.3,
                "manifest_filepath": str(digits / "manifest.json"),
                "tags": {"domain": "digits"},
            },
        ],
        "reweight_temperature": [0.8, 1.0, 0.5],
        "sample_rate": RATE,
        "shuffle": True,
        "seed": 7,
        "shard_seed": 7,
        **options,
    }
    path.write_text(json.dumps(blend, indent=2))
    return path


def rows_of(*manifests: Path) -> list[dict]:
    """The rows of JSONL files, those to be skipped left out."""
    rows = [json.loads(line) for path in manifests for line in path.read_text().splitlines()]
    return [row for row in rows if not row.get("_skipme")]
