"""The files that a summary is written to."""

from __future__ import annotations

import csv
import errno
import json
from datetime import date
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError, StorageError
from playhead.inspect import writing
from playhead.inspect.summary import COLUMNS, LeafProgress, SourceSpec
from playhead.inspect.writing import csv_text, json_text, markdown, write_files
from support.summaries import overall, source, summary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.inspect.summary import Summary

_READ = source(
    0,
    "en/train",
    desired_weight=1 / 3,
    observed_weight=0.625,
    consumed_items=1250,
    total_items=1000,
    partitions_seen=4,
    notes=("a", "b"),
)


def test_a_folder_gets_all_three_files_and_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "deep"

    written = write_files(summary(_READ), folder=folder)

    assert [path.name for path in written] == ["summary.json", "summary.md", "summary.csv"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in written)


def test_a_file_that_is_named_goes_there_instead(tmp_path: Path) -> None:
    named = tmp_path / "elsewhere" / "rows.csv"

    write_files(summary(_READ), folder=tmp_path / "out", csv_file=named)

    assert named.read_text().startswith("source_index,")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "summary.json",
        "summary.md",
    ]


def test_without_a_folder_only_named_files_are_written(tmp_path: Path) -> None:
    assert write_files(summary(_READ), json_file=tmp_path / "a.json") == [tmp_path / "a.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_json_has_the_keys_of_the_analyzer_sorted_and_indented() -> None:
    leaf = LeafProgress(source_index=0, rank=0, worker=1, state_type="indexed", epoch=0, position=5)
    text = json_text(summary(_READ, leaf_progress=(leaf,)))

    content = json.loads(text)
    assert list(content) == sorted(content)
    assert text.startswith('{\n  "checkpoint_input": ')
    assert content["num_leaf_progress_states"] == 1
    assert content["num_summary_rows"] == 1
    assert list(content["rows"][0]) == sorted(COLUMNS)
    assert content["rows"][0]["utilization_pct"] == pytest.approx(125)
    assert content["rows"][0]["notes"] == "a; b"
    assert content["leaf_progress"][0]["worker"] == 1


def test_json_takes_tags_that_json_has_no_types_for() -> None:
    tags = {"when": date(2020, 1, 2), "by": {1: "x", "a": "y"}}
    spec = SourceSpec(source_index=0, name="a", desired_weight=None, tags=tags)

    content = json.loads(json_text(summary(dataset_specs=(spec,))))

    assert content["dataset_specs"][0]["tags"] == {
        "when": "2020-01-02",
        "by": {"1": "x", "a": "y"},
    }


def test_names_that_are_no_unicode_can_be_written(tmp_path: Path) -> None:
    write_files(summary(source(0, "a\udcff")), folder=tmp_path)

    assert json.loads((tmp_path / "summary.json").read_text())["rows"][0]["dataset"] == "a\udcff"
    assert r"a\udcff" in (tmp_path / "summary.csv").read_text()


def test_markdown_has_a_title_four_bullets_and_a_table() -> None:
    lines = markdown(summary(_READ, config_path="blend.yaml")).splitlines()

    assert lines[0].startswith("# ")
    assert lines[2:6] == [
        "- checkpoint: `step=10.ckpt`",
        "- metadata_loaded: `step=10.ckpt`",
        "- config: `blend.yaml`",
        "- generated_at: `2026-01-02T03:04:05+00:00`",
    ]
    assert lines[7] == (
        "| idx | dataset | utilization | epochs | desired_w | observed_w | drift | items | total"
        " | parts | notes |"
    )
    assert lines[9] == (
        "| 0 | en/train | 125.00% | 1 + 25.00% | 0.333333 | 0.625 | 0.291667 | 1250 | 1000 | 4"
        " | a; b |"
    )
    assert len(lines) == 10


def test_markdown_says_what_is_not_known() -> None:
    last = markdown(summary(source(0, "a"))).splitlines()[-1]

    assert last == "| 0 | a | n/a | n/a | n/a | n/a | n/a | n/a | n/a | 1 |  |"


@pytest.mark.parametrize("name", ["a\x1b[1m", "a\x7f\x9b2J", "\u202eb", "\ud800", "\U000e0001"])
@pytest.mark.parametrize("text_of", [json_text, markdown, csv_text])
def test_no_name_steers_a_terminal(text_of: Callable[[Summary], str], name: str) -> None:
    text = text_of(summary(source(0, name)))

    assert all(line.isprintable() for line in text.splitlines())


def test_json_keeps_every_name_as_it_is() -> None:
    name = "".join(map(chr, range(0x300))) + '\u2028\U0001f600\U000e0001\ud800عربي\\u0041"'

    assert json.loads(json_text(summary(source(0, name))))["rows"][0]["dataset"] == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a|b", r"a\|b"), ("a\\|b", r"a\\\|b"), ("a\nb\u2028c", "a b c")],
)
def test_a_name_cannot_break_a_row_of_markdown(name: str, shown: str) -> None:
    assert f"| 0 | {shown} | n/a" in markdown(summary(source(0, name)))


def test_markdown_says_where_training_stands() -> None:
    text = markdown(summary(_READ, overall=overall(padding=0.0123, padding_of="all steps")))

    assert "## The whole" in text
    assert "- step: 1234\n" in text
    assert "- padding: 1.23%\n- padding_of: all steps\n" in text
    assert "hours" not in text


@given(st.text(), st.text())
def test_a_source_is_one_line_of_csv_and_no_formula(dataset: str, note: str) -> None:
    text = csv_text(summary(source(0, dataset, notes=(note,)), source(1, "last")))

    assert len(text.splitlines()) == 3
    head, row, last = csv.reader(StringIO(text))
    assert tuple(head) == COLUMNS
    assert len(row) == len(COLUMNS)
    assert last[1] == "last"
    assert not row[1].startswith(("=", "+", "-", "@", "\t"))
    assert not row[COLUMNS.index("notes")].startswith(("=", "+", "-", "@", "\t"))


def test_csv_leaves_numbers_as_they_are() -> None:
    row = source(0, "a", desired_weight=0.5, observed_weight=0.25, consumed_items=1)

    (cells,) = csv.DictReader(StringIO(csv_text(summary(row))))

    assert cells["drift_abs"] == "-0.25"
    assert cells["consumed_items"] == "1"
    assert cells["total_items"] == ""
    assert cells["missing_total"] == "True"


def test_a_path_below_a_file_is_one_line_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match="cannot be written") as caught:
        write_files(summary(_READ), folder=tmp_path / "file")

    assert "\n" not in str(caught.value)
    assert "a folder is wanted here" in str(caught.value)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "summary.json").write_text("old")

    def full(path: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(writing, "atomic_write", full)
    with pytest.raises(StorageError, match=r"No space left on device .*Make room"):
        write_files(summary(_READ), folder=tmp_path)

    assert (tmp_path / "summary.json").read_text() == "old"


def test_a_path_that_is_none_is_a_mistake_of_the_command() -> None:
    with pytest.raises(ConfigError, match="Correct the path"):
        write_files(summary(_READ), json_file="a\0b")
