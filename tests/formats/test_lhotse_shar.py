from __future__ import annotations

import io
import json
import tarfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lhotse import SupervisionSegment
from tests.support.stores import MemoryStore, plugged_in

from playhead.errors import (
    ArchiveError,
    AudioError,
    ConfigError,
    ManifestError,
    SourceNotFoundError,
)
from playhead.fetch.cuts import to_cut
from playhead.fetch.waveforms import waveform
from playhead.formats import BadRowError, FieldShard, LhotseShar, Part, Place, SourcePair
from playhead.formats.shar_fields import fill_memory
from playhead.formats.shar_record import parse_record
from support.corpus import wav_bytes
from support.shar import (
    FIELDS,
    FOREIGN,
    LONG,
    examples_of,
    loaded,
    read_by_lhotse,
    recording,
    records_of,
    rich_cuts,
    shar_leaf,
    simple_cuts,
    write_shar,
)

if TYPE_CHECKING:
    from lhotse.cut import Cut

    from playhead.formats import Example

SHAR = LhotseShar()
MANIFEST = {
    "id": "rec",
    "sources": [{"type": "shar", "channels": [0], "source": ""}],
    "sampling_rate": 16000,
    "num_samples": 1600,
    "duration": 0.1,
    "channel_ids": [0],
}
CUT = {
    "id": "a",
    "start": 0,
    "duration": 0.1,
    "channel": 0,
    "supervisions": [],
    "recording": MANIFEST,
    "type": "MonoCut",
}


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> list[Cut]:
    return rich_cuts(tmp_path_factory.mktemp("rich"))


def read(folder: Path, **options: Any) -> list[Example]:
    leaf = shar_leaf(folder, **options)
    return [example for pair in SHAR.sources(leaf) for example in examples_of(leaf, pair)]


