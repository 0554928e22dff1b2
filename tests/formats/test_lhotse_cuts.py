from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from lhotse import CutSet, Recording, SupervisionSegment
from lhotse.array import Array
from lhotse.cut import Cut, MixedCut
from lhotse.serialization import deserialize_item

from playhead.errors import ManifestError
from playhead.formats import BadRowError, Example, LhotseCuts, Place, SourcePair
from support.corpus import tone
from support.leaves import make_leaf, open_one, read_examples

RATE = 8000


def recording(folder: Path, name: str, seconds: float, channels: int = 1) -> Recording:
    path = folder / f"{name}.wav"
    sf.write(path, tone(seconds, RATE, channels, seed=len(name)), RATE)
    return Recording.from_file(path)


def a_cut(folder: Path, name: str, seconds: float = 1.0, channels: int = 1) -> Cut:
    cut = recording(folder, name, seconds, channels).to_cut()
    cut.supervisions = [
        SupervisionSegment("s1", name, 0.0, 0.5, text="one", language="en"),
        SupervisionSegment("s2", name, 0.5, 0.5, text="two", language="de"),
    ]
    return cut


@pytest.fixture
def cuts(tmp_path: Path) -> list[Cut]:
    mono, other = a_cut(tmp_path, "mono", 1.23), a_cut(tmp_path, "other", 0.7)
    stereo = a_cut(tmp_path, "stereo", 0.9, channels=2)
    return [
        mono,
        stereo,
        mono.truncate(offset=0.25, duration=0.5).with_id("stretch"),
        mono.perturb_speed(1.1).with_id("fast"),
        other.resample(16000).with_id("resampled"),
        mono.mix(other, offset_other_by=0.9, snr=10).with_id("mix"),
        mono.pad(duration=2.0).with_id("padded"),
        mono.append(other).with_id("joined"),
    ]


def example(data: dict, shard: str = "/data/c.jsonl", **options) -> Example:
    leaf = make_leaf("lhotse", cuts=[Path(shard)], **options)
    place = Place(leaf="leaf", shard=shard, row=0, byte=0)
    return LhotseCuts().example(leaf, place, json.dumps(data).encode(), [])


def columns(*rows: dict):
    leaf = make_leaf("lhotse", cuts=[Path("/c.jsonl")])
    block = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return LhotseCuts().columns(leaf, SourcePair(manifest="/c.jsonl"), block)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_what_is_read_is_what_lhotse_reads(tmp_path: Path, cuts: list[Cut], suffix: str):
    path = tmp_path / f"cuts{suffix}"
    CutSet.from_cuts(cuts).to_file(path)
    leaf = make_leaf("lhotse", cuts=[path])
    pack = open_one(leaf, tmp_path / "packs")
    theirs = list(CutSet.from_file(path))
    mine = read_examples(leaf, pack)
    assert [e.id for e in mine] == [c.id for c in theirs]
    assert pack.duration_us.tolist() == [round(c.duration * 1e6) for c in theirs]
    assert pack.num_samples.tolist() == [c.num_samples for c in theirs]
    assert pack.rate.tolist() == [c.sampling_rate for c in theirs]
    assert pack.channels.tolist() == [c.num_channels for c in theirs]
    for ours, cut in zip(mine, theirs, strict=True):
        assert ours.text == " ".join(s.text for s in cut.supervisions)
        assert ours.language == "en"
        assert ours.cut_data is not None
        restored = deserialize_item(dict(ours.cut_data))
        assert restored == cut
        # Speed and rate changes need packages that are not always there.
        if cut.id not in ("fast", "resampled"):
            np.testing.assert_array_equal(restored.load_audio(), cut.load_audio())


def test_only_a_plain_stretch_of_one_file_gives_audio(tmp_path: Path, cuts: list[Cut]):
    audio = {cut.id: example(cut.to_dict()).audio for cut in cuts}
    assert [key for key, value in audio.items() if value is not None] == ["mono", "stretch"]
    stretch = audio["stretch"]
    assert stretch is not None
    assert (stretch.start, stretch.duration, stretch.sampling_rate) == (0.25, 0.5, RATE)
    assert stretch.source == str(tmp_path / "mono.wav")
    assert stretch.channel is None


def test_one_channel_of_a_file(tmp_path: Path):
    cut = recording(tmp_path, "two", 0.5, channels=2).to_cut().to_dict()
    cut |= {"type": "MonoCut", "channel": 1}
    got = example(cut).audio
    assert got is not None
    assert got.channel == 1
    loaded = deserialize_item(dict(cut)).load_audio()
    samples, _ = sf.read(got.source, dtype="float32", always_2d=True)
    np.testing.assert_array_equal(samples[:, got.channel], loaded[0])


def test_opus_is_left_to_lhotse(tmp_path: Path):
    cut = a_cut(tmp_path, "mono").to_dict()
    for source in ("/a.opus", "s3://bucket/a.opus"):
        cut["recording"]["sources"][0]["source"] = source
        got = example(cut)
        assert got.audio is None
        assert got.cut_data is not None
        assert got.cut_data["recording"]["sources"][0]["source"] == source


@pytest.mark.parametrize("kind", ["file", "url"])
def test_a_recording_may_be_a_url(tmp_path: Path, kind: str):
    cut = a_cut(tmp_path, "mono").to_dict()
    cut["recording"]["sources"][0] |= {"type": kind, "source": "s3://bucket/a.wav"}
    got = example(cut).audio
    assert got is not None
    assert got.source == "s3://bucket/a.wav"


