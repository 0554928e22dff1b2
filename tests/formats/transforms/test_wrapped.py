from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import soundfile as sf

from playhead.blend.leaf import Transform
from playhead.blend.transforms import TRANSFORMS
from playhead.errors import ManifestError, NotSupportedError
from playhead.formats import LhotseCuts, Nemo, Place, TableFormat, format_of, get_format
from playhead.formats.transforms import transform_names, transformed
from support.corpus import tone, wav_bytes, write_jsonl, write_tar
from support.fetching import leaf_of
from support.parquet import parquet_leaf, speech_columns, write_table
from support.transforming import (
    cut,
    cut_of,
    index,
    index_good_rows,
    read,
    recording,
    said,
    turns,
    with_transforms,
    written,
)

DUPLEX = ("nemo_tarred_to_duplex", {"agent_silence_duration": 0.5})
SPEECH = "s2s_as_conversation"


def test_all_transforms_are_there():
    assert {name: TRANSFORMS[name].kind for name in transform_names()} == {
        "lhotse_as_conversation": "conversation",
        "lhotse_magpietts_data_as_continuation": "cut",
        "nemo_tarred_to_duplex": "cut",
        "s2s_as_conversation": "conversation",
        "s2s_duplex_overlap_as_s2s_duplex": "cut",
        "s2s_duplex_reverse_role": "cut",
        "sqa_as_conversation": "conversation",
    }
    with pytest.raises(NotSupportedError, match="no transform 'other'"):
        transformed(Nemo(), [Transform("other", {})])


def test_a_reader_stays_what_it_is():
    lines = transformed(Nemo(), [Transform("lhotse_as_conversation", {})])
    assert not isinstance(lines, TableFormat)
    assert lines.lines_are_json
    assert not lines.rows_are_members
    assert lines.member is not None
    assert lines.member(b'{"audio_filepath": "a-sub1.wav"}') == "a.wav"
    assert transformed(LhotseCuts(), []).member is None
    table = transformed(get_format("parquet"), [Transform("lhotse_as_conversation", {})])
    assert isinstance(table, TableFormat)


def speakers(tmp_path, *names):
    source = recording(tmp_path, "r", 1.0)
    return [
        cut(f"c{n}", source, [said(f"s{n}", source, 0, 0.5, "x", name)])
        for n, name in enumerate(names)
    ]


def test_a_bad_row_is_named_by_its_line_and_may_be_left_out(tmp_path):
    leaf = written(tmp_path, *speakers(tmp_path, "user", "x", "user", "user"))
    rows = [json.loads(line) for line in (tmp_path / "cuts.jsonl").read_text().splitlines()]
    rows[2]["supervisions"] = []
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "cuts.jsonl").write_text("\n\n".join(lines))
    leaf = with_transforms(leaf, SPEECH)
    with pytest.raises(ManifestError, match=r"no supervision.*cuts\.jsonl:5, byte") as error:
        index(leaf, tmp_path)
    assert "--skip-bad-rows" in str(error.value)
    pack = index_good_rows(leaf, tmp_path)
    assert pack.dropped == {"bad row": 1, "blank line": 3, "speaker of no role": 1}
    assert [example.id for example in read(leaf, pack)] == ["c0", "c3"]


def test_what_the_inner_type_refuses_is_named_once(tmp_path):
    rows = [
        {"audio_filepath": "a.wav", "duration": 1.0, "text": "x"},
        {"audio_filepath": "a.wav", "duration": 1.0, "text": ["y"]},
    ]
    leaf = leaf_of("nemo", manifest=write_jsonl(tmp_path / "m.json", rows))
    with pytest.raises(ManifestError, match=r"which is not a text.*m\.json:2") as error:
        index(with_transforms(leaf, DUPLEX), tmp_path)
    assert str(error.value).count("m.json") == 1


def test_a_bad_row_is_named_when_it_is_read(tmp_path):
    rows = [{"audio_filepath": "a.wav", "duration": 1.0}]
    leaf = leaf_of("nemo", manifest=write_jsonl(tmp_path / "m.json", rows))
    leaf = with_transforms(leaf, "lhotse_as_conversation")
    pack = index(leaf, tmp_path)
    with pytest.raises(ManifestError, match=r"no transcript.*m\.json, byte 0, row 0"):
        read(leaf, pack)


def test_dropped_rows_leave_all_columns(tmp_path):
    rows = [
        {"audio_filepath": f"{n}.wav", "text": f"t{n}", "validation_status": f"v{n}"}
        | {"agent_segments": [], "user_segments": [{"start": 0, "end": 1, "text": "u"}] * (n % 2)}
        for n in range(6)
    ]
    for n in (0, 3):
        rows[n]["duration"] = 1.0 + n
    rows[4]["_skipme"] = True
    for n in range(6):
        sf.write(tmp_path / f"{n}.wav", tone(1.0 + n, 8000), 8000)
    leaf = leaf_of("nemo", manifest=write_jsonl(tmp_path / "m.json", rows))
    options = {"filter_samples_starting_with_agent": True}
    leaf = with_transforms(leaf, ("s2s_duplex_overlap_as_s2s_duplex", options))
    pack = index(leaf, tmp_path)
    assert pack.dropped == {"_skipme": 1, "nobody speaks": 2}
    assert pack.duration_us.tolist() == [2_000_000, 4_000_000, 6_000_000]
    assert pack.rate.tolist() == [8000, 0, 8000]
    assert [example.id for example in read(leaf, pack)] == ["1.wav", "3.wav", "5.wav"]
    assert [example.custom["validation_status"] for example in read(leaf, pack)] == [
        "v1",
        "v3",
        "v5",
    ]


