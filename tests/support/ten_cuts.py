"""Ten cuts of a second at 16 kHz, in every form that speech comes in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lhotse import CutSet, Recording, SupervisionSegment
from lhotse.shar import SharWriter

from support.corpus import wav_bytes, write_jsonl, write_tar

if TYPE_CHECKING:
    from pathlib import Path

NUM = 10


@dataclass(frozen=True)
class Corpus:
    """Paths and patterns of one corpus."""

    folder: Path
    cuts: Path
    manifest: Path
    aggregate: Path
    manifests: str
    tars: str
    shar: Path

    def flat(self, form: str) -> dict:
        """The keys that name it, in one of its forms."""
        return {
            "cuts": {"cuts_path": str(self.cuts)},
            "nemo": {"manifest_filepath": str(self.manifest)},
            "tarred": {
                "manifest_filepath": self.manifests,
                "tarred_audio_filepaths": self.tars,
            },
            "aggregate": {
                "manifest_filepath": str(self.aggregate),
                "tarred_audio_filepaths": self.tars,
            },
            "shar": {"shar_path": str(self.shar)},
        }[form]

    def entry(self, form: str, **more: object) -> dict:
        """The same as an entry of a blend."""
        types = {"cuts": "lhotse", "nemo": "nemo", "shar": "lhotse_shar"}
        return {"type": types.get(form, "nemo_tarred"), **self.flat(form), **more}


def make(folder: Path, seconds: list[float] | None = None, channels: int = 1) -> Corpus:
    seconds = seconds or [1.0] * NUM
    rows, cuts, members = [], [], {0: [], 1: []}
    for n, length in enumerate(seconds):
        name = f"cut-{n:04d}.wav"
        data = wav_bytes(length, channels=channels, seed=n)
        (folder / name).write_bytes(data)
        shard = n // 5
        rows.append({"audio_filepath": name, "duration": length, "text": f"text {n}", "lang": "en"})
        members[shard].append((name, data))
        recording = Recording.from_file(folder / name)
        cut = recording.to_cut().with_id(f"cut-{n:04d}")
        cut.supervisions = [
            SupervisionSegment(
                id=f"s{n}",
                recording_id=recording.id,
                start=0,
                duration=cut.duration,
                channel=list(range(channels)) if channels > 1 else 0,
                text=f"text {n}",
                language="en",
            )
        ]
        cuts.append(cut)
    write_jsonl(folder / "manifest.json", rows)
    write_jsonl(
        folder / "tarred_audio_manifest.json",
        [{**row, "shard_id": n // 5} for n, row in enumerate(rows)],
    )
    for shard in (0, 1):
        write_jsonl(folder / f"manifest_{shard}.json", rows[5 * shard : 5 * shard + 5])
        write_tar(folder / f"audio_{shard}.tar", members[shard])
    CutSet.from_cuts(cuts).to_file(folder / "cuts.jsonl")
    (folder / "shar").mkdir()
    with SharWriter(str(folder / "shar"), {"recording": "wav"}, shard_size=5) as writer:
        for cut in cuts:
            writer.write(cut)
    return Corpus(
        folder=folder,
        cuts=folder / "cuts.jsonl",
        manifest=folder / "manifest.json",
        aggregate=folder / "tarred_audio_manifest.json",
        manifests=str(folder / "manifest__OP_0..1_CL_.json"),
        tars=str(folder / "audio__OP_0..1_CL_.tar"),
        shar=folder / "shar",
    )
