"""Samples whose audio cannot be used: found, left out, recorded; and what is no bad sample."""

from __future__ import annotations

import errno
import json
import os
import pickle
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
import torch
from lhotse import CutSet, MonoCut, Recording
from lhotse.audio import AudioSource
from lhotse.audio.utils import AudioLoadingError
from lhotse.dataset.collation import collate_audio
from torch.utils.data import DataLoader, Dataset

from playhead.datasets import Ids, SpeechToText
from playhead.errors import AudioError, SourceNotFoundError, StaleIndexError
from playhead.fetch import Fetcher
from playhead.fetch.bad import BadSample, Holes, is_about_audio, without
from playhead.storage import retries
from playhead.storage.retries import GaveUpError
from support.corpus import write_jsonl, write_tar
from support.damage import DAMAGE, KINDS, encoded
from support.fetching import leaf_of, micro_batch, spec_of

SECONDS = [1.0, 1.5, 1.2, 0.9]


class Recognition(Dataset):
    """A dataset as Lhotse users write them, with randomness of its own."""

    def __getitem__(self, cuts: CutSet) -> dict:
        audio, lengths = collate_audio(cuts)
        noise = torch.randn(audio.shape[1])
        return {"audio": audio + noise, "audio_lens": lengths, "ids": [cut.id for cut in cuts]}


DATASETS = [SpeechToText, Recognition]


@pytest.fixture(autouse=True)
def no_naps(monkeypatch):
    monkeypatch.setattr(retries, "PAUSES", (0.0, 0.0))


def corpus(folder: Path, kind: str, *, tarred: bool, damage=None, at=1):
    """A leaf of four samples, one of which is damaged; and the paths of the plain files."""
    rows, members = [], []
    for i, seconds in enumerate(SECONDS):
        data = encoded(seconds, kind, seed=i)
        if i == at and damage is not None:
            data = damage(data)
        members.append((f"u{i}.{kind}", data))
        rows.append({"audio_filepath": f"u{i}.{kind}", "duration": seconds, "text": f"text {i}"})
    manifest = write_jsonl(folder / "manifest.json", rows)
    if tarred:
        return leaf_of("nemo_tarred", manifest=manifest, tar=write_tar(folder / "a.tar", members))
    for name, data in members:
        (folder / name).write_bytes(data)
    return leaf_of("nemo", manifest=manifest)


def tolerant_spec(leaf, folder, **options):
    return spec_of([leaf], folder, sample_rate=16000, info=True, fault_tolerant=True, **options)


def same(one: dict, other: dict) -> bool:
    assert one.keys() == other.keys()
    return all(
        torch.equal(value, other[name]) if isinstance(value, torch.Tensor) else value == other[name]
        for name, value in one.items()
        if name != "playhead"
    )


