from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from playhead.errors import ManifestError
from playhead.formats import BadRowError, Nemo, Part, Place, SourcePair
from playhead.formats.nemo import member_name
from support.corpus import wav_bytes
from support.leaves import make_leaf

PLAIN = SourcePair(manifest="/data/m.json")
TARRED = SourcePair(manifest="/data/m.json", tars=("/data/a.tar",))
ROUTED = SourcePair(manifest="/data/m.json", tars=("/d/a_7.tar", "/d/a_3.tar"), numbers=(7, 3))


def leaf(**options: Any):
    return make_leaf("nemo", manifest=[Path("/data/m.json")], **options)


def lines(*rows: dict) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def columns(*rows: dict, pair: SourcePair = PLAIN, **options: Any):
    return Nemo().columns(leaf(**options), pair, lines(*rows))


def example(row: dict, audio: bytes | None = None, shard: str = "/data/m.json", **options: Any):
    place = Place(leaf="leaf", shard=shard, row=0, byte=0)
    parts = [] if audio is None else [Part("audio", audio, "/data/a.tar", 512)]
    return Nemo().example(leaf(**options), place, json.dumps(row).encode(), parts)


def row(**fields: Any) -> dict:
    return {"audio_filepath": "/a.wav", "duration": 1.5, **fields}


def test_lengths_and_rates():
    got = columns(
        row(sampling_rate=8000),
        row(sample_rate=16000.0, duration=2),
        row(sampling_rate=8000, sample_rate=16000),
        row(sampling_rate=None),
    )
    assert got.num_rows == 4
    assert got.duration_us.tolist() == [1_500_000, 2_000_000, 1_500_000, 1_500_000]
    assert got.rate.tolist() == [8000, 16000, 8000, 0]
    assert got.num_samples.tolist() == [12000, 32000, 12000, 0]
    assert got.channels.tolist() == [0] * 4
    assert got.tar.tolist() == [-1] * 4
    assert got.members is None
    assert columns(row(), input_sampling_rate=8000).num_samples.tolist() == [12000]
    assert columns(row(), channel_selector=0).channels.tolist() == [1]


def test_skipped_rows_are_counted_and_the_others_keep_their_place():
    got = columns(
        row(_skipme="too loud"),
        row(duration=2, _skipme=""),
        row(_skipme=1, duration=None),
        row(duration=3, custom={"_skipme": False}),
        row(custom={"_skipme": True}),
    )
    assert got.kept.tolist() == [1, 3]
    assert got.duration_us.tolist() == [2_000_000, 3_000_000]
    assert got.dropped == {"_skipme": 3}
    assert got.num_rows == 5


def test_all_rows_may_be_skipped():
    got = columns(row(_skipme=1))
    assert got.kept.tolist() == []
    assert got.duration_us.tolist() == []


def test_rows_without_a_duration_are_to_be_measured(tmp_path: Path):
    (tmp_path / "a.wav").touch()
    pair = SourcePair(manifest=str(tmp_path / "m.json"))
    block = lines(
        {"audio_filepath": "a.wav", "_skipme": 1},
        row(),
        {"audio_filepath": "a.wav", "offset": 0.5},
        {"audio_filepath": "/b.wav", "duration": None},
    )
    got = Nemo().columns(leaf(), pair, block)
    assert [(u.index, u.path, u.start) for u in got.unmeasured] == [
        (1, str(tmp_path / "a.wav"), 0.5),
        (2, "/b.wav", 0.0),
    ]
    assert got.duration_us.tolist() == [1_500_000, 0, 0]


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("a/talk-sub1.wav", "a/talk.wav"),
        ("talk-sub10.flac", "talk.flac"),
        ("talk-sub2", "talk"),
        ("talk-sub1-sub2.wav", "talk-sub1.wav"),
        ("talk-sub.wav", "talk-sub.wav"),
        ("talk-subx1.wav", "talk-subx1.wav"),
        ("-sub1.wav", "-sub1.wav"),
        ("talk-sub1.tar.wav", "talk-sub1.tar.wav"),
        ("talk.wav", "talk.wav"),
        ("talk-sub3.v2/x.wav", "talk-sub3.v2/x.wav"),
    ],
)
def test_members_of_sub_segments(name: str, member: str):
    assert member_name(name) == member


def test_tarred_rows_name_members():
    got = columns(row(audio_filepath="t-sub1.wav"), row(audio_filepath="u.wav"), pair=TARRED)
    assert got.members == ["t.wav", "u.wav"]
    assert got.tar.tolist() == [0, 0]


def test_the_member_of_a_row_that_only_python_reads():
    """What the index accepts, a batch does too."""
    for row_ in (b'{"audio_filepath": "t-sub1.wav", "score": NaN}', b'{"audio_filepath": "t.wav"}'):
        assert Nemo().member(row_) == "t.wav"


def test_shard_id_chooses_the_tar():
    got = columns(row(shard_id=3), row(shard_id=7), row(_skipme=1, shard_id=99), pair=ROUTED)
    assert got.tar.tolist() == [1, 0]
    # It is looked at only where it is needed.
    assert columns(row(shard_id="x"), pair=TARRED).tar.tolist() == [0]


