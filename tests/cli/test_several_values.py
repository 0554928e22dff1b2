"""Command lines of NeMo's guides, in which options take several values and switches a word."""

from __future__ import annotations

import pytest

from playhead.cli.several_values import one_by_one


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-t", "a.model", "b.yaml"], ["-t", "a.model", "b.yaml"]),
        (["-t", "a", "tokenizer.json", "b.json"], ["-t", "a", "-t", "tokenizer.json", "b.json"]),
        (["-a", "en", "de-DE", "spl_tokens", "x.json"],
         ["-a", "en", "-a", "de-DE", "-a", "spl_tokens", "x.json"]),
        (["--langs", "en", "-t", "a.model", "b.model"],
         ["--langs", "en", "-t", "a.model", "-t", "b.model"]),
        (["-q", "true", "x.json"], ["--quiet", "x.json"]),
        (["-q", "False", "x.json"], ["x.json"]),
        (["-q", "x.json"], ["-q", "x.json"]),
        (["-m", "no"], ["--no-measure-total-length"]),
        (["--measure-total-length", "1"], ["--measure-total-length"]),
        (["-t"], ["-t"]),
        (["--", "-t", "a.model", "b.model"], ["--", "-t", "a.model", "b.model"]),
        ([], []),
    ],
)  # fmt: skip
def test_values_in_a_row_are_written_out_one_by_one(given, expected):
    assert one_by_one(given) == expected


def test_a_file_is_no_language(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "de").touch()
    assert one_by_one(["-a", "en", "de"]) == ["-a", "en", "de"]
