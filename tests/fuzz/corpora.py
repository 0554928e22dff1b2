"""Small corpora of every format, and what others read of them when they are damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile as sf
from lhotse import CutSet, Recording, SupervisionSegment
from lhotse.serialization import deserialize_item
from lhotse.shar import SharWriter

from fuzz.readings import Sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RATE = 16000
# Some are as long as others: their members have one size.
SECONDS = (0.08, 0.05, 0.08, 0.06, 0.09, 0.06)
CODECS = {
    "wav": ("WAV", "PCM_16"),
    "flac": ("FLAC", "PCM_16"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "opus": ("OGG", "OPUS"),
    "ogg": ("OGG", "VORBIS"),
    "float.wav": ("WAV", "FLOAT"),
    "sph": ("NIST", "PCM_16"),
    "aiff": ("AIFF", "PCM_24"),
    "au": ("AU", "ULAW"),
}


@dataclass(frozen=True)
class Corpus:
    """A corpus: how it is made, configured, and read by others."""

    name: str
    build: Callable[[Path], None]
    config: Callable[[Path], dict[str, Any]]
    reference: Callable[[Path], list[Sample]]
    rows: tuple[str, ...]
    """Patterns of files that hold rows, which the index has checksums of."""
    audio: tuple[str, ...]
    """Patterns of files that hold audio."""
    texts: frozenset[str] = frozenset({".json", ".jsonl", ".txt", ".yaml"})
    """Suffixes of files that are texts."""
    stretch: Callable[[int], tuple[bytes, float, float]] | None = None
    """The encoded audio of the n-th sample, which lies as it is in one of `audio`, and where the
    sample begins in it, and how long it is."""
    as_audio_is: Callable[[Path, dict[str, bytes]], list[Sample]] | None = None
    """What others read of rows as they were, with audio as it is."""
    is_compared: bool = True
    """Whether there is anybody to compare with; else a reading only has to end well or be refused,
    and is one of cuts."""

    def place(
        self, number: int, files: dict[str, bytes]
    ) -> tuple[str, int, int, float, float] | None:
        """File, offset and size of a sample's audio, and its stretch of that."""
        if self.stretch is None:
            return None
        data, start, seconds = self.stretch(number)
        for path, content in files.items():
            offset = content.find(data)
            if offset >= 0:
                return path, offset, len(data), start, seconds
        return None


@lru_cache
def sound(number: int, codec: str = "wav") -> bytes:
    """Something that codecs take for sound; another one for each number."""
    time = np.arange(round(SECONDS[number % len(SECONDS)] * RATE)) / RATE
    noise = np.random.default_rng(number).normal(size=len(time))
    wave = 0.2 * np.sin(2 * np.pi * (150 + 40 * number) * time) + 0.05 * noise
    buffer = io.BytesIO()
    container, subtype = CODECS[codec]
    sf.write(buffer, wave.astype("f4"), RATE, format=container, subtype=subtype)
    return buffer.getvalue()


def heard(
    source: bytes | Path, start: float = 0.0, seconds: float | None = None
) -> np.ndarray | None:
    """What libsndfile decodes of a file, shape (channels, samples); None if nothing.

    The name of a file tells it things that its bytes alone do not.
    """
    try:
        with sf.SoundFile(io.BytesIO(source) if isinstance(source, bytes) else source) as file:
            if start:
                file.seek(round(start * file.samplerate))
            frames = -1 if seconds is None else int(seconds * file.samplerate + 0.5)
            return file.read(frames, dtype="float32", always_2d=True).T
    except (sf.SoundFileError, RuntimeError, ValueError, OverflowError, MemoryError):
        return None


