from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from lhotse import CutSet, Recording

from playhead.errors import SourceNotFoundError, StaleIndexError
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.paths import expand
from playhead.storage import local
from support.corpus import nemo_corpus, tarred_corpus, wav_bytes, write_jsonl, write_tar
from support.fetching import leaf_of, micro_batch, spec_of
from support.leaves import make_leaf, open_one

DURATIONS = [0.1 + 0.01 * i for i in range(24)]


def reader_of(leaves, folder):
    timings = Timings()
    spec = spec_of(leaves, folder)
    return Reader(spec.leaves, spec.packs, timings), timings


def tarred_leaf(folder, shards=3, durations=DURATIONS, **facts):
    manifest, tar = tarred_corpus(folder, durations, shards)
    return leaf_of("nemo_tarred", manifest=expand(manifest), tar=expand(tar), **facts)


def cuts_leaf(folder):
    folder.mkdir()
    for i in range(3):
        (folder / f"{i}.wav").write_bytes(wav_bytes(0.2, seed=50 + i))
    CutSet.from_cuts(
        Recording.from_file(folder / f"{i}.wav").to_cut().with_id(f"cut{i}") for i in range(3)
    ).to_file(folder / "cuts.jsonl")
    return leaf_of("lhotse", cuts=folder / "cuts.jsonl")


@pytest.fixture
def reads(monkeypatch):
    """Each file that is read, and how many ranges."""
    made = []
    real = local.read_ranges

    def read_ranges(path, offsets, sizes):
        made.append((path, len(offsets)))
        return real(path, offsets, sizes)

    monkeypatch.setattr(local, "read_ranges", read_ranges)
    return made


def test_samples_come_in_the_order_of_the_batch_from_all_leaves(tmp_path):
    leaves = [
        leaf_of("nemo", manifest=nemo_corpus(tmp_path / "plain", DURATIONS[:5])),
        tarred_leaf(tmp_path / "tarred"),
        cuts_leaf(tmp_path / "cuts"),
    ]
    reader, _ = reader_of(leaves, tmp_path)
    leaf = [1, 0, 2, 1, 0, 1, 2, 1, 1]
    row = [5, 4, 1, 23, 0, 5, 0, 0, 11]
    examples = reader.read(micro_batch(row, leaf), with_audio=True)
    order = [i for shard in range(3) for i in range(shard, 24, 3)]
    expected = []
    for number, i in zip(leaf, row, strict=True):
        if number == 1:
            expected.append(f"utt{order[i]:05d}.wav")
        else:
            expected.append(f"wav/utt{i:05d}.wav" if number == 0 else f"cut{i}")
    assert [example.id for example in examples] == expected
    for example, number, i in zip(examples, leaf, row, strict=True):
        if number == 1:
            assert example.audio.source == wav_bytes(DURATIONS[order[i]], seed=order[i])


def test_each_file_is_read_once_a_batch(tmp_path, reads):
    reader, timings = reader_of([tarred_leaf(tmp_path)], tmp_path)
    reader.read(micro_batch(np.arange(24)), with_audio=True)
    assert sorted(reads) == sorted(
        [(str(tmp_path / f"manifest_{i}.json"), 8) for i in range(3)]
        + [(str(tmp_path / f"audio_{i}.tar"), 16) for i in range(3)]
    )
    assert timings.requests == 3 * 24
    assert timings.num_bytes > sum(2 * 16000 * seconds for seconds in DURATIONS)
    assert timings.slowest_object in dict(reads)
    assert 0 < timings.slowest_seconds <= timings.read_seconds


def test_leaves_that_share_files_share_reads(tmp_path, reads):
    leaf = tarred_leaf(tmp_path)
    reader, _ = reader_of([leaf, leaf], tmp_path)
    one, two = reader.read(micro_batch([0, 0], [0, 1]), with_audio=True)
    assert one.id == two.id
    assert sorted(reads) == [
        (str(tmp_path / "audio_0.tar"), 4),
        (str(tmp_path / "manifest_0.json"), 2),
    ]


def test_without_audio_no_archive_is_touched(tmp_path, reads):
    reader, _ = reader_of([tarred_leaf(tmp_path)], tmp_path)
    for path in tmp_path.glob("audio_*.tar"):
        path.unlink()
    examples = reader.read(micro_batch(np.arange(24)), with_audio=False)
    assert {example.audio for example in examples} == {None}
    assert all(path.endswith(".json") for path, _ in reads)


def test_a_place_leads_to_the_row_and_the_member(tmp_path):
    reader, _ = reader_of([tarred_leaf(tmp_path)], tmp_path)
    (example,) = reader.read(micro_batch([9]), with_audio=True)
    place = example.place
    assert (place.leaf, place.row) == ("train", 9)
    with Path(place.shard).open("rb") as file:
        file.seek(place.byte)
        assert b'"utt00004.wav"' in file.readline()
    archive = tmp_path / "audio_1.tar"
    assert place.member == f"{archive}/utt00004.wav"
    with archive.open("rb") as file:
        file.seek(place.member_byte)
        assert file.read(4) == b"RIFF"


def test_embedded_rows_need_no_manifest(tmp_path):
    import gzip

    manifest = nemo_corpus(tmp_path, DURATIONS[:4])
    packed = tmp_path / "manifest.json.gz"
    packed.write_bytes(gzip.compress(manifest.read_bytes()))
    reader, timings = reader_of([leaf_of("nemo", manifest=packed)], tmp_path)
    packed.unlink()
    examples = reader.read(micro_batch([3, 1]), with_audio=True)
    assert [example.text for example in examples] == ["utt 3", "utt 1"]
    assert timings.requests == 0