@pytest.fixture(
    scope="module", params=[(kind, tarred) for kind in KINDS for tarred in (False, True)]
)
def damaged(request, tmp_path_factory):
    """A corpus whose rows are damaged, each in its way, but for the first and the last."""
    kind, tarred = request.param
    folder = tmp_path_factory.mktemp(kind)
    ways = [None, *DAMAGE.values(), None]
    members = []
    for i, damage in enumerate(ways):
        data = encoded(1.0 + i / 10, kind, seed=i)
        members.append((f"u{i}.{kind}", data if damage is None else damage(data)))
    rows = [
        {"audio_filepath": name, "duration": 1.0 + i / 10, "text": f"text {i}"}
        for i, (name, _) in enumerate(members)
    ]
    manifest = write_jsonl(folder / "manifest.json", rows)
    if tarred:
        leaf = leaf_of("nemo_tarred", manifest=manifest, tar=write_tar(folder / "a.tar", members))
    else:
        for name, data in members:
            (folder / name).write_bytes(data)
        leaf = leaf_of("nemo", manifest=manifest)
    return folder, kind, tarred, tolerant_spec(leaf, folder)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_sample_is_left_out_and_the_rest_is_as_if_it_had_not_been_there(
    damaged, damage, dataset
):
    folder, kind, tarred, spec = damaged
    row, last = 1 + list(DAMAGE).index(damage), 1 + len(DAMAGE)
    fetch = Fetcher(spec, dataset())
    asked = micro_batch([0, row, last], key=7, step=3, slot=1)
    made = fetch(asked)
    assert isinstance(made, Holes)
    assert not made.empty
    assert made.batch["playhead"].dropped == 1
    assert made.batch["playhead"].repeated == [False] * 2
    assert made.places == (1,)
    expected = Fetcher(spec, dataset())(without(asked, [1]))
    assert expected["ids"] == [f"u{i}.{kind}" for i in (0, last)]
    assert same(made.batch, expected)

    (bad,) = made.bad
    lines = (folder / "manifest.json").read_bytes().splitlines(keepends=True)
    file = folder / (f"a.tar/u{row}.{kind}" if tarred else f"u{row}.{kind}")
    assert (bad.leaf, bad.name) == (spec.leaves[0].key, "train")
    assert (bad.row, bad.id) == (row, f"u{row}.{kind}")
    assert (bad.shard, bad.byte) == (str(folder / "manifest.json"), len(b"".join(lines[:row])))
    assert bad.row_crc == crc32(lines[row].rstrip())
    assert (bad.member, bad.step, bad.slot) == (str(file), 3, 1)
    assert bad.reason.startswith("the audio")
    assert str(folder) not in bad.reason


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("tarred", [False, True])
def test_without_tolerance_it_is_an_error_that_says_where(tmp_path, tarred, dataset):
    leaf = corpus(tmp_path, "flac", tarred=tarred, damage=DAMAGE["cut short"])
    spec = spec_of([leaf], tmp_path, sample_rate=16000)
    with pytest.raises(AudioError) as caught:
        Fetcher(spec, dataset())(micro_batch([0, 1, 2]))
    wanted = ["leaf train", "manifest.json", "row 1", "u1.flac", "byte "]
    for part in [*wanted, "at byte "] if tarred else wanted:
        assert part in str(caught.value)


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_sample_that_is_shorter_than_its_row_says_is_left_out(tmp_path, dataset):
    """Another recording has taken its place."""
    leaf = corpus(tmp_path, "wav", tarred=False, damage=lambda _: encoded(0.3, "wav"))
    made = Fetcher(tolerant_spec(leaf, tmp_path), dataset())(micro_batch([0, 1]))
    assert made.batch["ids"] == ["u0.wav"]
    assert "0.700 s before" not in made.bad[0].reason
    assert "1.200 s before the sample does" in made.bad[0].reason


@pytest.mark.parametrize("dataset", DATASETS)
def test_several_in_one_batch_and_a_batch_of_nothing_else(tmp_path, dataset):
    leaf = corpus(tmp_path, "wav", tarred=False)
    for i in (0, 3):
        (tmp_path / f"u{i}.wav").write_bytes(b"")
    fetch = Fetcher(tolerant_spec(leaf, tmp_path), dataset())
    made = fetch(micro_batch([3, 1, 0, 3]))
    assert made.batch["ids"] == ["u1.wav"]
    assert [one.id for one in made.bad] == ["u3.wav", "u0.wav", "u3.wav"]
    assert made.places == (0, 2, 3)
    assert made.batch["playhead"].dropped == 3
    empty = fetch(micro_batch([0, 3]))
    assert empty.empty
    assert empty.batch is None
    assert len(empty.bad) == 2


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_missing_file_is_bad_only_if_its_folder_is_there_and_holds_something(tmp_path, dataset):
    leaf = corpus(tmp_path, "wav", tarred=False)
    folder = tmp_path / "deep"
    folder.mkdir()
    rows = [{"audio_filepath": "deep/a.wav", "duration": 1.0, "text": ""}]
    rows += [{"audio_filepath": "u0.wav", "duration": 1.0, "text": ""}]
    leaf = leaf_of("nemo", manifest=write_jsonl(tmp_path / "manifest.json", rows))
    fetch = Fetcher(tolerant_spec(leaf, tmp_path), dataset())
    (folder / "b.wav").write_bytes(b"another")
    made = fetch(micro_batch([0, 1]))
    assert [one.reason for one in made.bad] == ["the audio file does not exist"]
    assert made.bad[0].member == str(folder / "a.wav")
    (folder / "b.wav").unlink()
    with pytest.raises(SourceNotFoundError, match="row 0"):
        fetch(micro_batch([0, 1]))
    folder.rmdir()
    with pytest.raises(SourceNotFoundError, match=r"deep/a\.wav"):
        fetch(micro_batch([0, 1]))


