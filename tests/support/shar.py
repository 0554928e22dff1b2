"""Lhotse Shars as Lhotse writes them, with all that they can hold, and as it reads them."""

from __future__ import annotations

import gc
import gzip
import itertools
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lhotse import CutSet, Features, MonoCut, Recording, SupervisionSegment
from lhotse.array import Array, TemporalArray
from lhotse.audio import AudioSource
from lhotse.cut import MultiCut
from lhotse.features.io import NumpyFilesWriter
from lhotse.shar import SharWriter

from playhead.blend.leaf import Leaf, LeafOptions
from playhead.formats import LhotseShar, Part, Place
from playhead.index.source import read_lines
from playhead.index.tar import scan_tar
from playhead.storage.compression import is_compressed
from support.corpus import wav_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lhotse.cut import Cut

    from playhead.formats import Example, SourcePair

RATE = 16000
UNIT = 1 << 32
LONG, FOREIGN = "long-" * 40 + "id", "发言/über-😀"
FIELDS = {
    "recording": "flac",
    "features": "lilcom",
    "target_recording": "wav",
    "embedding": "numpy",
    "alignment": "numpy",
    "score": "jsonl",
    "speaker_info": "jsonl",
}
FRAME = 0.01
ENCODINGS = ("wav", "flac", "mp3", "opus", "original")


def recording(
    folder: Path, name: str, seconds: float, channels: int = 1, seed: int = 0
) -> Recording:
    """A wav of noise."""
    path = folder / f"{name}.wav"
    path.write_bytes(wav_bytes(seconds, RATE, channels, seed))
    samples = round(seconds * RATE)
    return Recording(
        id=name,
        sources=[AudioSource(type="file", channels=list(range(channels)), source=str(path))],
        sampling_rate=RATE,
        num_samples=samples,
        duration=samples / RATE,
    )


def simple_cuts(folder: Path, ids: Sequence[str], seconds: float = 0.3) -> list[MonoCut]:
    """One MonoCut of a recording of its own for each id, with a transcript."""
    folder.mkdir(parents=True, exist_ok=True)
    cuts = []
    for number, cut_id in enumerate(ids):
        source = recording(folder, f"rec-{number}", seconds + number * 0.05, seed=number)
        said = SupervisionSegment(
            f"sup-{number}", source.id, 0.0, source.duration, text=f"said {number}", language="en"
        )
        cuts.append(
            MonoCut(
                id=cut_id,
                start=0.0,
                duration=source.duration,
                channel=0,
                recording=source,
                supervisions=[said],
                custom={"number": number},
            )
        )
    return cuts


def enriched(folder: Path, cuts: Sequence[MonoCut]) -> list[Cut]:
    """Cuts with features, arrays, a second recording and scalars, though not all of them all."""
    folder.mkdir(parents=True, exist_ok=True)
    rich: list[Cut] = []
    for number, cut in enumerate(cuts):
        rng = np.random.default_rng(number)
        frames = round(cut.duration / FRAME)
        with NumpyFilesWriter(folder / "arrays") as writer:
            if number % 7 != 2:
                matrix = rng.standard_normal((frames, 4)).astype(np.float32)
                stored = writer.store_array(f"feats-{number}", matrix)
                cut.features = Features(
                    type="fbank",
                    num_frames=frames,
                    num_features=4,
                    frame_shift=FRAME,
                    sampling_rate=cut.sampling_rate,
                    start=0.0,
                    duration=cut.duration,
                    storage_type=stored.storage_type,
                    storage_path=stored.storage_path,
                    storage_key=stored.storage_key,
                    recording_id=cut.recording_id,
                    channels=0,
                )
            cut.embedding = writer.store_array(f"emb-{number}", rng.standard_normal((2, 3)))
            if number % 2:
                cut.alignment = writer.store_array(
                    f"ali-{number}", rng.integers(0, 9, frames), FRAME, temporal_dim=0, start=0.0
                )
        if number % 5 != 3:
            name = f"target-{number}"
            cut.target_recording = recording(folder, name, cut.duration, seed=100 + number)
            cut.score = number / 7
        cut.speaker_info = {"name": f"speaker {number}", "takes": [number]}
        rich.append(cut)
    return rich


def rich_cuts(folder: Path) -> list[Cut]:
    """Seven cuts with everything that a Shar can hold: two channels, and no recording, as well."""
    ids = [LONG, FOREIGN, *(f"cut-{number}" for number in range(5))]
    cuts = enriched(folder, simple_cuts(folder, ids))
    stereo = recording(folder, "stereo", 0.5, channels=2, seed=50)
    cuts[4] = MultiCut(
        id=cuts[4].id,
        start=0.0,
        duration=stereo.duration,
        channel=[0, 1],
        recording=stereo,
        supervisions=[],
        custom={"number": 4},
    )
    cuts[5] = cuts[5].drop_recording()
    return cuts