def record(
    name: str = "a.wav",
    data: bytes | None = None,
    manifest: Any = MANIFEST,
    *,
    meta: str | None = None,
    kind: int = tarfile.PAX_FORMAT,
) -> bytes:
    """One record as an archive of its own, without the end mark."""
    stem = name.rpartition(".")[0]
    buffer = io.BytesIO()
    content = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    members = [
        (name, wav_bytes(0.1) if data is None else data),
        (meta or f"{stem}.json", content),
    ]
    with tarfile.open(fileobj=buffer, mode="w|", format=kind) as archive:
        for member, payload in members:
            info = tarfile.TarInfo(member)
            info.size = len(payload)
            archive.addfile(info, io.BytesIO(payload))
    whole = buffer.getvalue()
    end = whole.rindex(content) + len(content) if content else len(whole.rstrip(b"\0"))
    return whole[: -(-end // 512) * 512]


def example(
    *parts: bytes, cut: dict | bytes = CUT, field: str = "recording", lines: tuple[dict, ...] = ()
) -> Example:
    place = Place(leaf="leaf", shard="/s/cuts.0.jsonl", row=3, byte=77)
    row = cut if isinstance(cut, bytes) else json.dumps(cut).encode()
    row = b"\n".join([row, *(json.dumps(line).encode() for line in lines)])
    given = [Part(field, data, f"/s/{field}.0.tar", 512) for data in parts]
    return SHAR.example(shar_leaf(Path("/s")), place, row, given)


def columns(*rows: dict):
    block = "".join(json.dumps(row) + "\n" for row in rows).encode()
    fields = (FieldShard("recording", "/s/recording.0.tar"),)
    pair = SourcePair(manifest="/s/cuts.0.jsonl", fields=fields)
    return SHAR.columns(shar_leaf(Path("/s")), pair, block)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_everything_is_what_lhotse_reads(tmp_path: Path, rich: list[Cut], suffix: str):
    folder = write_shar(tmp_path / "shar", rich, FIELDS, suffix=suffix)
    theirs = read_by_lhotse(in_dir=folder)
    mine = read(folder)
    assert [e.id for e in mine] == [LONG, FOREIGN, *(f"cut-{n}" for n in range(5))]
    fields = set()
    for ours, cut in zip(mine, theirs, strict=True):
        restored = to_cut(ours, None, {})
        assert restored == cut
        assert type(restored) is type(cut)
        expected = loaded(cut)
        for field, array in loaded(restored).items():
            np.testing.assert_array_equal(array, expected.pop(field), err_msg=f"{cut.id} {field}")
            fields.add(field)
        assert not expected
        said = [s.text for s in cut.supervisions]
        assert ours.text == (" ".join(said) if said else None)
        assert ours.custom["number"] == cut.number
        if ours.audio is not None:
            np.testing.assert_array_equal(waveform(ours, None)[0], cut.load_audio())
    assert fields == {"recording", "features", "embedding", "alignment", "target_recording"}
    # Two channels, and no recording: only Lhotse can load these.
    assert [e.id for e in mine if e.audio is None] == ["cut-2", "cut-3"]


def test_zstd_makes_no_difference(tmp_path: Path, rich: list[Cut]):
    gzipped = read(write_shar(tmp_path / "gz", rich, FIELDS))
    for ours, other in zip(
        read(write_shar(tmp_path / "zst", rich, FIELDS, suffix=".zst")), gzipped, strict=True
    ):
        assert ours.cut_data == other.cut_data
        assert ours.in_memory == other.in_memory


@pytest.mark.parametrize("encoding", ["wav", "flac", "mp3", "opus", "original"])
def test_audio_of_every_format_is_what_lhotse_decodes(tmp_path: Path, encoding: str):
    cuts: list[Any] = simple_cuts(tmp_path / "src", ["one", "two", LONG, FOREIGN], seconds=0.71)
    cuts.append(cuts[0].truncate(offset=0.1, duration=0.33).with_id("stretch"))
    folder = write_shar(
        tmp_path / "shar", cuts, {"recording": encoding, "target_recording": encoding}
    )
    for ours, cut in zip(read(folder), read_by_lhotse(in_dir=folder), strict=True):
        assert ours.audio is not None
        expected = cut.load_audio()
        np.testing.assert_array_equal(waveform(ours, None)[0], expected)
        np.testing.assert_array_equal(to_cut(ours, None, {}).load_audio(), expected)


@pytest.mark.parametrize("encoding", ["flac", "opus", "mp3"])
def test_one_channel_of_several(tmp_path: Path, encoding: str):
    stereo = recording(tmp_path, "stereo", 0.4, channels=2).to_cut()
    folder = write_shar(
        tmp_path / "shar", [stereo.with_channels(1), stereo], {"recording": encoding}
    )
    one, both = read(folder)
    theirs = read_by_lhotse(in_dir=folder)
    assert one.audio is not None
    assert both.audio is None
    for ours, cut in zip((one, both), theirs, strict=True):
        np.testing.assert_array_equal(waveform(ours, None)[0], cut.load_audio())
    # Somebody chose a channel after the shard was written.
    data = dict(both.cut_data or {}) | {"type": "MonoCut", "channel": 1}
    raw = records_of(SHAR.sources(shar_leaf(folder))[0].fields[0].path)[1][1]
    chosen = example(raw, cut=data)
    assert chosen.audio is not None
    assert chosen.audio.channel == 1
    np.testing.assert_array_equal(waveform(chosen, None)[0], theirs[1].load_audio()[1:])


def test_the_channel_that_is_chosen(tmp_path: Path):
    stereo: Any = recording(tmp_path, "stereo", 0.4, channels=2).to_cut()
    stereo.supervisions = [
        SupervisionSegment(f"s{n}", "stereo", 0, 0.1, channel=on, text=f"on {n}", language=f"l{n}")
        for n, on in enumerate(([0], [1], [0, 1], 1))
    ]
    stereo.side = 0
    folder = write_shar(tmp_path / "shar", [stereo])
    (cut,) = read_by_lhotse(in_dir=folder)
    for selector, channel in ((1, 1), ("side", 0)):
        (found,) = read(folder, channel_selector=selector)
        assert found.audio is not None
        np.testing.assert_array_equal(
            waveform(found, None)[0], cut.load_audio()[channel : channel + 1]
        )
        assert found.text == ("on 1 on 2 on 3" if channel else "on 0 on 2")
        assert found.language == f"l{channel}"
        restored = to_cut(found, None, {}, selector)
        np.testing.assert_array_equal(restored.load_audio(), waveform(found, None)[0])
        assert found.text == " ".join(s.text or "" for s in restored.supervisions)
    with pytest.raises(AudioError, match="2 channels and channel 2 is wanted"):
        read(folder, channel_selector=2)
    with pytest.raises(ManifestError, match="no field 'which'"):
        read(folder, channel_selector="which")


@pytest.mark.skipif(
    not (find_spec("torchaudio") or find_spec("scipy")), reason="Lhotse resamples with these"
)
def test_resampled_recordings(tmp_path: Path):
    cuts = [cut.resample(8000) for cut in simple_cuts(tmp_path / "src", ["one"])]
    folder = write_shar(tmp_path / "shar", cuts)
    (ours,), (cut,) = read(folder), read_by_lhotse(in_dir=folder)
    np.testing.assert_array_equal(waveform(ours, None)[0], cut.load_audio())


@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("name", ["a", LONG, FOREIGN, "with/folder", "dots.in.it", "./here", "a b"])
def test_names_of_every_dialect(kind: int, name: str):
    if kind == tarfile.USTAR_FORMAT and name == LONG:
        pytest.skip("ustar has no place for it")
    found = example(record(f"{name}.wav", kind=kind), cut=CUT | {"id": name})
    assert found.audio is not None
    assert found.audio.source == wav_bytes(0.1)


def test_archives_that_were_made_again_from_a_folder():
    assert example(record("./a.wav")).id == "a"
    assert example(record("a.wav"), cut=CUT | {"id": "./a"}).id == "./a"


def test_a_folder_among_the_members_is_passed_over():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("folder")
        info.type = tarfile.DIRTYPE
        archive.addfile(info)
    assert parse_record(buffer.getvalue()[:512] + record(), "here") == parse_record(record(), "")


def test_what_is_not_there_leaves_the_cut_as_it_is():
    absent = record("a.nodata", b"", b"", meta="a.nometa")
    found = example(absent)
    assert found.cut_data == CUT
    assert found.audio is None
    assert found.in_memory == {}
    custom = CUT | {"custom": {"score": 1}}
    assert example(cut=custom, lines=({"cut_id": "a"},)).custom == {"score": 1}
    assert example(cut=custom, lines=({"cut_id": "a", "score": None},)).custom == {}


def test_scalars_replace_and_join_custom_fields():
    lines = ({"cut_id": "a", "score": 0.5}, {"cut_id": "a", "words": ["x"]}, {"cut_id": "a"})
    found = example(record(), cut=CUT | {"custom": {"score": 1, "kept": 2}}, lines=lines)
    assert found.custom == {"score": 0.5, "kept": 2, "words": ["x"]}
    assert found.audio is not None


def test_mixed_cuts_give_their_fields_to_the_first_that_sounds(tmp_path: Path):
    first, second = (cut.to_dict() for cut in simple_cuts(tmp_path / "src", ["x", "y"]))
    silence = {"type": "PaddingCut", "id": "p", "duration": 0.2, "sampling_rate": 16000}
    silence |= {"feat_value": 0.0, "num_samples": 3200}
    tracks = [
        {"cut": silence, "type": "PaddingCut", "offset": 0.0},
        {"cut": first, "type": "MonoCut", "offset": 0.2},
        {"cut": second, "type": "MonoCut", "offset": 0.3},
    ]
    mixed = {"id": "a", "type": "MixedCut", "tracks": tracks}
    found = example(record(), cut=mixed, field="target_recording")
    cut: Any = to_cut(found, None, {})
    assert [track.cut.custom for track in cut.tracks[1:]] == [
        {"number": 0, "target_recording": cut.tracks[1].cut.target_recording},
        {"number": 1},
    ]
    assert cut.tracks[1].cut.target_recording.load_audio().shape == (1, 1600)


def test_columns():
    features = {"type": "fbank", "num_frames": 10, "num_features": 4, "frame_shift": 0.01}
    features |= {"sampling_rate": 8000, "start": 0, "duration": 0.1, "storage_type": "shar"}
    features |= {"storage_path": "", "storage_key": "", "channels": 0, "recording_id": "r"}
    bare = {key: value for key, value in CUT.items() if key != "recording"}
    found = columns(
        CUT | {"custom": {"validation_status": "pass"}},
        CUT | {"id": "b", "custom": {"_skipme": "noise"}},
        CUT | {"id": "c", "type": "MultiCut", "channel": [0, 1], "duration": 0.25},
        bare | {"id": "d", "features": features},
        bare | {"id": "e", "custom": {"validation_status": 3}},
    )
    assert found.num_rows == 5
    assert found.kept.tolist() == [0, 2, 3, 4]
    assert found.ids == ["a", "b", "c", "d", "e"]
    assert found.duration_us.tolist() == [100_000, 250_000, 100_000, 100_000]
    assert found.rate.tolist() == [16000, 16000, 8000, 0]
    assert found.num_samples.tolist() == [1600, 4000, 800, 0]
    assert found.channels.tolist() == [1, 2, 1, 1]
    assert found.status == ["pass", None, None, "3"]
    assert found.dropped == {"_skipme": 1}
    assert columns(CUT).status is None


@pytest.mark.parametrize("wrong", [{"duration": None}, {"id": None}, {"type": "Song"}])
def test_rows_that_are_no_cuts(wrong: dict):
    with pytest.raises(BadRowError):
        columns(CUT | wrong)


class TestSources:
    def touch(self, folder: Path, *names: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).touch()
        return folder

    def test_fields_are_names_up_to_the_first_dot(self, tmp_path: Path):
        shards = ("000001", "000000", "000010")
        names = [f"{field}.{shard}" for shard in shards for field in ("cuts", "recording", "score")]
        suffixes = {"cuts": ".jsonl.gz", "recording": ".tar", "score": ".jsonl"}
        names = [name + suffixes[name.partition(".")[0]] for name in names]
        noise = ("recording.000000.tar.idx", "cuts.000000.jsonl.idx", ".hidden.tar", "README.md")
        folder = self.touch(tmp_path, *names, *noise, "recording.000001.tar.idx.tmp.1")
        (folder / "old.tar").mkdir()
        pairs = SHAR.sources(shar_leaf(folder))
        assert [Path(pair.manifest).name for pair in pairs] == [
            f"cuts.{shard}.jsonl.gz" for shard in sorted(shards)
        ]
        for pair, shard in zip(pairs, sorted(shards), strict=True):
            assert [(f.field, Path(f.path).name) for f in pair.fields] == [
                ("recording", f"recording.{shard}.tar"),
                ("score", f"score.{shard}.jsonl"),
            ]

    def test_folders_follow_each_other(self, tmp_path: Path):
        two = self.touch(tmp_path / "2", "cuts.jsonl", "recording.tar")
        one = self.touch(tmp_path / "1", "cuts.jsonl.zst")
        pairs = SHAR.sources(shar_leaf(two, one))
        assert [pair.manifest for pair in pairs] == [
            f"{two}/cuts.jsonl",
            f"{one}/cuts.jsonl.zst",
        ]
        assert [len(pair.fields) for pair in pairs] == [1, 0]

    def test_fields_that_are_named(self, tmp_path: Path):
        fields = {
            "recording": [tmp_path / "b.tar", tmp_path / "a.tar"],
            "cuts": [tmp_path / "y.jsonl", tmp_path / "x.jsonl.bz2"],
            "shar": [tmp_path / "z.jsonl", tmp_path / "z.jsonl.xz"],
        }
        pairs = SHAR.sources(shar_leaf(fields=fields))
        assert [pair.files for pair in pairs] == [
            tuple(str(fields[field][place]) for field in ("cuts", "recording", "shar"))
            for place in (0, 1)
        ]

    @pytest.mark.parametrize(
        ("names", "said"),
        [
            ((), "holds no cuts: it is empty"),
            (("recording.0.tar",), "holds no cuts: its files are recording.0.tar"),
            (("cuts.0.jsonl", "recording.0.tar", "recording.1.tar"), "'recording' has 2.*cuts.*1"),
            (
                ("cuts.0.jsonl", "cuts.0.jsonl.gz", "recording.0.tar"),
                "'recording' has 1 .* cuts has 2: .*cuts.0.jsonl is there compressed, too",
            ),
            (("cuts.0.tar",), "not an archive"),
            (("cuts.0.jsonl", "recording.0.tar.zip"), "A shard is a .tar"),
            (("cuts.0.jsonl", "duration.0.jsonl"), "cannot be called 'duration'"),
            (("cuts.0.jsonl", "id.0.tar"), "cannot be called 'id'"),
        ],
    )
    def test_folders_that_do_not_fit(self, tmp_path: Path, names: tuple[str, ...], said: str):
        folder = self.touch(tmp_path / "shar", *names)
        with pytest.raises(ConfigError, match=said) as caught:
            SHAR.sources(shar_leaf(folder))
        assert str(folder) in str(caught.value)

    def test_folders_on_a_store(self):
        names = (
            "cuts.0.jsonl.gz",
            "recording.0.tar.gz",
            "recording.0.tar.gz.idx",
            "x/cuts.0.jsonl",
        )
        store = MemoryStore({f"s3://bucket/shar/{name}": b"" for name in names})
        with plugged_in(store):
            (pair,) = SHAR.sources(shar_leaf(fields={"shar": ["s3://bucket/shar"]}))
            with pytest.raises(ConfigError, match=r"holds no cuts: it is empty.*s3://bucket/none"):
                SHAR.sources(shar_leaf(fields={"shar": ["s3://bucket/none/"]}))
        assert pair.manifest == "s3://bucket/shar/cuts.0.jsonl.gz"
        assert [shard.path for shard in pair.fields] == ["s3://bucket/shar/recording.0.tar.gz"]

    def test_folders_that_are_none(self, tmp_path: Path):
        with pytest.raises(SourceNotFoundError, match="folder does not exist"):
            SHAR.sources(shar_leaf(tmp_path / "none"))
        (tmp_path / "file").touch()
        with pytest.raises(ConfigError, match="Not a directory"):
            SHAR.sources(shar_leaf(tmp_path / "file"))
        with pytest.raises(ConfigError, match="null"):
            SHAR.sources(shar_leaf(fields={"shar": ["a\0b"]}))

    def test_named_fields_that_do_not_fit(self, tmp_path: Path):
        with pytest.raises(ConfigError, match=r"'recording' has 2 .* cuts has 1"):
            SHAR.sources(shar_leaf(fields={"cuts": ["a.jsonl"], "recording": ["a.tar", "b.tar"]}))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (record("b.wav"), "The cut is 'a' and .* is 'b'"),
        (record("a/a.wav"), "The cut is 'a' and .* is 'a/a'"),
        (record(meta="b.json"), "'a.wav' and 'b.json' .* not one record"),
        (record(meta="a.txt"), "not one record"),
        (record("a.nodata", b""), "has no data for it"),
        (record()[: 512 + 100], "cannot be read"),
        (b"", "cannot be read"),
        (record() + record(), "4 members and not two"),
        (bytes(1024), "cannot be read"),
        (record(manifest=b"{"), "not valid JSON"),
        (record(manifest=b""), "not valid JSON"),
        (record(manifest=[1]), "not a JSON object"),
        (record(manifest={"id": "a"}), "describes no recording, features or array"),
        (record(manifest=MANIFEST | {"sources": []}), "describes no recording"),
        (record(manifest=MANIFEST | {"sources": [1]}), "describes no recording"),
        (record(manifest={"shape": [1]}), "encoded as 'wav'"),
        (record("a.npy", manifest={"array": 7}), "encoded as 'npy'"),
        (record("a.npy", manifest={"num_features": 7}), "a cut has one of"),
        (record(manifest={"sources": [{"type": "shar"}]}), "The cut cannot be read: KeyError"),
    ],
)
def test_records_that_cannot_be_used(data: bytes, said: str):
    field = "array" if "one of" in said else "recording"
    with pytest.raises((ManifestError, ArchiveError), match=said) as caught:
        example(data, field=field)
    assert "leaf leaf, /s/cuts.0.jsonl, byte 77, row 3" in str(caught.value)
    if "KeyError" not in said:
        assert f"field {field}, /s/{field}.0.tar, byte 512" in str(caught.value)


