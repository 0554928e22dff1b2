"""Shars of real speech, as Lhotse writes them, give what Lhotse itself reads of them."""

from __future__ import annotations

import io
import shutil
import tarfile
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import playhead
from playhead.datasets import Ids
from playhead.errors import ArchiveError, DataError, ManifestError, PlayheadError, StaleIndexError
from support.handed_out import lines, resumed, take, through_json
from support.real_speech import RATE, made_once
from support.shar import (
    ENCODINGS,
    loaded,
    read_by_lhotse,
    records_of,
    simple_cuts,
    write_real_shars,
    write_shar,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lhotse import CutSet
    from lhotse.cut import Cut

pytestmark = pytest.mark.e2e


class Cuts(torch.utils.data.Dataset):
    """Hands the cuts themselves over."""

    def __getitem__(self, cuts: CutSet) -> dict[str, Any]:
        return {"cuts": list(cuts), "ids": [cut.id for cut in cuts]}


@pytest.fixture(scope="session")
def shars(shared_folder: Path, prompts: Path) -> Path:
    return made_once(shared_folder / "shars", lambda folder: write_real_shars(folder, prompts))


def loader_of(shar_path: Any, dataset: Any = None, **options: Any) -> playhead.Loader:
    """A finite pass in declared order, unless options say otherwise."""
    chosen = {"sample_rate": RATE, "batch_size": 8, "force_finite": True, "shuffle": False}
    config = {"shar_path": shar_path, "num_workers": 0, "seed": 3, **chosen, **options}
    return playhead.dataloader(config, dataset=dataset, rank=0, world_size=1)


def cuts_of(loader: playhead.Loader) -> list[Cut]:
    return [cut for batch in loader for cut in batch["cuts"]]


def heard_in(loader: Any) -> list[tuple[str, str, np.ndarray]]:
    return [
        (cut_id, text, samples[:length])
        for batch in loader
        for cut_id, text, samples, length in zip(
            batch["ids"],
            batch["texts"],
            batch["audio"].numpy(),
            batch["audio_lens"].tolist(),
            strict=True,
        )
    ]


def assert_same_cuts(mine: Sequence[Cut], theirs: Sequence[Cut]) -> None:
    assert [cut.id for cut in mine] == [cut.id for cut in theirs]
    for ours, cut in zip(mine, theirs, strict=True):
        assert ours == cut
        expected = loaded(cut)
        found = loaded(ours)
        assert found.keys() == expected.keys()
        for field, array in found.items():
            np.testing.assert_array_equal(array, expected[field], err_msg=f"{cut.id} {field}")


def assert_heard(loader: playhead.Loader, theirs: Sequence[Cut]) -> None:
    heard = heard_in(loader)
    assert [cut_id for cut_id, _, _ in heard] == [cut.id for cut in theirs]
    for (_, text, samples), cut in zip(heard, theirs, strict=True):
        assert text == cut.supervisions[0].text
        np.testing.assert_array_equal(samples, cut.load_audio()[0], err_msg=cut.id)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_audio_of_every_format(shars: Path, encoding: str) -> None:
    theirs = read_by_lhotse(in_dir=shars / encoding)
    assert len(theirs) == 45
    assert any(len(cut.id) > 100 for cut in theirs)
    assert any(not cut.id.isascii() for cut in theirs)
    assert_heard(loader_of(str(shars / encoding)), theirs)
    assert_same_cuts(cuts_of(loader_of(str(shars / encoding), Cuts())), theirs)


@pytest.mark.parametrize("name", ["rich", "rich-plain", "rich-zst"])
def test_every_kind_of_field(shars: Path, name: str) -> None:
    # Lhotse does not read zstd; what is in there was made from the same cuts.
    theirs = read_by_lhotse(in_dir=shars / name.removesuffix("-zst"))
    mine = cuts_of(loader_of(str(shars / name), Cuts()))
    assert_same_cuts(mine, theirs)
    fields = {field for cut in mine for field in loaded(cut)}
    assert fields == {"recording", "features", "target_recording", "embedding", "alignment"}
    assert {len(loaded(cut)) for cut in mine} == {3, 4, 5}
    assert_heard(loader_of(str(shars / name)), theirs)


def test_folders_after_each_other(shars: Path) -> None:
    folders = [shars / "opus", shars / "wav"]
    theirs = [cut for folder in folders for cut in read_by_lhotse(in_dir=folder)]
    assert_heard(loader_of([str(folder) for folder in folders]), theirs)


def test_a_weighted_list_of_folders(shars: Path) -> None:
    theirs = {
        (folder, cut.id): cut.load_audio()[0]
        for folder in ("mp3", "rich")
        for cut in read_by_lhotse(in_dir=shars / folder)
    }
    shar_path = [[str(shars / "mp3"), 3], [str(shars / "rich"), 1]]
    loader = loader_of(shar_path, force_finite=False, shuffle=True, window_draws=400)
    counts = {"mp3": 0, "rich": 0}
    for cut_id, _, samples in heard_in(islice(loader, 100)):
        # The same prompts are in both, encoded with and without loss.
        (folder,) = [
            folder
            for folder in counts
            if np.array_equal(theirs.get((folder, cut_id), np.zeros(0)), samples)
        ]
        counts[folder] += 1
    assert counts == {"mp3": 600, "rich": 200}


def test_fields_that_are_named(shars: Path) -> None:
    flac, mp3 = shars / "flac", shars / "mp3"
    numbers = range(4)
    fields = {
        "cuts": [flac / f"cuts.{number:06d}.jsonl" for number in numbers],
        "recording": [mp3 / f"recording.{number:06d}.tar" for number in numbers],
        "other_recording": [flac / f"recording.{number:06d}.tar" for number in numbers],
    }
    theirs = read_by_lhotse(fields=fields)
    shar_path = {
        "recording": str(mp3 / "recording.00000_OP_0..3_CL_.tar"),
        "cuts": str(flac / "cuts.00000{0..3}.jsonl"),
        "other_recording": [str(path) for path in fields["other_recording"]],
    }
    assert_same_cuts(cuts_of(loader_of(shar_path, Cuts())), theirs)
    assert_heard(loader_of(shar_path), theirs)
    other = next(iter(loader_of(shar_path, Cuts())))["cuts"][0]
    assert not np.array_equal(other.load_other_recording(), other.load_audio())


def test_a_selection_of_fields(shars: Path) -> None:
    fields = {
        "cuts": sorted((shars / "rich").glob("cuts.*.jsonl.gz")),
        "features": sorted((shars / "rich").glob("features.*.tar")),
    }
    theirs = read_by_lhotse(fields=fields)
    shar_path = {field: [str(path) for path in paths] for field, paths in fields.items()}
    mine = cuts_of(loader_of(shar_path, Cuts()))
    assert mine == theirs
    for ours, cut in zip(mine, theirs, strict=True):
        assert ours.has_features == cut.has_features
        if cut.has_features:
            np.testing.assert_array_equal(ours.load_features(), cut.load_features())


def test_ids_need_no_archive(shars: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shars / "wav", tmp_path / "shar")
    config: dict[str, Any] = {"indexes_root": str(tmp_path / "root")}
    loader = loader_of(str(folder), Ids(), **config)
    for path in folder.glob("recording.*"):
        path.write_bytes(bytes(path.stat().st_size))
    ids = [cut_id for batch in loader for cut_id in batch["ids"]]
    assert ids == [cut.id for cut in read_by_lhotse(in_dir=shars / "wav")]


@pytest.mark.parametrize("name", ["flac", "rich", "rich-plain"])
def test_resumed_on_other_workers(shars: Path, name: str) -> None:
    def make(workers: int) -> playhead.Loader:
        return loader_of(
            [str(shars / name), str(shars / "opus")],
            force_finite=False,
            shuffle=True,
            batch_size=None,
            batch_duration=12.0,
            micro_batches_per_step=2,
            window_draws=64,
            num_workers=workers,
        )

    whole = take(make(0), 40)
    for workers, stop, others in ((2, 8, 0), (0, 18, 3), (1, 30, 2)):
        loader = make(workers)
        iterator = iter(loader)
        before = lines(islice(iterator, stop))
        state = through_json(loader.state_dict())
        assert before == whole[:stop]
        assert take(resumed(make(others), state), 40 - stop) == whole[stop:]


class TestWhatDoesNotFit:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Two shards of cuts of the same length in WAV, with a score."""
        cuts = simple_cuts(tmp_path / "src", [f"cut-{number}" for number in range(6)])
        for number, cut in enumerate(cuts):
            cut.recording = cuts[0].recording
            cut.duration = cuts[0].duration
            cut.score = number
        fields = {"recording": "wav", "score": "jsonl"}
        return write_shar(tmp_path / "shar", cuts, fields, 3, "")

    def refusal(self, folder: Path, kind: type[PlayheadError], said: str, *names: str) -> None:
        with pytest.raises(kind, match=said) as caught:
            heard_in(loader_of(str(folder)))
        for name in names:
            assert str(folder / name) in str(caught.value)

    @pytest.mark.parametrize("end", [b"", bytes(1024), bytes(10240)])
    def test_an_archive_that_is_shorter(self, folder: Path, end: bytes) -> None:
        path = folder / "recording.000001.tar"
        start, _ = records_of(str(path))[2]
        path.write_bytes(path.read_bytes()[:start] + end)
        if end:
            assert len(read_by_lhotse(in_dir=folder)) == 5, "Lhotse says nothing"
        both = ("recording.000001.tar", "cuts.000001.jsonl")
        self.refusal(folder, DataError, "has 2 records", *both)

    def test_a_line_that_is_missing(self, folder: Path) -> None:
        path = folder / "score.000000.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
        assert len(read_by_lhotse(in_dir=folder)) == 5, "Lhotse says nothing"
        both = ("score.000000.jsonl", "cuts.000000.jsonl")
        self.refusal(folder, DataError, "has 2 records", *both)

    def test_cuts_that_are_missing(self, folder: Path) -> None:
        path = folder / "cuts.000001.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
        assert len(read_by_lhotse(in_dir=folder)) == 5, "Lhotse says nothing"
        both = ("recording.000001.tar", "cuts.000001.jsonl")
        self.refusal(folder, DataError, "more records than the 2 rows in ", *both)

    def test_a_line_in_the_middle_that_is_missing(self, folder: Path) -> None:
        path = folder / "score.000000.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[::2]))
        both = ("score.000000.jsonl", "cuts.000000.jsonl")
        self.refusal(folder, DataError, "'cut-1'.*'cut-2'|has 2 records", *both)

    def test_an_archive_that_is_cut_off(self, folder: Path) -> None:
        path = folder / "recording.000001.tar"
        start, _ = records_of(str(path))[2]
        path.write_bytes(path.read_bytes()[: start + 1000])
        self.refusal(folder, ArchiveError, "cut short", "recording.000001.tar")

    @pytest.mark.parametrize("field", ["recording.{}.tar", "score.{}.jsonl", "cuts.{}.jsonl"])
    def test_shards_that_are_swapped(self, folder: Path, field: str) -> None:
        one, other = (folder / field.format(number) for number in ("000000", "000001"))
        one.rename(folder / "x")
        other.rename(one)
        (folder / "x").rename(other)
        self.refusal(folder, ManifestError, "cut-0.*cut-3|cut-3.*cut-0")

    def test_shards_that_are_swapped_after_they_were_indexed(self, folder: Path) -> None:
        one, other = (folder / f"recording.{number}.tar" for number in ("000000", "000001"))
        assert one.stat().st_size == other.stat().st_size
        loader = loader_of(str(folder))
        one.rename(folder / "x")
        other.rename(one)
        (folder / "x").rename(other)
        with pytest.raises(ManifestError, match=r"The cut is 'cut-0'.*'cut-3'") as caught:
            heard_in(loader)
        assert str(one) in str(caught.value)

    def test_records_that_change_after_they_were_indexed(self, folder: Path) -> None:
        path = folder / "recording.000000.tar"
        data = bytearray(path.read_bytes())
        loader = loader_of(str(folder))
        data[3] ^= 1
        path.write_bytes(data)
        with pytest.raises(ArchiveError, match="checksum is wrong") as caught:
            heard_in(loader)
        assert f"field recording, {path}, byte 0" in str(caught.value)

    def test_an_archive_that_grows_after_it_was_indexed(self, folder: Path) -> None:
        path = folder / "recording.000000.tar"
        loader = loader_of(str(folder))
        path.write_bytes(path.read_bytes() + bytes(512))
        with pytest.raises(StaleIndexError, match="bytes"):
            heard_in(loader)

    def test_archives_made_again_by_other_programs(self, folder: Path) -> None:
        expected = [(cut.id, cut.load_audio()[0]) for cut in read_by_lhotse(in_dir=folder)]
        for path in folder.glob("*.tar"):
            buffer = io.BytesIO()
            with tarfile.open(path) as old, tarfile.open(fileobj=buffer, mode="w") as new:
                top = tarfile.TarInfo("./")
                top.type = tarfile.DIRTYPE
                new.addfile(top)
                for member in old:
                    file = old.extractfile(member)
                    member.name = f"./{member.name}"
                    new.addfile(member, file)
            path.write_bytes(buffer.getvalue())
        heard = heard_in(loader_of(str(folder), sample_rate=16000))
        assert [(cut_id, len(samples)) for cut_id, _, samples in heard] == [
            (cut_id, len(samples)) for cut_id, samples in expected
        ]