def write_shar(
    folder: Path,
    cuts: Sequence[Cut],
    fields: dict[str, str] | None = None,
    shard_size: int | None = 3,
    suffix: str = ".gz",
) -> Path:
    """A Shar as Lhotse writes it; its JSONL files end with `suffix`."""
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        # Lhotse 2 would like to index what it compresses.
        warnings.filterwarnings("ignore", "create_index=True with compress_jsonl=True")
        with SharWriter(
            str(folder),
            fields={"recording": "flac"} if fields is None else fields,
            shard_size=shard_size,
            warn_unused_fields=False,
        ) as writer:
            for cut in cuts:
                writer.write(cut)
    for path in sorted(folder.glob("*.jsonl.gz")):
        recompress(path, suffix)
    return folder


def recompress(path: Path, suffix: str) -> Path:
    """A gzipped file with another codec, in its place."""
    if suffix == ".gz":
        return path
    plain = path.with_suffix("")
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    path.unlink()
    if suffix == ".zst":
        import pyarrow as pa

        data = pa.compress(plain.read_bytes(), codec="zstd", asbytes=True)
        plain.unlink()
        path = plain.with_name(f"{plain.name}.zst")
        path.write_bytes(data)
        return path
    return plain


def shar_leaf(
    *folders: Path, fields: dict[str, Sequence[Path]] | None = None, **options: Any
) -> Leaf:
    paths = {"shar": folders} if fields is None else fields
    return Leaf(
        key="leaf",
        name="leaf",
        type="lhotse_shar",
        weight=UNIT,
        paths={role: tuple(map(str, found)) for role, found in paths.items()},
        options=LeafOptions(**options),
    )


def records_of(path: str) -> list[tuple[int, bytes]]:
    """Where each record of a field's shard begins, and its bytes; `.nodata` too."""
    if not path.endswith(".tar"):
        lines = b"".join(block.data for block in read_lines(path)).splitlines()
        return [(0, line) for line in lines]
    members, raw = scan_tar(path), Path(path).read_bytes()
    starts = [*members.header[::2].tolist(), members.end]
    return [(start, raw[start:end]) for start, end in itertools.pairwise(starts)]


def examples_of(leaf: Leaf, pair: SourcePair) -> list[Example]:
    """The samples of a shard, from its files alone."""
    rows = b"".join(block.data for block in read_lines(pair.manifest)).splitlines()
    embedded = any(is_compressed(path) for path in pair.files)
    fields = {shard.field: (shard.path, records_of(shard.path)) for shard in pair.fields}
    examples = []
    for number, line in enumerate(rows):
        row, parts = line, []
        for field, (path, records) in fields.items():
            offset, data = records[number]
            if embedded and not path.endswith(".tar"):
                row += b"\n" + data
            else:
                parts.append(Part(field, data, path, offset))
        place = Place(leaf=leaf.name, shard=pair.manifest, row=number, byte=0)
        examples.append(LhotseShar().example(leaf, place, row, parts))
    return examples


def read_by_lhotse(*, fields: dict[str, Sequence[Path]] | None = None, **where: Any) -> list[Cut]:
    """The cuts of a Shar as Lhotse streams them, without what it notes of its own reading."""
    chosen = None if fields is None else {key: list(paths) for key, paths in fields.items()}
    with warnings.catch_warnings():
        # It never closes its files.
        warnings.simplefilter("ignore", ResourceWarning)
        cuts = list(CutSet.from_shar(fields=chosen, **where))
        gc.collect()
    for cut in cuts:
        custom = {
            key: value
            for key, value in (cut.custom or {}).items()
            if key not in ("shard_origin", "shar_epoch")
        }
        cut.custom = custom or None
    return cuts


def loaded(cut: Cut) -> dict[str, np.ndarray]:
    """Everything that can be loaded of a cut, by field."""
    found: dict[str, np.ndarray] = {}
    if cut.has_recording:
        found["recording"] = cut.load_audio()
    if cut.has_features:
        found["features"] = cut.load_features()
    for field, value in (cut.custom or {}).items():
        if isinstance(value, (Array, TemporalArray, Recording)):
            found[field] = cut.load_custom(field)
    return found


def real_cuts(prompts: Path, count: int) -> list[MonoCut]:
    """Cuts of real speech; some ids are long, some not ASCII."""
    chosen = itertools.islice(CutSet.from_file(prompts / "cuts.jsonl"), count)
    cuts: list[Any] = []
    for number, cut in enumerate(chosen):
        source = cut.recording.sources[0]
        source.source = str(prompts / source.source)
        if number % 5 == 1:
            cut.id = f"{'prompt-' * 20}{cut.id}"
        if number % 5 == 3:
            cut.id = f"сказано/{cut.id}-ü"
        cuts.append(cut)
    return cuts


def write_real_shars(folder: Path, prompts: Path) -> None:
    """`wav`, `flac`, …: 45 prompts each in that encoding; `rich`, and `rich-zst` from the same."""
    for encoding in ENCODINGS:
        cuts = real_cuts(prompts, 45)
        # Lhotse writes lines gzipped; half of these are plain.
        suffix = "" if encoding in ("flac", "opus") else ".gz"
        write_shar(folder / encoding, cuts, {"recording": encoding}, 12, suffix)
    rich = enriched(folder / "sources", real_cuts(prompts, 30))
    for name, suffix in (("rich", ".gz"), ("rich-plain", ""), ("rich-zst", ".zst")):
        write_shar(folder / name, rich, FIELDS, 8, suffix)