@pytest.mark.parametrize("line", [{"cut_id": "b", "score": 1}, {"score": 1}, {"cut_id": 3}])
def test_lines_of_other_cuts(line: dict):
    with pytest.raises(ManifestError, match="record that should be its own"):
        example(lines=(line,))
    place = Place(leaf="leaf", shard="/s/cuts.0.jsonl", row=3, byte=77)
    part = Part("score", json.dumps(line).encode(), "/s/score.0.jsonl", 9)
    with pytest.raises(ManifestError, match=r"field score, /s/score\.0\.jsonl, byte 9"):
        SHAR.example(shar_leaf(Path("/s")), place, json.dumps(CUT).encode(), [part])


def test_markers_alone_are_replaced():
    data = {
        "id": "m",
        "text": "m",
        "recording": {"sources": [{"type": "memory", "source": "m"}], "id": "m"},
        "custom": {"a": {"storage_type": "memory_npy", "storage_key": "n", "storage_path": "n"}},
        "tracks": [{"cut": {"features": {"storage_type": "memory_lilcom", "storage_key": "o"}}}],
        "other": {"type": "memory", "source": "p"},
    }
    filled = fill_memory(data, {"m": b"1", "n": b"2", "o": b"3"})
    assert filled["recording"] == {"sources": [{"type": "memory", "source": b"1"}], "id": "m"}
    assert filled["custom"]["a"] == {
        "storage_type": "memory_npy",
        "storage_key": b"2",
        "storage_path": "n",
    }
    assert filled["tracks"][0]["cut"]["features"]["storage_key"] == b"3"
    assert (filled["id"], filled["text"], filled["other"]["source"]) == ("m", "m", "p")


