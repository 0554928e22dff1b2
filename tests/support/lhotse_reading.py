"""What every layout of the real speech holds, as Lhotse, tarfile and soundfile read it."""

from __future__ import annotations

import io
import re
import tarfile
from typing import TYPE_CHECKING

import numpy as np
import soundfile as sf
from lhotse import CutSet, Recording

from support.real_speech import NUM_SHARDS, RATE, rows_of

if TYPE_CHECKING:
    from pathlib import Path

Heard = tuple[str, np.ndarray]


def read_nemo(manifest: Path, text_field: str = "text") -> list[Heard]:
    """Each row by Lhotse's `Recording` and `MonoCut.truncate`; relative paths from the manifest."""
    heard = []
    recordings: dict[Path, Recording] = {}
    for row in rows_of(manifest):
        path = manifest.parent / row["audio_filepath"]
        if path not in recordings:
            recordings[path] = Recording.from_file(path)
        cut = recordings[path].to_cut()
        if "offset" in row:
            cut = cut.truncate(offset=row["offset"], duration=row["duration"])
        heard.append((row[text_field], cut.load_audio()[0]))
    return heard


def members_of(archive: Path) -> dict[str, bytes]:
    """The payloads of an archive by member name."""
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def read_member(row: dict, payloads: dict[str, bytes]) -> Heard:
    """A row by soundfile; the member of `x-subN.wav` is `x.wav`."""
    name = re.sub(r"-sub\d+(\.\w+)$", r"\1", row["audio_filepath"])
    start = round(row.get("offset", 0) * RATE)
    frames = round(row["duration"] * RATE)
    samples, rate = sf.read(io.BytesIO(payloads[name]), start=start, frames=frames, dtype="float32")
    assert rate == RATE
    assert len(samples) == frames
    return row["text"], samples


def read_tarred(pairs: list[tuple[Path, Path]]) -> list[Heard]:
    """Manifests with an archive each, in order."""
    heard = []
    for manifest, archive in pairs:
        payloads = members_of(archive)
        heard += [read_member(row, payloads) for row in rows_of(manifest)]
    return heard


def read_by_shard_id(manifest: Path, archives: list[Path]) -> list[Heard]:
    """One manifest whose rows name their archive by number."""
    payloads = [members_of(archive) for archive in archives]
    return [read_member(row, payloads[row["shard_id"]]) for row in rows_of(manifest)]


def read_cuts(path: Path) -> list[Heard]:
    """Each cut by Lhotse itself; the texts of all that is said in it, in order."""
    cuts = CutSet.from_file(path).with_recording_path_prefix(path.parent)
    return [(" ".join(said.text for said in cut.supervisions), cut.load_audio()[0]) for cut in cuts]


def read_leaf(name: str, prompts: Path) -> list[Heard]:
    """The leaf of that name of `real_speech.leaves`, in declared order."""
    if name == "nemo":
        return read_nemo(prompts / "nemo.json")
    if name == "nemo_segments":
        return read_nemo(prompts / "nemo_segments.json", "transcript")
    if name.startswith("cuts"):
        return read_cuts(prompts / f"{name}.jsonl")
    if name == "tarred_by_shard_id":
        archives = [prompts / f"tarred/audio_{i}.tar" for i in range(NUM_SHARDS)]
        return read_by_shard_id(prompts / "tarred/tarred_audio_manifest.json", archives)
    if name == "tarred_segments":
        folders = [(prompts / "segments", prompts / "segments", 4)]
    elif name == "buckets":
        buckets = [prompts / "buckets/bucket1", prompts / "buckets/bucket2"]
        folders = [(bucket / "manifests", bucket / "tarred", 4) for bucket in buckets]
    else:
        folders = [(prompts / "tarred", prompts / "tarred", NUM_SHARDS)]
    return read_tarred(
        [
            (manifests / f"manifest_{i}.json", tars / f"audio_{i}.tar")
            for manifests, tars, shards in folders
            for i in range(shards)
        ]
    )