@pytest.mark.parametrize("dataset", DATASETS)
def test_cuts_of_lhotse_are_looked_into_too(tmp_path, dataset):
    for i, seconds in enumerate(SECONDS):
        (tmp_path / f"u{i}.flac").write_bytes(encoded(seconds, "flac", seed=i))
    recordings = [Recording.from_file(tmp_path / f"u{i}.flac") for i in range(4)]
    cuts = [recording.to_cut() for recording in recordings]
    cuts = CutSet([cuts[0], cuts[0].append(cuts[1]).with_id("joined"), *cuts[2:]])
    cuts.to_file(tmp_path / "cuts.jsonl")
    leaf = leaf_of("lhotse", cuts=tmp_path / "cuts.jsonl")
    ids = [cut.id for cut in cuts]
    fetch = Fetcher(tolerant_spec(leaf, tmp_path), dataset())
    assert fetch(micro_batch([0, 1, 2, 3]))["ids"] == ids
    (tmp_path / "u1.flac").write_bytes(encoded(1.5, "flac", seed=1)[:9000])
    made = fetch(micro_batch([0, 1, 2, 3]))
    assert made.batch["ids"] == [ids[0], ids[2], ids[3]]
    assert [one.id for one in made.bad] == ["joined"]
    (tmp_path / "u1.flac").unlink()
    made = fetch(micro_batch([0, 1, 2, 3]))
    assert [one.reason for one in made.bad] == ["the audio file does not exist"]
    with pytest.raises(SourceNotFoundError, match="row 1"):
        Fetcher(spec_of([leaf], tmp_path, sample_rate=16000), dataset())(micro_batch([0, 1]))


@pytest.mark.parametrize("dataset", DATASETS)
def test_an_archive_that_changed_is_no_bad_sample(tmp_path, dataset):
    leaf = corpus(tmp_path, "wav", tarred=True)
    spec = tolerant_spec(leaf, tmp_path)
    tar = tmp_path / "a.tar"
    whole = tar.read_bytes()
    tar.write_bytes(whole[:-2048])
    with pytest.raises(StaleIndexError, match=r"had .* when it was indexed"):
        Fetcher(spec, dataset())(micro_batch([0, 1]))
    header = bytearray(whole)
    header[0:20] = b"\xff" * 20
    tar.write_bytes(header)
    with pytest.raises(StaleIndexError):
        Fetcher(spec, dataset())(micro_batch([0, 1]))
    tar.unlink()
    with pytest.raises(SourceNotFoundError, match=r"a\.tar"):
        Fetcher(spec, dataset())(micro_batch([0, 1]))


def test_a_channel_that_is_wanted_and_cannot_be_chosen_is_no_matter_of_one_sample(tmp_path):
    """Two channels where one is wanted: the file is whole, and the config is at fault."""
    import soundfile as sf

    leaf = corpus(tmp_path, "wav", tarred=False)
    sf.write(tmp_path / "u1.wav", np.zeros((24000, 2)), 16000)
    with pytest.raises(AudioError, match="channel_selector"):
        Fetcher(tolerant_spec(leaf, tmp_path), SpeechToText())(micro_batch([0, 1]))


def failing_reads(monkeypatch, code, times, path):
    """Let the first reads of a file fail, whoever makes them."""
    import soundfile as sf

    left = [times]
    pread, opened = os.pread, sf.SoundFile.__init__

    def fail():
        if left[0]:
            left[0] -= 1
            return True
        return False

    def slow_pread(number, *rest):
        if str(Path(f"/proc/self/fd/{number}").readlink()) == str(path) and fail():
            raise OSError(code, os.strerror(code))
        return pread(number, *rest)

    def open_(self, file, *rest, **options):
        if str(file) == str(path) and fail():
            raise sf.LibsndfileError(2, prefix=f"Error opening {file!r}: ")
        return opened(self, file, *rest, **options)

    monkeypatch.setattr(os, "pread", slow_pread)
    monkeypatch.setattr(sf.SoundFile, "__init__", open_)
    return left