NAMES = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=150
).filter(lambda name: not name.endswith("/"))


@settings(deadline=None, max_examples=60)
@given(
    name=NAMES,
    data=st.binary(max_size=2000),
    kind=st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_any_name_and_data_come_back(name: str, data: bytes, kind: int):
    found = parse_record(record(f"{name}.flac", data, kind=kind), "here")
    assert found is not None
    assert (found.id, found.suffix, found.data) == (name, "flac", data)
    assert json.loads(found.manifest) == MANIFEST


RECORDS = st.sampled_from(
    [
        record(f"{name}.wav", bytes(range(256)) * 3, kind=kind)
        for name in ("a", LONG, FOREIGN)
        for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    ]
)


@settings(deadline=None, max_examples=100)
@given(whole=RECORDS, data=st.data())
def test_a_record_that_is_cut_short_is_an_error_or_has_lost_padding(
    whole: bytes, data: st.DataObject
):
    size = data.draw(st.integers(0, len(whole) - 1))
    try:
        found = parse_record(whole[:size], "here")
    except ArchiveError:
        return
    assert found == parse_record(whole, "here")
    assert not whole[size:].strip(b"\0")


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(whole=RECORDS, data=st.data())
def test_a_flipped_bit_of_a_header_is_noticed(whole: bytes, data: st.DataObject):
    expected = parse_record(whole, "here")
    assert expected is not None
    at = data.draw(st.integers(0, 8 * len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at // 8] ^= 1 << at % 8
    try:
        found = parse_record(bytes(damaged), "here")
    except ArchiveError:
        return
    # Payloads have no checksum, nor do the long names, which are compared with the cut's id.
    if found is not None and found.id == expected.id and found.suffix == expected.suffix:
        differ = (found.data != expected.data) + (found.manifest != expected.manifest)
        begin = whole.index(expected.data), whole.index(expected.manifest)
        inside = any(
            first <= at // 8 < first + len(payload)
            for first, payload in zip(begin, (expected.data, expected.manifest), strict=True)
        )
        assert differ == inside
