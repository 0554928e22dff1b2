"""What filters ask of rows: error rates, similarities, and speakers that are held out."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from playhead.config import Options
from playhead.errors import ConfigError, SourceNotFoundError
from playhead.tokens.fields import FieldFilter, find_field_columns, open_field_columns
from support.leaves import make_leaf
from support.token_rows import cut_row, cuts_leaf, mixed_row, nemo_leaf, nemo_row, open_pack_of

ASKED = FieldFilter(excluded_speaker_ids=("s1", "7"), speaker_filter_fields=("speaker", "who"))
NAN = math.nan


def facts(leaf, folder, asked=ASKED, **options):
    pack = open_pack_of(leaf, folder)
    found = open_field_columns(leaf, pack, asked, **options)
    assert {name: column.dtype.str for name, column in found.items()} == {
        "cer": "<f8",
        "similarity": "<f8",
        "speaker": "|b1",
    }
    for column in find_field_columns(leaf, pack, asked.digest).values():
        assert len(column) == pack.num_rows
    return [column.tolist() for column in found.values()]


def test_rows_of_nemo(tmp_path):
    rows = [
        nemo_row(cer=0.25, context_speaker_similarity=0.5, speaker="s1"),
        nemo_row(cer="0.5", context_speaker_similarity=None, speaker="s10"),
        nemo_row(cer="none", speaker=7),
        nemo_row(cer=True, who="Language:en Dataset:x Speaker:s1 |"),
        nemo_row(cer=1, who="Speaker: s1| more", speaker="s2"),
        nemo_row(who="Speaker:s12 |"),
        nemo_row(who="Speaker:s1"),
        nemo_row(other="s1"),
    ]
    cer, similarity, speaker = facts(nemo_leaf(tmp_path, rows), tmp_path)
    np.testing.assert_equal(cer, [0.25, 0.5, NAN, NAN, 1.0, NAN, NAN, NAN])
    np.testing.assert_equal(similarity, [0.5] + [NAN] * 7)
    assert speaker == [True, False, True, True, True, False, True, False]


def test_tags_are_fields_of_rows_too(tmp_path):
    leaf = nemo_leaf(tmp_path, [nemo_row(), nemo_row(cer=0.1)], tags={"cer": 0.7, "who": "s1"})
    cer, _, speaker = facts(leaf, tmp_path)
    assert cer == [0.7, 0.7]
    assert speaker == [True, True]


def test_cuts(tmp_path):
    bad = {"custom": {"cer": 0.9, "context_speaker_similarity": -0.5}}
    rows = [
        cut_row(0, [bad, {"custom": {"cer": 0.1}}]),
        cut_row(1, [{"speaker": "s1"}]),
        cut_row(2, [{"speaker": "s2"}, {"custom": {"who": "x Speaker:s1 |"}}]),
        cut_row(3, [], cer=0.5, speaker="s1"),
        mixed_row(4, cut_row(4, [{**bad, "speaker": "s3"}]), cut_row(5, [{"speaker": "s1"}])),
        {**cut_row(6, [bad]), "type": "MultiCut", "channel": [0]},
    ]
    cer, similarity, speaker = facts(cuts_leaf(tmp_path, rows), tmp_path)
    # Only a MonoCut's first supervision has a say in the numbers.
    np.testing.assert_equal(cer, [0.9, NAN, NAN, NAN, NAN, NAN])
    np.testing.assert_equal(similarity, [-0.5, NAN, NAN, NAN, NAN, NAN])
    assert speaker == [False, True, True, False, True, False]


def test_other_types_have_their_samples_fields(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"text": "a", "cer": 0.5}, {"text": "b", "speaker": "s1"}]))
    cer, _, speaker = facts(make_leaf("table_for_tests", manifest=[path]), tmp_path)
    np.testing.assert_equal(cer, [0.5, NAN])
    assert speaker == [False, True]


def test_workers_find_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("playhead.tokens.jobs._ROWS", 16)
    monkeypatch.setattr("playhead.tokens.jobs._FEW_ROWS", 100)
    rows = [nemo_row(i, cer=i / 8, speaker=f"s{i % 3}") for i in range(200)]
    cer, _, speaker = facts(nemo_leaf(tmp_path, rows), tmp_path, workers=2)
    assert cer == [i / 8 for i in range(200)]
    assert speaker == [i % 3 == 1 for i in range(200)]


def test_embedded_rows_need_no_manifest(tmp_path):
    leaf = nemo_leaf(tmp_path, [nemo_row(cer=0.5), nemo_row()])
    pack = open_pack_of(leaf, tmp_path, embed=True)
    (tmp_path / "m.json").unlink()
    np.testing.assert_equal(open_field_columns(leaf, pack, ASKED)["cer"], [0.5, NAN])


def test_the_digest_is_of_what_is_asked():
    same = FieldFilter(
        excluded_speaker_ids=("7", "s1", "7"), speaker_filter_fields=("who", "speaker")
    )
    others = {
        FieldFilter().digest,
        FieldFilter(excluded_speaker_ids=("s1",), speaker_filter_fields=("who", "speaker")).digest,
        FieldFilter(excluded_speaker_ids=("7", "s1"), speaker_filter_fields=("who",)).digest,
    }
    assert same.digest == ASKED.digest
    assert len(others | {ASKED.digest}) == 4


def test_sections_ask_for_nothing_or_something(tmp_path):
    asks = FieldFilter.from_options
    assert asks(Options()) is None
    assert asks(Options(max_cer=None, min_context_speaker_similarity=None)) is None
    assert asks(Options(excluded_speaker_ids=[], speaker_filter_fields=("speaker",))) is None
    assert asks(Options(max_cer=0.5)) == FieldFilter()
    assert asks(Options(min_context_speaker_similarity=0.0)) == FieldFilter()
    given = Options(excluded_speaker_ids=["s1", 7], speaker_filter_fields=("speaker", "who"))
    assert asks(given) == ASKED
    for content in ("[s1, 7]", "excluded_speaker_ids: [s1, 7]\nother: 3", "- s1\n- 7"):
        (tmp_path / "held.yaml").write_text(content)
        path = str(tmp_path / "held.yaml")
        assert (
            asks(Options(excluded_speaker_ids=path, speaker_filter_fields=("speaker", "who")))
            == ASKED
        )


@pytest.mark.parametrize(
    ("ids", "fields", "error", "said"),
    [
        (["s1"], None, ConfigError, "needs speaker_filter_fields"),
        (["s1"], (), ConfigError, "needs speaker_filter_fields"),
        ("/nowhere.yaml", ("speaker",), SourceNotFoundError, "/nowhere.yaml"),
        ("/", ("speaker",), ConfigError, "cannot be read"),
        ({"a": 1}, ("speaker",), ConfigError, "is dict, not a list"),
        (3, ("speaker",), ConfigError, "is int, not a list"),
    ],
)
def test_what_cannot_be_meant_is_refused(ids, fields, error, said):
    with pytest.raises(error, match=said):
        FieldFilter.from_options(Options(excluded_speaker_ids=ids, speaker_filter_fields=fields))


def test_a_file_with_something_else_is_named(tmp_path):
    (tmp_path / "held.yaml").write_text("speakers: [s1]")
    options = Options(
        excluded_speaker_ids=str(tmp_path / "held.yaml"), speaker_filter_fields=("speaker",)
    )
    with pytest.raises(ConfigError, match=r"is dict, not a list \(.*held\.yaml\)"):
        FieldFilter.from_options(options)