@pytest.mark.parametrize(
    ("bad", "pair", "says"),
    [
        ({"duration": 1.0}, PLAIN, "no audio_filepath"),
        (row(audio_filepath=None), PLAIN, "no audio_filepath"),
        (row(audio_filepath=""), PLAIN, "no audio_filepath"),
        (row(audio_filepath=5), PLAIN, "'audio_filepath' has the wrong type"),
        (row(duration="1.5"), PLAIN, "'duration' has the wrong type"),
        (row(duration=-1), PLAIN, "duration is -1.0 seconds"),
        (row(duration=float("nan")), PLAIN, "duration is nan seconds"),
        (row(offset=-0.5), PLAIN, "offset is -0.5 seconds"),
        (row(offset=float("nan")), PLAIN, "offset is nan seconds"),
        (row(offset=float("inf")), PLAIN, "offset is inf seconds"),
        (row(offset=float("nan")), TARRED, "offset is nan seconds"),
        (row(offset=2e8), PLAIN, "offset is 200000000.0 seconds"),
        (row(duration=float("inf")), PLAIN, "duration is inf seconds"),
        (row(sampling_rate=float("nan")), PLAIN, "sampling rate is nan"),
        (row(sampling_rate=float("inf")), PLAIN, "sampling rate is inf"),
        (row(sampling_rate=16000.5), PLAIN, "sampling rate is 16000.5"),
        (row(sampling_rate=-8000), PLAIN, "sampling rate is -8000"),
        (row(duration=None), TARRED, "no duration"),
        (row(), ROUTED, "no shard_id"),
        (row(shard_id=4), ROUTED, "(?i)no tar has number 4"),
        (row(shard_id="7"), ROUTED, "'shard_id' has the wrong type"),
    ],
)
def test_bad_rows_are_refused(bad: dict, pair: SourcePair, says: str):
    good = row(shard_id=7)
    with pytest.raises(BadRowError, match=says):
        columns(good, bad, good, pair=pair)
    assert columns(good, good, pair=pair).num_rows == 2


def test_a_plain_row_becomes_a_sample():
    got = example(
        row(text="hi", lang="en", sampling_rate=8000, id="x", speaker="s", _skipme=""),
        tags={"speaker": "t", "mode": "asr"},
    )
    assert (got.id, got.text, got.language) == ("/a.wav", "hi", "en")
    assert got.custom == {
        "text": "hi",
        "lang": "en",
        "sampling_rate": 8000,
        "id": "x",
        "speaker": "t",
        "mode": "asr",
    }
    audio = got.audio
    assert audio is not None
    assert (audio.source, audio.start, audio.duration) == ("/a.wav", 0.0, 1.5)
    assert (audio.channel, audio.sampling_rate) == (None, 8000)
    assert got.cut_data is None


def test_other_fields_may_hold_text_and_language():
    got = example(row(answer="hi", target_lang="de"), text_field="answer", lang_field="target_lang")
    assert (got.text, got.language) == ("hi", "de")
    empty = example(row(text=None))
    assert (empty.text, empty.language) == (None, None)
    assert example(row(text=12)).text == "12"


def test_numbers_are_texts():
    got = example(row(text=5, lang=2.5))
    assert (got.text, got.language) == ("5", "2.5")
    assert example(row(text=10**400)).text == "1" + 400 * "0"
    assert example(row(text="")).text == ""


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), {"a": 1}, ["x"], [], True, False, {"a": 900 * [1]}]
)
@pytest.mark.parametrize("field", ["text", "lang"])
def test_what_is_no_text_is_refused_with_its_place(field: str, bad: object):
    says = rf"(?s)field '{field}' is .*not a text \(leaf leaf, /data/m.json, byte 0, row 0"
    with pytest.raises(ManifestError, match=says):
        example(row(**{field: bad}))


def test_ids_of_stretches():
    assert example(row(offset=0)).id == "/a.wav-000000-000150"
    assert example(row(offset=12.345, duration=0.126)).id == "/a.wav-001234-000013"
    assert example({"audio_filepath": "/a.wav", "offset": 2}).id == "/a.wav-000200"
    one, two = (example(row(audio_filepath=f"t-sub{n}.wav", offset=n)).id for n in (1, 2))
    assert one != two
    assert example(row(audio_filepath="rel/a.wav")).id == "rel/a.wav"


def test_offsets_are_honoured_in_files_and_tars():
    for audio in (None, wav_bytes(2.0)):
        got = example(row(offset=0.1, duration=1.9), audio).audio
        assert got is not None
        assert (got.start, got.duration) == (0.1, 1.9)
        assert got.source == ("/a.wav" if audio is None else audio)


def test_relative_audio_lies_beside_the_manifest(tmp_path: Path):
    (tmp_path / "a.wav").touch()
    got = example(row(audio_filepath="a.wav"), shard=str(tmp_path / "m.json"))
    assert got.audio is not None
    assert got.audio.source == str(tmp_path / "a.wav")
    assert got.id == "a.wav"


def test_channels():
    def channel(data: dict, **options: Any):
        audio = example(data, **options).audio
        assert audio is not None
        return audio.channel

    assert channel(row()) is None
    assert channel(row(), channel_selector=1) == 1
    assert channel(row(channel_selector=1)) == 1
    assert channel(row(side=0), channel_selector="side") == 0
    assert channel(row(channel_selector=1), channel_selector=0) == 0
    with pytest.raises(ManifestError, match="no field 'side'"):
        channel(row(), channel_selector="side")
    with pytest.raises(ManifestError, match="The channel is 'left'"):
        channel(row(side="left"), channel_selector="side")
    with pytest.raises(ManifestError, match="The channel is True"):
        channel(row(channel_selector=True))


def test_a_row_that_is_not_one_any_more_is_named():
    with pytest.raises(
        ManifestError, match=r"no audio_filepath \(leaf leaf, /data/m.json, byte 0, row 0"
    ):
        example({"duration": 1})