@pytest.mark.parametrize("name", ["manifest_1.json", "audio_1.tar"])
def test_a_file_of_another_size_is_refused_when_it_is_first_read(tmp_path, name):
    reader, _ = reader_of([tarred_leaf(tmp_path)], tmp_path)
    path = tmp_path / name
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"\0" * 512)
    reader.read(micro_batch([0]), with_audio=True)
    with pytest.raises(StaleIndexError) as caught:
        reader.read(micro_batch([8]), with_audio=True)
    for part in (str(path), f"{size} when it was indexed", f"has {size + 512} bytes"):
        assert part in str(caught.value)
    assert "playhead index" in str(caught.value)


def test_a_file_is_looked_at_once(tmp_path, monkeypatch):
    reader, _ = reader_of([tarred_leaf(tmp_path)], tmp_path)
    asked = []
    real = local.size
    monkeypatch.setattr(local, "size", lambda path: asked.append(path) or real(path))
    for _ in range(3):
        reader.read(micro_batch([0, 1, 9]), with_audio=True)
    assert len(asked) == len(set(asked)) == 4


def swapped(path, tmp_path):
    """The same archive with two members of one size in each other's place."""
    with tarfile.open(path) as tar:
        members = [(member.name, tar.extractfile(member).read()) for member in tar]
    members[0], members[1] = members[1], members[0]
    write_tar(path, members)


def test_another_member_of_the_same_size_is_noticed(tmp_path):
    reader, _ = reader_of([tarred_leaf(tmp_path, durations=[0.1] * 9)], tmp_path)
    swapped(tmp_path / "audio_1.tar", tmp_path)
    with pytest.raises(StaleIndexError) as caught:
        reader.read(micro_batch([3]), with_audio=True)
    for part in ("'utt00001.wav'", "'utt00004.wav'", str(tmp_path / "audio_1.tar"), "byte 0"):
        assert part in str(caught.value)


def test_every_member_is_compared_with_its_header(tmp_path):
    """Not only the first one of an archive."""
    reader, _ = reader_of([tarred_leaf(tmp_path)], tmp_path)
    reader.read(micro_batch([0]), with_audio=True)
    path = tmp_path / "audio_0.tar"
    with tarfile.open(path) as tar:
        places = [(member.offset, member.size) for member in tar]
    offset, size = places[3]
    data = bytearray(path.read_bytes())
    info = tarfile.TarInfo("utt00009.wav")
    info.size = size - 2
    data[offset : offset + 512] = info.tobuf(tarfile.USTAR_FORMAT)
    path.write_bytes(data)
    reader.read(micro_batch([2]), with_audio=True)
    with pytest.raises(StaleIndexError, match=f"the header says {size - 2} bytes") as caught:
        reader.read(micro_batch([3]), with_audio=True)
    assert f"{path}, byte {offset}" in str(caught.value)
    data[offset : offset + 512] = b"x" * 512
    path.write_bytes(data)
    with pytest.raises(StaleIndexError, match="archive has no member of"):
        reader.read(micro_batch([3]), with_audio=True)


LONG_NAME = "n" * 120 + ".wav"
NAMES = ["./plain.wav", "folder/" * 20 + "x.wav", LONG_NAME, "Grüße/ñandú.wav", "talk-sub3.wav"]
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


@pytest.mark.parametrize(
    ("format_", "name"),
    [
        (format_, name)
        for format_ in FORMATS
        for name in NAMES
        if (format_, name) != (tarfile.USTAR_FORMAT, LONG_NAME)
    ],
)
def test_names_of_every_kind_are_no_reason_to_refuse(tmp_path, format_, name):
    member = name.replace("-sub3", "")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format_) as tar:
        info = tarfile.TarInfo(member)
        payload = wav_bytes(0.1)
        info.size = len(payload)
        tar.addfile(info, io.BytesIO(payload))
    (tmp_path / "audio_0.tar").write_bytes(buffer.getvalue())
    manifest = write_jsonl(
        tmp_path / "manifest_0.json",
        [{"audio_filepath": name.removeprefix("./"), "duration": 0.1, "text": ""}],
    )
    leaf = leaf_of("nemo_tarred", manifest=manifest, tar=tmp_path / "audio_0.tar")
    reader, _ = reader_of([leaf], tmp_path)
    (example,) = reader.read(micro_batch([0]), with_audio=True)
    assert example.audio.source == payload


def test_a_file_that_is_gone_is_named(tmp_path):
    reader, _ = reader_of([tarred_leaf(tmp_path)], tmp_path)
    (tmp_path / "audio_2.tar").unlink()
    with pytest.raises(SourceNotFoundError, match=r"audio_2\.tar"):
        reader.read(micro_batch([23]), with_audio=True)


def test_members_that_change_places_are_noticed_at_any_read(tmp_path):
    """Of one size, they would pass for each other; the first read of an archive told only one."""
    members = [(f"{n}.wav", wav_bytes(0.2, seed=n)) for n in range(4)]
    tar = write_tar(tmp_path / "a.tar", members)
    rows = [{"audio_filepath": name, "duration": 0.2} for name, _ in members]
    leaf = make_leaf("nemo_tarred", manifest=[write_jsonl(tmp_path / "m.json", rows)], tar=[tar])
    reader = Reader((leaf,), (open_one(leaf, tmp_path / "packs").ref,), Timings())
    assert reader.read(micro_batch([0, 3]), with_audio=True)[1].id == "3.wav"
    members[1], members[2] = members[2], members[1]
    write_tar(tar, members)
    assert reader.read(micro_batch([0, 3]), with_audio=True)[0].id == "0.wav"
    with pytest.raises(StaleIndexError, match=r"audio is '2.wav' and the archive has '1.wav'"):
        reader.read(micro_batch([3, 2]), with_audio=True)