def test_dropped_rows_of_a_tar_leave_their_members(tmp_path):
    rows = [
        {"audio_filepath": f"{n}.wav", "duration": 1.0, "text": "t", "agent_segments": []}
        | {"user_segments": [{"start": 0, "end": 1, "text": "u"}] * (n % 2)}
        for n in range(4)
    ]
    manifest = write_jsonl(tmp_path / "manifest_0.json", rows)
    members = [(f"{n}.wav", wav_bytes(1.0, seed=n)) for n in range(4)]
    leaf = leaf_of(
        "nemo_tarred", manifest=manifest, tar=write_tar(tmp_path / "audio_0.tar", members)
    )
    options = {"filter_samples_starting_with_agent": True}
    leaf = with_transforms(leaf, ("s2s_duplex_overlap_as_s2s_duplex", options))
    pack = index(leaf, tmp_path)
    assert pack.num_rows == 2
    for n, example in zip((1, 3), read(leaf, pack), strict=True):
        assert example.id == f"{n}.wav"
        assert example.audio is not None
        assert example.audio.source == members[n][1]


def test_tables_lose_rows_and_grow_like_files_of_lines(tmp_path):
    columns = speech_columns(6)
    columns["duration"][4] = None
    columns["user_segments"] = [
        [{"start": 0.0, "end": 1.0, "text": "u"}] * (n % 2) for n in range(6)
    ]
    columns["agent_segments"] = [[]] * 5 + [None]
    leaf = parquet_leaf(write_table(tmp_path / "t.parquet", columns))
    grown = with_transforms(leaf, DUPLEX)
    pack = index(grown, tmp_path)
    assert pack.duration_us.tolist() == [600000, 750000, 800000, 550000, 700000, 900000]
    assert [cut_of(one).duration for one in read(grown, pack)] == [0.6, 0.75, 0.8, 0.55, 0.7, 0.9]
    options = {"filter_samples_starting_with_agent": True}
    shorter = with_transforms(leaf, ("s2s_duplex_overlap_as_s2s_duplex", options))
    with pytest.raises(ManifestError, match="no `agent_segments`"):
        index(shorter, tmp_path / "bad")
    pack = index_good_rows(shorter, tmp_path)
    assert pack.dropped == {"bad row": 1, "nobody speaks": 3}
    assert [example.id for example in read(shorter, pack)] == ["row-1", "row-3"]
    assert pack.duration_us.tolist() == [250000, 50000]


def test_rows_of_tables_become_conversations(tmp_path):
    leaf = parquet_leaf(write_table(tmp_path / "t.parquet", speech_columns(3)))
    leaf = with_transforms(leaf, "lhotse_as_conversation")
    pack = index(leaf, tmp_path)
    for with_audio in (True, False):
        talks = read(leaf, pack, with_audio=with_audio)
        assert [turns(talk) for talk in talks] == [
            [("user", f"text {n}", f"row-{n}", d), ("assistant", f"text {n}", None, None)]
            for n, d in enumerate([0.1, 0.25, 0.3])
        ]


def test_transforms_are_applied_one_after_another(tmp_path):
    rows = [{"audio_filepath": "a.wav", "duration": 1.0, "text": "hello"}]
    sf.write(tmp_path / "a.wav", tone(1.0), 16000)
    leaf = leaf_of("nemo", manifest=write_jsonl(tmp_path / "m.json", rows))
    leaf = with_transforms(leaf, DUPLEX, "s2s_duplex_reverse_role", SPEECH)
    pack = index(leaf, tmp_path)
    assert pack.duration_us.tolist() == [500_000]
    (talk,) = read(leaf, pack)
    assert turns(talk) == [("assistant", "hello", None, None), ("user", "", "a.wav_agent", 0.5)]
    audio = talk.turns[1].audio
    assert audio is not None
    heard = cut_of(audio)
    assert (heard.id, heard.num_samples) == ("a.wav_agent", 8000)
    assert not heard.load_audio().any()


def test_what_is_no_cut_passes(tmp_path):
    row = {"id": "x", "conversations": [{"from": "User", "type": "text", "value": "hi"}]}
    leaf = leaf_of("multimodal_conversation", manifest=write_jsonl(tmp_path / "t.jsonl", [row]))
    leaf = replace(with_transforms(leaf, SPEECH, DUPLEX), kind="conversation")
    pack = index(leaf, tmp_path)
    (talk,) = read(leaf, pack)
    assert turns(talk) == [("user", "hi", None, None)]
    assert pack.duration_us.tolist() == [0]


def test_what_was_read_may_be_converted_later(tmp_path):
    rows = [{"audio_filepath": "a.wav", "duration": 1.0, "text": "x"}]
    leaf = leaf_of("nemo", manifest=write_jsonl(tmp_path / "m.json", rows))
    leaf = with_transforms(leaf, "lhotse_as_conversation")
    reader = format_of(leaf)
    place = Place(leaf="train", shard=str(tmp_path / "m.json"), row=0, byte=0)
    example = reader.inner.example(leaf, place, json.dumps(rows[0]).encode(), ())
    example.custom = {**example.custom, "context": "a line of an extra field"}
    talk = reader.convert(leaf, example)
    assert talk.turns[0].text == "a line of an extra field"
    assert np.isclose(talk.turns[1].duration, 1.0)
