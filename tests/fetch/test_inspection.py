"""Whether a sample is bad depends on the sample alone, as far as its dataset would look at it."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from lhotse import CutSet, Recording
from lhotse.dataset.collation import collate_audio, collate_custom_field
from torch.utils.data import Dataset

from playhead.blend.leaf import Concatenation
from playhead.config import Options
from playhead.datasets import SpeechToText
from playhead.errors import AudioError
from playhead.fetch import Fetcher
from playhead.fetch.augment import Augmentation
from playhead.fetch.bad import without
from playhead.storage import retries
from support.corpus import write_jsonl
from support.damage import DAMAGE, encoded
from support.fetching import leaf_of, micro_batch, spec_of
from support.parquet import parquet_leaf, speech_columns, write_table
from support.shar import enriched, shar_leaf, simple_cuts, write_shar


class Recognition(Dataset):
    def __getitem__(self, cuts: CutSet) -> dict:
        audio, lengths = collate_audio(cuts)
        return {"audio": audio, "audio_lens": lengths, "ids": [cut.id for cut in cuts]}


class Enhancement(Recognition):
    """Looks at a second recording of each cut as well."""

    def __getitem__(self, cuts: CutSet) -> dict:
        target, _ = collate_custom_field(cuts, "target_recording")
        return {**super().__getitem__(cuts), "target": target}


DATASETS = [SpeechToText, Recognition]


@pytest.fixture(autouse=True)
def no_naps(monkeypatch):
    monkeypatch.setattr(retries, "PAUSES", (0.0, 0.0))


def nemo_leaf(folder, seconds, kind="wav"):
    rows = []
    for i, length in enumerate(seconds):
        (folder / f"u{i}.{kind}").write_bytes(encoded(length, kind, seed=i))
        rows.append({"audio_filepath": f"u{i}.{kind}", "duration": length, "text": f"text {i}"})
    return leaf_of("nemo", manifest=write_jsonl(folder / "manifest.json", rows))


def tolerant(leaf, folder, **options):
    return spec_of([leaf], folder, sample_rate=16000, info=True, fault_tolerant=True, **options)


def same(one: dict, other: dict) -> bool:
    return one["ids"] == other["ids"] and torch.equal(one["audio"], other["audio"])


def check_hole(fetch, asked, place):
    """The sample in one place is left out, and the rest is as without it."""
    made = fetch(asked)
    assert made.places == (place,)
    expected = fetch(without(asked, [place]))
    assert same(made.batch, expected)
    return made


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("others", [{}, {"lowpass_enabled": True, "lowpass_prob": 1.0}])
def test_only_the_stretch_that_is_wanted_has_to_be_whole(tmp_path, dataset, others):
    """The end of a file is gone: its first window can be used, its last one cannot."""
    leaf = nemo_leaf(tmp_path, [3.0, 3.0, 1.0])
    data = (tmp_path / "u0.wav").read_bytes()
    (tmp_path / "u0.wav").write_bytes(data[: len(data) // 2])
    (tmp_path / "u1.wav").write_bytes(b"no audio")
    options = Options(sample_rate=16000, cut_into_windows_duration=1.0, **others)
    spec = tolerant(leaf, tmp_path, augmentation=Augmentation.from_options(options))

    def windows(rows, parts):
        return replace(
            micro_batch(rows),
            sample_keys=np.array(rows, np.uint64),
            part=np.array(parts, np.int32),
            start_us=np.array(parts, np.int64) * 1_000_000,
            span_us=np.full(len(rows), 1_000_000, np.int64),
        )

    fetch = Fetcher(spec, dataset())
    alone = fetch(windows([0, 2], [0, 0]))
    assert alone["ids"] == ["u0.wav-0", "u2.wav-0"]
    # Beside a bad sample it is what it is without.
    made = check_hole(fetch, windows([0, 1, 2], [0, 0, 0]), 1)
    assert same(made.batch, alone)
    check_hole(fetch, windows([0, 0, 2], [0, 2, 0]), 1)


@pytest.mark.parametrize("dataset", DATASETS)
def test_noise_that_cannot_be_read_is_no_fault_of_the_sample(tmp_path, dataset):
    from playhead.fetch.augment.noise import open_noise

    (tmp_path / "noise").mkdir()
    noise = nemo_leaf(tmp_path / "noise", [2.0])
    leaf = nemo_leaf(tmp_path, [1.0, 1.0])
    options = Options(
        sample_rate=16000,
        noise_path=noise.paths["manifest"][0],
        noise_mix_prob=1.0,
        indexes_root=str(tmp_path / "indexes"),
    )
    spec = tolerant(
        leaf,
        tmp_path,
        augmentation=Augmentation.from_options(options),
        noise=open_noise(options),
    )
    fetch = Fetcher(spec, dataset())
    assert len(fetch(micro_batch([0, 1]))["ids"]) == 2
    (tmp_path / "noise/u0.wav").write_bytes(b"no audio")
    with pytest.raises(AudioError, match=r"noise/u0\.wav"):
        Fetcher(spec, dataset())(micro_batch([0, 1]))


def test_a_second_recording_counts_where_the_dataset_looks_at_it(tmp_path):
    cuts = []
    for i in range(4):
        for name in ("u", "t"):
            (tmp_path / f"{name}{i}.flac").write_bytes(encoded(0.8, "flac", seed=i))
        cut = Recording.from_file(tmp_path / f"u{i}.flac").to_cut()
        cut.target_recording = Recording.from_file(tmp_path / f"t{i}.flac")
        cuts.append(cut)
    CutSet(cuts).to_file(tmp_path / "cuts.jsonl")
    spec = tolerant(leaf_of("lhotse", cuts=tmp_path / "cuts.jsonl"), tmp_path)
    (tmp_path / "t1.flac").write_bytes(encoded(0.8, "flac")[:3000])
    asked = micro_batch([0, 1, 2, 3])
    check_hole(Fetcher(spec, Enhancement()), asked, 1)
    # Who does not look at it has all samples, whatever else is bad.
    assert len(Fetcher(spec, Recognition())(asked)["ids"]) == 4
    (tmp_path / "u2.flac").write_bytes(b"no audio")
    check_hole(Fetcher(spec, Recognition()), asked, 2)
    made = Fetcher(spec, Enhancement())(asked)
    assert made.places == (1, 2)
    assert [one.id for one in made.bad] == [cuts[1].id, cuts[2].id]


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("damage", ["bits flipped", "zeros"])
def test_shars(tmp_path, dataset, damage):
    cuts = simple_cuts(tmp_path / "wavs", [f"cut-{n}" for n in range(4)], seconds=1.0)
    folder = write_shar(tmp_path / "shar", cuts, {"recording": "wav"}, shard_size=4)
    (tar,) = folder.glob("recording*.tar")
    spec = tolerant(shar_leaf(folder), tmp_path)
    payload = tmp_path / "wavs/rec-2.wav"
    data = tar.read_bytes()
    # Lhotse wrote the samples anew: they are found by what they are, headers before them.
    samples = payload.read_bytes()[44:244]
    at = data.index(samples) - 80
    at = data.index(b"RIFF", at)
    length = len(payload.read_bytes())
    tar.write_bytes(data[:at] + DAMAGE[damage](data[at : at + length]) + data[at + length :])
    fetch = Fetcher(spec, dataset())
    made = check_hole(fetch, micro_batch([3, 2, 0]), 1)
    assert made.bad[0].id == "cut-2"
    assert made.bad[0].member == str(tar)


@pytest.mark.parametrize("dataset", DATASETS)
def test_tables(tmp_path, dataset):
    columns = speech_columns(6)
    audio = columns["audio"].to_pylist()
    audio[4] = b"no audio"
    columns["audio"] = audio
    leaf = parquet_leaf(write_table(tmp_path / "a.parquet", columns))
    fetch = Fetcher(tolerant(leaf, tmp_path), dataset())
    made = check_hole(fetch, micro_batch([1, 2, 3, 4]), 3)
    assert [one.id for one in made.bad] == ["row-4"]


@pytest.mark.parametrize("dataset", DATASETS)
def test_of_rows_that_are_joined_the_bad_one_is_named(tmp_path, dataset):
    leaf = nemo_leaf(tmp_path, [0.5, 0.6, 0.7, 0.8, 0.9])
    leaf = replace(leaf, concatenation=Concatenation(max_duration=1.2, gap=0.0))
    fetch = Fetcher(tolerant(leaf, tmp_path), dataset())
    whole = fetch(micro_batch([0, 1, 2]))
    assert whole["ids"][0] == "u0.wav+u1.wav"
    (tmp_path / "u1.wav").write_bytes(b"no audio")
    made = check_hole(fetch, micro_batch([1, 0, 2]), 1)
    (bad,) = made.bad
    assert (bad.id, bad.row, bad.member) == ("u1.wav", 1, str(tmp_path / "u1.wav"))
    (tmp_path / "u1.wav").unlink()
    made = check_hole(fetch, micro_batch([1, 0, 2]), 1)
    assert made.bad[0].reason == "the audio file does not exist"


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("fault_tolerant", [True, False])
def test_what_may_not_be_read_is_an_error_whoever_asks(
    tmp_path, monkeypatch, dataset, fault_tolerant
):
    """Rights may be lost and come back without any change of the data."""
    import soundfile as sf

    leaf = nemo_leaf(tmp_path, [0.5, 0.6])
    spec = spec_of([leaf], tmp_path, sample_rate=16000, fault_tolerant=fault_tolerant)
    real, opened = os.open, sf.SoundFile.__init__

    def forbid(path, *rest, **options):
        if str(path).endswith("u1.wav"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *rest, **options)

    def open_(self, file, *rest, **options):
        if str(file).endswith("u1.wav"):
            raise sf.LibsndfileError(2, prefix=f"Error opening {file!r}: ")
        return opened(self, file, *rest, **options)

    monkeypatch.setattr(os, "open", forbid)
    monkeypatch.setattr(sf.SoundFile, "__init__", open_)
    with pytest.raises((AudioError, PermissionError), match=r"u1\.wav"):
        Fetcher(spec, dataset())(micro_batch([0, 1]))


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("name", ["folder", "a\0b.wav", "x" * 300 + ".wav"])
def test_names_that_can_be_no_file_are_bad_samples(tmp_path, dataset, name):
    leaf = nemo_leaf(tmp_path, [0.5])
    (tmp_path / "folder").mkdir()
    rows = [
        {"audio_filepath": name, "duration": 1.0, "text": ""},
        {"audio_filepath": "u0.wav", "duration": 0.5, "text": ""},
    ]
    leaf = leaf_of("nemo", manifest=write_jsonl(tmp_path / "manifest.json", rows))
    made = check_hole(Fetcher(tolerant(leaf, tmp_path), dataset()), micro_batch([0, 1]), 0)
    expected = "is a folder" if name == "folder" else "does not exist"
    assert expected in made.bad[0].reason


def test_a_row_without_audio_is_a_hole_for_those_who_need_it(tmp_path):
    cuts = enriched(tmp_path, simple_cuts(tmp_path / "wavs", ["a", "b"], seconds=1.0))
    CutSet([cuts[0], cuts[1].drop_recording()]).to_file(tmp_path / "cuts.jsonl")
    leaf = leaf_of("lhotse", cuts=tmp_path / "cuts.jsonl")
    fetch = Fetcher(tolerant(leaf, tmp_path), SpeechToText())
    made = check_hole(fetch, micro_batch([0, 1]), 1)
    assert made.bad[0].reason == "the cut has no recording"


def test_an_inspection_needs_nothing_of_the_disk_twice(tmp_path, monkeypatch):
    """A file that fails when it is opened by name again and again is read by what retries."""
    import soundfile as sf

    leaf = nemo_leaf(tmp_path, [0.5, 0.6, 0.7])
    (tmp_path / "u2.wav").write_bytes(b"no audio")
    opened = sf.SoundFile.__init__
    left = [1]

    def open_(self, file, *rest, **options):
        if str(file).endswith("u2.wav"):
            left[0] += 1
        elif isinstance(file, (str, Path)) and left[0] > 1:
            # After the bad one was found, names cannot be opened for a while.
            left[0] += 1
            if left[0] < 5:
                raise sf.LibsndfileError(2, prefix=f"Error opening {file!r}: ")
        return opened(self, file, *rest, **options)

    monkeypatch.setattr(sf.SoundFile, "__init__", open_)
    fetch = Fetcher(tolerant(leaf, tmp_path), SpeechToText())
    made = fetch(micro_batch([0, 1, 2]))
    assert made.places == (2,)
    assert made.batch["ids"] == ["u0.wav", "u1.wav"]