@pytest.mark.parametrize("tolerant", [False, True])
@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_disk_that_hiccups_makes_no_difference(tmp_path, monkeypatch, dataset, times, tolerant):
    leaf = corpus(tmp_path, "wav", tarred=False)
    spec = spec_of([leaf], tmp_path, sample_rate=16000, info=True, fault_tolerant=tolerant)
    expected = Fetcher(spec, dataset())(micro_batch([0, 1, 2]))
    left = failing_reads(monkeypatch, errno.EIO, times, tmp_path / "u1.wav")
    made = Fetcher(spec, dataset())(micro_batch([0, 1, 2]))
    assert left == [0]
    assert same(made, expected)


@pytest.mark.parametrize("tolerant", [False, True])
@pytest.mark.parametrize("dataset", DATASETS)
def test_a_file_that_cannot_be_found_for_a_moment_is_no_bad_sample(
    tmp_path, monkeypatch, dataset, tolerant
):
    leaf = corpus(tmp_path, "wav", tarred=False)
    spec = spec_of([leaf], tmp_path, sample_rate=16000, info=True, fault_tolerant=tolerant)
    expected = Fetcher(spec, dataset())(micro_batch([0, 1, 2]))
    left, real = [1], os.stat

    def stat(path, *rest, **options):
        if str(path).endswith("u1.wav") and left[0]:
            left[0] -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path, *rest, **options)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os.path, "exists", _is_there)
    made = Fetcher(spec, dataset())(micro_batch([0, 1, 2]))
    assert left == [0]
    assert same(made, expected)


def _is_there(path):
    """As `os.path.exists`, which may have a faster way than `os.stat`."""
    try:
        os.stat(path)  # noqa: PTH116 - the one that is replaced
    except OSError:
        return False
    return True


@pytest.mark.parametrize("tolerant", [False, True])
@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT])
def test_a_disk_that_stays_broken_is_an_error_and_no_bad_sample(
    tmp_path, monkeypatch, dataset, code, tolerant
):
    leaf = corpus(tmp_path, "wav", tarred=False)
    spec = spec_of([leaf], tmp_path, sample_rate=16000, fault_tolerant=tolerant)
    failing_reads(monkeypatch, code, 10**6, tmp_path / "u1.wav")
    with pytest.raises(GaveUpError, match="tried 3 times") as caught:
        Fetcher(spec, dataset())(micro_batch([0, 1, 2]))
    assert caught.value.errno == code
    assert caught.value.filename == str(tmp_path / "u1.wav")