def row_of(number: int, name: str) -> dict[str, Any]:
    seconds = SECONDS[number % len(SECONDS)]
    return {"audio_filepath": name, "duration": seconds, "text": f"said {number}", "lang": "en"}


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def write_tar(path: Path, members: list[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def lines_of(data: bytes) -> list[dict[str, Any]]:
    """The rows of JSON lines, those that are marked left out."""
    rows = [json.loads(line) for line in data.split(b"\n") if line.strip()]
    custom = [row.get("custom") for row in rows]
    marks = [more.get("_skipme") if isinstance(more, dict) else None for more in custom]
    return [row for row, mark in zip(rows, marks, strict=True) if not (row.get("_skipme") or mark)]


def nemo_sample(row: dict[str, Any], data: bytes | Path) -> Sample:
    """A row of a NeMo manifest and its audio."""
    name, offset, seconds = row["audio_filepath"], row.get("offset"), row.get("duration")
    parts = [] if offset is None else [offset] if seconds is None else [offset, seconds]
    name = "-".join([name, *(f"{round(part * 100):06d}" for part in parts)])
    text = row.get("text")
    audio = heard(data, offset or 0.0, seconds)
    return Sample(name, "" if text is None else str(text), audio)


def members_of(data: bytes) -> dict[str, bytes]:
    """The members of an archive by name.

    Raises
    ------
    ValueError
        If two have one name.
    """
    members: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for info in tar:
            if not info.isreg():
                continue
            if info.name in members:
                message = f"{info.name} comes twice"
                raise ValueError(message)
            found = tar.extractfile(info)
            assert found is not None
            members[info.name] = found.read()
    return members


def build_nemo(folder: Path) -> None:
    codecs = list(CODECS)
    rows = []
    for number, codec in enumerate(codecs):
        name = f"a{number}.{codec}"
        (folder / name).write_bytes(sound(number, codec))
        rows.append(row_of(number, name))
    rows[3]["_skipme"] = 1
    rows[0] |= {"offset": 0.02, "duration": 0.05}
    write_lines(folder / "m.json", rows)


def stretch_nemo(number: int) -> tuple[bytes, float, float]:
    row = number + (number >= 3)
    data = sound(row, list(CODECS)[row])
    return (data, 0.02, 0.05) if row == 0 else (data, 0.0, SECONDS[row % len(SECONDS)])


def read_nemo(folder: Path, packed: str = "m.json") -> list[Sample]:
    data = (folder / packed).read_bytes()
    if packed != "m.json":
        data = UNPACK[packed.rpartition(".")[2]](data)
    return [nemo_sample(row, folder / row["audio_filepath"]) for row in lines_of(data)]


def unpack_zst(data: bytes) -> bytes:
    with pa.input_stream(io.BytesIO(data), compression="zstd") as stream:
        return stream.read()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": partial(gzip.compress, mtime=0),
    "zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "zst": unpack_zst,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
}


def build_packed(suffix: str, folder: Path) -> None:
    rows = []
    for number in range(5):
        (folder / f"a{number}.wav").write_bytes(sound(number))
        rows.append(row_of(number, f"a{number}.wav"))
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    packed = PACK[suffix](data)
    (folder / f"m.jsonl.{suffix}").write_bytes(packed)


_TARRED = ("wav", "flac", "wav", "wav", "opus", "wav")


def build_tarred(folder: Path) -> None:
    for shard in (0, 1):
        numbers = range(3 * shard, 3 * shard + 3)
        codecs = _TARRED[3 * shard : 3 * shard + 3]
        names = [f"a{number}.{codec}" for number, codec in zip(numbers, codecs, strict=True)]
        rows = [row_of(number, name) for number, name in zip(numbers, names, strict=True)]
        rows[1] |= {"offset": 0.01, "duration": 0.03}
        write_lines(folder / f"manifest_{shard}.json", rows)
        members = [
            (name, sound(number, codec))
            for name, number, codec in zip(names, numbers, codecs, strict=True)
        ]
        write_tar(folder / f"audio_{shard}.tar", members)


def stretch_tarred(number: int) -> tuple[bytes, float, float]:
    data = sound(number, _TARRED[number])
    return (data, 0.01, 0.03) if number % 3 == 1 else (data, 0.0, SECONDS[number])


def stretch_plain(number: int) -> tuple[bytes, float, float]:
    return sound(number), 0.0, SECONDS[number]


def stretch_cuts(number: int) -> tuple[bytes, float, float]:
    return (sound(number), 0.02, 0.04) if number == 2 else stretch_plain(number)


def read_tarred(folder: Path) -> list[Sample]:
    samples = []
    for shard in (0, 1):
        members = members_of((folder / f"audio_{shard}.tar").read_bytes())
        for row in lines_of((folder / f"manifest_{shard}.json").read_bytes()):
            name = re.sub(r"-sub\d+(\.\w+)$", r"\1", row["audio_filepath"])
            samples.append(nemo_sample(row, members[name]))
    return samples


def cut_of(number: int, path: str) -> Any:
    data = sound(number)
    recording = Recording.from_bytes(data, f"rec{number}").with_path_prefix("")
    source = {"type": "file", "channels": [0], "source": path}
    row = recording.to_cut().to_dict()
    row["id"] = f"cut{number}"
    row["recording"]["sources"] = [source]
    said = SupervisionSegment(
        f"sup{number}", f"rec{number}", 0.0, row["duration"], text=f"said {number}", language="en"
    )
    row["supervisions"] = [said.to_dict()]
    return row


def build_cuts(folder: Path) -> None:
    rows = []
    for number in range(5):
        (folder / f"a{number}.wav").write_bytes(sound(number))
        row = cut_of(number, f"a{number}.wav")
        if number == 2:
            row |= {"start": 0.02, "duration": 0.04}
        rows.append(row)
    write_lines(folder / "cuts.jsonl", rows)


def read_cuts(folder: Path) -> list[Sample]:
    samples = []
    for row in lines_of((folder / "cuts.jsonl").read_bytes()):
        cut = deserialize_item(row)
        cut = cut.with_recording_path_prefix(str(folder)) if cut.has_recording else cut
        samples.append(cut_sample(cut))
    return samples


def cut_sample(cut: Any) -> Sample:
    try:
        audio = cut.load_audio() if cut.has_recording else None
    except Exception:  # noqa: BLE001 - Lhotse's kinds are many
        audio = None
    said = [segment.text for segment in cut.supervisions if segment.text]
    return Sample(cut.id, " ".join(said), audio, rate=cut.sampling_rate)


def build_shar(folder: Path, *, compressed: bool = False) -> None:
    shar = folder / "shar"
    shar.mkdir()
    with SharWriter(str(shar), {"recording": "flac"}, shard_size=3) as writer:
        for number in range(6):
            path = folder / "raw.wav"
            path.write_bytes(sound(number))
            recording = Recording.from_file(path, recording_id=f"rec{number}")
            cut = recording.to_cut().with_id(f"cut{number}")
            cut.supervisions = [
                SupervisionSegment(
                    f"sup{number}", recording.id, 0.0, cut.duration, text=f"said {number}"
                )
            ]
            writer.write(cut)
    path.unlink()
    for packed in sorted(shar.glob("cuts.*.gz")):
        data = gzip.decompress(packed.read_bytes())
        if compressed:
            packed.write_bytes(gzip.compress(data, mtime=0))
        else:
            packed.with_suffix("").write_bytes(data)
            packed.unlink()
    for shard in (0, 1):
        rows = [
            {"cut_id": f"cut{number}", "score": number / 4}
            for number in range(3 * shard, 3 * shard + 3)
        ]
        write_lines(shar / f"score.{shard:06d}.jsonl", rows)


def read_shar(folder: Path) -> list[Sample]:
    cuts = CutSet.from_shar(in_dir=str(folder / "shar"))
    return [cut_sample(cut) for cut in cuts]


def build_parquet(folder: Path) -> None:
    numbers = list(range(6))
    table = pa.table(
        {
            "id": [f"row{number}" for number in numbers],
            "audio": pa.array([sound(number) for number in numbers], pa.binary()),
            "duration": [SECONDS[number] for number in numbers],
            "text": [f"said {number}" for number in numbers],
        }
    )
    pq.write_table(table, folder / "t.parquet", row_group_size=2)


def read_parquet(folder: Path) -> list[Sample]:
    table = pq.read_table(folder / "t.parquet", use_threads=False)
    columns = {name: table.column(name).to_pylist() for name in ("id", "audio", "duration", "text")}
    return [
        Sample(name, text or "", heard(audio, 0.0, seconds))
        for name, audio, seconds, text in zip(*columns.values(), strict=True)
    ]


def _tarred_config(folder: Path) -> dict[str, Any]:
    return {
        "manifest_filepath": str(folder / "manifest__OP_0..1_CL_.json"),
        "tarred_audio_filepaths": str(folder / "audio__OP_0..1_CL_.tar"),
    }


CORPORA = [
    Corpus(
        "nemo",
        build_nemo,
        lambda folder: {"manifest_filepath": str(folder / "m.json")},
        read_nemo,
        ("m.json",),
        ("a*",),
        stretch=stretch_nemo,
    ),
    Corpus(
        "tarred",
        build_tarred,
        _tarred_config,
        read_tarred,
        ("manifest_?.json",),
        ("audio_?.tar",),
        stretch=stretch_tarred,
    ),
    *(
        Corpus(
            f"manifest.{suffix}",
            partial(build_packed, suffix),
            lambda folder, suffix=suffix: {"manifest_filepath": str(folder / f"m.jsonl.{suffix}")},
            partial(read_nemo, packed=f"m.jsonl.{suffix}"),
            (f"m.jsonl.{suffix}",),
            ("a*.wav",),
            stretch=stretch_plain,
        )
        for suffix in PACK
    ),
    Corpus(
        "cuts",
        build_cuts,
        lambda folder: {"cuts_path": str(folder / "cuts.jsonl")},
        read_cuts,
        ("cuts.jsonl",),
        ("a*.wav",),
        stretch=stretch_cuts,
    ),
    *(
        Corpus(
            name,
            build,
            lambda folder: {"shar_path": str(folder / "shar")},
            read_shar,
            ("shar/cuts.*", "shar/score.*"),
            ("shar/recording.*",),
        )
        for name, build in (("shar", build_shar), ("shar.gz", partial(build_shar, compressed=True)))
    ),
    Corpus(
        "parquet",
        build_parquet,
        lambda folder: {
            "input_cfg": [{"type": "parquet", "manifest_filepath": str(folder / "t.parquet")}]
        },
        read_parquet,
        (),
        ("t.parquet",),
    ),
]
