"""Journals keep every record, forgive a torn end, and refuse what is not theirs."""

from __future__ import annotations

import json

import pytest

from playhead.errors import ConfigError
from playhead.fit.journal import Journal
from playhead.fit.record import MixRecord, ProbeRecord

_IDENTITY = {"model": "whisper", "device": "cuda:0", "buckets": [[1.5, 3], [2.5, 9]]}
_RECORDS = [
    ProbeRecord(bucket=0, batch_size=32, budget=10**10, status="ok", allocated=5, reserved=6),
    ProbeRecord(bucket=1, batch_size=9, budget=10**10, status="lost", reason="“?”\n", seconds=0.5),
    MixRecord(
        sizes=(32, 8), steps=99, budget=10**10, status="oom", done=3, failed=1, allocated=(5, 0)
    ),
]


@pytest.fixture
def path(tmp_path):
    with Journal(tmp_path / "new" / "search.jsonl", _IDENTITY) as journal:
        for record in _RECORDS:
            journal.append(record)
        journal.keep_prediction(0, 32, 4)
        journal.keep_prediction(1, 32, None)
    return journal.path


def test_what_was_kept_is_read_again(path):
    with Journal(path, _IDENTITY, resume=True) as journal:
        assert journal.records == _RECORDS
        assert journal.predictions == {(0, 32): 4, (1, 32): None}


def test_tuples_of_an_identity_are_lists_in_the_file_and_the_same(path):
    same = {**_IDENTITY, "buckets": ((1.5, 3), (2.5, 9))}
    with Journal(path, same, resume=True) as journal:
        assert len(journal.records) == 3


def test_a_file_that_is_cut_anywhere_keeps_the_lines_before(path):
    whole = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with Journal(path, _IDENTITY, resume=True) as journal:
            lines = sum(end <= cut for end in ends)
            assert len(journal.records) + len(journal.predictions) == max(0, lines - 1)
            journal.append(_RECORDS[0])
        with Journal(path, _IDENTITY, resume=True) as again:
            assert again.records[-1] == _RECORDS[0]


def test_a_last_line_of_nothing_but_zeros_is_forgotten(path):
    with path.open("ab") as file:
        file.write(bytes(100))
    with Journal(path, _IDENTITY, resume=True) as journal:
        assert journal.records == _RECORDS


def test_a_broken_line_in_the_middle_is_named(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b'{"kind": "probe"}\n', *lines[2:]]))
    with pytest.raises(ConfigError, match=r"search\.jsonl:3"):
        Journal(path, _IDENTITY, resume=True)


@pytest.mark.parametrize("text", ["model: whisper\n", "{}\n", "[]", '{"kind": "probe"}\n'])
def test_another_file_is_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="not the journal"):
        Journal(path, _IDENTITY, resume=True)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "changed", [{"model": "wav2vec2"}, {"dtype": "bfloat16"}, {"buckets": [2]}]
)
def test_another_search_is_refused_and_what_differs_is_named(path, changed):
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=f"another search: {next(iter(changed))} was"):
        Journal(path, {**_IDENTITY, **changed}, resume=True)
    assert path.read_bytes() == before


def test_a_journal_is_not_overwritten(path):
    with pytest.raises(ConfigError, match="here is a journal already"):
        Journal(path, _IDENTITY)


@pytest.mark.parametrize("torn", [b"", b'{"kind": "pro'])
def test_a_search_that_had_not_begun_is_no_journal(path, torn):
    head = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(head + torn)
    other = {**_IDENTITY, "model": "wav2vec2"}
    with Journal(path, other) as journal:
        journal.keep_prediction(0, 1, None)
    with Journal(path, other, resume=True) as journal:
        assert journal.predictions == {(0, 1): None}


def test_a_search_that_ends_before_its_first_try_leaves_no_journal(tmp_path):
    with Journal(tmp_path / "search.jsonl", _IDENTITY):
        assert (tmp_path / "search.jsonl").exists()
    assert not (tmp_path / "search.jsonl").exists()


def test_a_journal_of_another_version_is_refused(path):
    lines = path.read_text().splitlines(keepends=True)
    lines[0] = json.dumps({**json.loads(lines[0]), "format": 99}) + "\n"
    path.write_text("".join(lines))
    with pytest.raises(ConfigError, match="format 99"):
        Journal(path, _IDENTITY, resume=True)


def test_two_searches_do_not_write_one_journal(path):
    with (
        Journal(path, _IDENTITY, resume=True),
        pytest.raises(ConfigError, match="nother search writes"),
    ):
        Journal(path, _IDENTITY, resume=True)
    Journal(path, _IDENTITY, resume=True).close()


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "probe", "bucket": 2, "batch_size": 1, "budget": 9, "status": "ok"},
        {"kind": "probe", "bucket": -1, "batch_size": 1, "budget": 9, "status": "ok"},
        {"kind": "mix", "sizes": [1], "steps": 9, "budget": 9, "status": "ok"},
        {"kind": "mix", "sizes": [1, 1], "failed": 2, "steps": 9, "budget": 9, "status": "oom"},
        {"kind": "prediction", "bucket": 2, "batch_size": 1, "predicted": 3},
    ],
)
def test_a_record_of_a_bucket_that_there_is_not_is_no_record(path, line):
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n" + path.read_text().splitlines(keepends=True)[1])
    with pytest.raises(ConfigError, match="not the journal of a search"):
        Journal(path, _IDENTITY, resume=True)