class Flaky(Recognition):
    """Reads something of its own from a disk that fails for a moment."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __getitem__(self, cuts: CutSet) -> dict:
        if self.left:
            self.left -= 1
            raise OSError(errno.EIO, "Input/output error", "/data/noise.npy")
        return super().__getitem__(cuts)


def test_what_a_dataset_reads_itself_is_tried_again_with_the_same_keys(tmp_path):
    leaf = corpus(tmp_path, "wav", tarred=False)
    spec = spec_of([leaf], tmp_path, sample_rate=16000)
    expected = Fetcher(spec, Flaky(0))(micro_batch([0, 1], key=5))
    assert same(Fetcher(spec, Flaky(2))(micro_batch([0, 1], key=5)), expected)
    with pytest.raises(GaveUpError, match=r"noise\.npy"):
        Fetcher(spec, Flaky(3))(micro_batch([0, 1], key=5))


class Refuses(Dataset):
    """Has its own idea of what audio is."""

    calls = 0

    def __getitem__(self, cuts: CutSet) -> dict:
        self.calls += 1
        raise AudioLoadingError("not my taste")


def test_an_error_about_audio_of_which_nothing_is_bad_is_raised_as_it_was(tmp_path):
    leaf = corpus(tmp_path, "wav", tarred=False)
    dataset = Refuses()
    with pytest.raises(AudioLoadingError, match="not my taste"):
        Fetcher(tolerant_spec(leaf, tmp_path), dataset)(micro_batch([0, 1]))
    assert dataset.calls == 2


class Buggy(Dataset):
    calls = 0

    def __getitem__(self, cuts: CutSet) -> dict:
        self.calls += 1
        raise KeyError("mine")


def test_other_errors_of_datasets_do_not_drop_anything(tmp_path):
    leaf = corpus(tmp_path, "wav", tarred=False, damage=DAMAGE["text"], at=2)
    dataset = Buggy()
    with pytest.raises(KeyError, match="mine"):
        Fetcher(tolerant_spec(leaf, tmp_path), dataset)(micro_batch([0, 1]))
    assert dataset.calls == 1


class WrapsErrors(Recognition):
    def __getitem__(self, cuts: CutSet) -> dict:
        try:
            return super().__getitem__(cuts)
        except Exception as error:
            raise ValueError("something is wrong") from error


def test_audio_is_found_behind_an_error_of_the_datasets_own(tmp_path):
    leaf = corpus(tmp_path, "flac", tarred=False, damage=DAMAGE["cut short"])
    made = Fetcher(tolerant_spec(leaf, tmp_path), WrapsErrors())(micro_batch([0, 1, 2]))
    assert made.batch["ids"] == ["u0.flac", "u2.flac"]


def test_datasets_that_read_no_audio_do_not_mind(tmp_path):
    leaf = corpus(tmp_path, "wav", tarred=False, damage=DAMAGE["text"])
    batch = Fetcher(tolerant_spec(leaf, tmp_path), Ids())(micro_batch([0, 1]))
    assert batch["ids"] == ["u0.wav", "u1.wav"]
    assert batch["playhead"].dropped == 0


class Items(Dataset):
    def __init__(self, fetch):
        self.fetch = fetch

    def __getitem__(self, batch):
        return self.fetch(batch)


def as_is(batch):
    return batch


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_holes_come_out_of_workers(tmp_path, start):
    leaf = corpus(tmp_path, "opus", tarred=True, damage=DAMAGE["bits flipped"])
    spec = tolerant_spec(leaf, tmp_path)
    asked = [micro_batch([i % 4, 1, 3], key=i, step=i) for i in (0, 2, 1)]
    here = [Fetcher(spec, SpeechToText())(one) for one in asked]
    loader = DataLoader(
        Items(Fetcher(spec, SpeechToText())),
        sampler=asked,
        batch_size=None,
        collate_fn=as_is,
        num_workers=2,
        multiprocessing_context=start,
        generator=torch.Generator(),
    )
    for made, expected in zip(loader, here, strict=True):
        assert made.bad == expected.bad
        assert made.places == expected.places
        assert made.batch["playhead"] == expected.batch["playhead"]
        assert same(made.batch, expected.batch)


def test_a_record_is_a_line_of_json():
    bad = BadSample(
        leaf="k", name="train", shard="/data/ü.json", row=3, byte=99, row_crc=2**32 - 1,
        member=None, id="a\nb", reason='it is "bad"', step=1, slot=2,
    )  # fmt: skip
    line = bad.to_line()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {name: getattr(bad, name) for name in BadSample.__slots__}
    assert pickle.loads(pickle.dumps(bad)) == bad


def test_errors_of_lhotses_audio_code_are_about_audio_whatever_their_type():
    source = AudioSource(type="no such type", channels=[0], source="x")
    cut = MonoCut("c", 0, 1, 0, recording=Recording("r", [source], 16000, 16000, 1.0))
    with pytest.raises(Exception, match="no such type") as caught:
        cut.load_audio()
    assert is_about_audio(caught.value)
    assert not is_about_audio(ValueError("no audio"))


def test_a_micro_batch_without_some_samples():
    whole = micro_batch([5, 6, 7, 8], repeated=[0, 1, 0, 1], key=3, step=2, slot=1)
    left = without(whole, [0, 2])
    assert left.row.tolist() == [6, 8]
    assert left.repeated.tolist() == [True, True]
    assert left.sample_keys.tolist() == [1, 3]
    assert (left.key, left.step, left.slot, left.speed) == (3, 2, 1, None)


class Pinnable:
    def pin_memory(self):
        return "pinned"


def test_what_is_in_a_batch_with_holes_is_pinned_as_in_any_other():
    from torch.utils.data._utils.pin_memory import pin_memory

    pinned = pin_memory(Holes({"audio": Pinnable(), "ids": ["a"]}, (), (0,)))
    assert pinned == Holes({"audio": "pinned", "ids": ["a"]}, (), (0,))
    empty = Holes(None, (), (0,), empty=True)
    assert pin_memory(empty) == empty