def test_relative_paths_are_found_everywhere(tmp_path: Path):
    cut = a_cut(tmp_path, "mono")
    cut.target = recording(tmp_path, "target", 1.0)
    (tmp_path / "vectors").mkdir()
    cut.vector = Array("numpy_files", "vectors", "v.npy", [3])
    mixed = cut.mix(a_cut(tmp_path, "other"), offset_other_by=0.5)
    assert isinstance(mixed, MixedCut)
    text = json.dumps(mixed.to_dict()).replace(f"{tmp_path}/", "")
    assert str(tmp_path) not in text
    data = json.loads(text)
    data["tracks"][0]["cut"]["custom"]["gone"] = {
        "type": "file",
        "source": "nowhere.wav",
    }
    got = example(data, shard=str(tmp_path / "c.jsonl")).cut_data
    assert got is not None
    first, second = (track["cut"] for track in got["tracks"])
    assert first["recording"]["sources"][0]["source"] == str(tmp_path / "mono.wav")
    assert second["recording"]["sources"][0]["source"] == str(tmp_path / "other.wav")
    assert first["custom"]["target"]["sources"][0]["source"] == str(tmp_path / "target.wav")
    assert first["custom"]["vector"]["storage_path"] == str(tmp_path / "vectors")
    assert first["custom"]["gone"]["source"] == "nowhere.wav"


def test_custom_fields_and_tags(tmp_path: Path):
    cut = a_cut(tmp_path, "mono")
    cut.speaker, cut.mood = "s", "glad"
    tags = {"mood": "sad"}
    assert example(cut.to_dict(), tags=tags).custom == {"speaker": "s", "mood": "sad"}
    padded = cut.pad(duration=3.0, direction="left")
    assert example(padded.to_dict()).custom == {"speaker": "s", "mood": "glad"}


def test_text_may_be_missing(tmp_path: Path):
    cut = a_cut(tmp_path, "mono").to_dict()
    del cut["supervisions"]
    got = example(cut)
    assert (got.text, got.language) == (None, None)


def test_skipped_and_feature_only_cuts(tmp_path: Path):
    cut = a_cut(tmp_path, "mono").to_dict()
    features = {k: v for k, v in cut.items() if k != "recording"}
    features["features"] = {"sampling_rate": RATE, "num_frames": 3}
    got = columns(cut | {"custom": {"_skipme": 1}}, cut, cut | {"_skipme": "x"}, features)
    assert got.kept.tolist() == [1, 3]
    assert got.dropped == {"_skipme": 2}
    assert got.rate.tolist() == [RATE, RATE]


def test_mute_tracks_do_not_count(tmp_path: Path):
    mixed = a_cut(tmp_path, "mono").mix(a_cut(tmp_path, "other", 3.0)).to_dict()
    mixed["tracks"][1]["mute"] = True
    assert (
        columns(mixed).duration_us.tolist()
        == [round(deserialize_item(json.loads(json.dumps(mixed))).duration * 1e6)]
        == [1_000_000]
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"type": None}, "not a cut"),
        ({"id": None}, "not a cut"),
        ({"type": "Recording"}, "is a Recording, not a cut"),
        ({"duration": None}, "no duration"),
        ({"duration": -1.0}, "duration is -1.0"),
        ({"duration": float("nan")}, "duration is nan"),
        ({"start": float("nan")}, "start is nan seconds"),
        ({"start": float("inf")}, "start is inf seconds"),
        (
            {
                "type": "MixedCut",
                "tracks": [
                    {"type": "PaddingCut", "offset": 0.0, "cut": {"id": "a", "duration": 1.0}},
                    {
                        "type": "PaddingCut",
                        "offset": float("nan"),
                        "cut": {"id": "b", "duration": 1.0},
                    },
                ],
            },
            "offset of a track is nan seconds",
        ),
        ({"recording": None}, "neither a recording nor features"),
        ({"type": "MixedCut"}, "no tracks"),
        ({"type": "PaddingCut", "sampling_rate": RATE}, "PaddingCut outside of a MixedCut"),
        (
            {"recording": {"sampling_rate": RATE, "sources": [{"type": "shar"}]}},
            "Lhotse Shar",
        ),
        ({"duration": "1"}, "'duration' has the wrong type"),
    ],
)
def test_bad_cuts_are_refused(tmp_path: Path, change: dict, says: str):
    cut = a_cut(tmp_path, "mono").to_dict()
    with pytest.raises(BadRowError, match=says):
        columns(cut, cut | change)


def test_a_row_that_is_no_cut_any_more_is_named():
    with pytest.raises(ManifestError, match=r"not a cut .*row 0"):
        example({"a": 1})


def test_a_cut_that_is_damaged_since_is_named(tmp_path: Path):
    cut = a_cut(tmp_path, "mono").to_dict()
    del cut["recording"]["sources"]
    with pytest.raises(ManifestError, match=r"cannot be read: KeyError: 'sources' .*row 0"):
        example(cut)


def test_arrays_in_memory_have_no_path(tmp_path: Path):
    cut = a_cut(tmp_path, "mono").to_dict()
    arrays = [
        {"storage_type": "memory_raw", "storage_path": "abc"},
        {"storage_type": "shar", "storage_path": ""},
    ]
    cut["custom"] = {"arrays": arrays}
    got = example(cut, shard=str(tmp_path / "c.jsonl"))
    assert got.custom["arrays"] == arrays


def test_every_manifest_is_a_source():
    leaf = make_leaf("lhotse", cuts=[Path("/a.jsonl"), Path("/b.jsonl")])
    assert [p.manifest for p in LhotseCuts().sources(leaf)] == ["/a.jsonl", "/b.jsonl"]
