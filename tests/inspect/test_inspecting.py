"""A checkpoint of others, with a config that was named or stands beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from playhead.errors import ConfigError
from playhead.inspect import finding
from playhead.inspect.inspecting import inspect_checkpoint
from support.nemo_states import indexed, mixture, nemo_sources, per_rank, sampler

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    state = per_rank(sampler(mixture(indexed(2), indexed(5))))
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "a.json").write_text(json.dumps(state))
    return tmp_path / "checkpoint"


def test_a_config_beside_it_that_cannot_be_used_is_passed_over_and_said(
    checkpoint: Path, tmp_path: Path
) -> None:
    (checkpoint / "exp_config.yaml").write_text("nothing: here\n")
    (tmp_path / "config.yaml").write_text(json.dumps(nemo_sources(tmp_path, [10, 20])))

    summary = inspect_checkpoint(checkpoint)

    assert summary.config_path == str(tmp_path / "config.yaml")
    assert [row.total_items for row in summary.rows] == [10, 20]
    assert sum("exp_config.yaml" in note for note in summary.notes) == 1


def test_where_no_config_beside_it_can_be_used_sources_have_no_names(checkpoint: Path) -> None:
    (checkpoint / "config.yaml").write_text("nothing: here\n")

    summary = inspect_checkpoint(checkpoint)

    assert (summary.config_path, len(summary.rows)) == (None, 2)
    assert any("--config" in note for note in summary.notes)
    assert any("config.yaml" in note for note in summary.notes)


def test_a_config_that_was_named_and_cannot_be_used_is_an_error(checkpoint: Path) -> None:
    (checkpoint / "bad.yaml").write_text("nothing: here\n")

    with pytest.raises(ConfigError, match=r"bad\.yaml"):
        inspect_checkpoint(checkpoint, checkpoint / "bad.yaml")


@pytest.mark.parametrize(("bad", "said"), [(1, ""), (3, ", the first of 3")])
def test_files_that_were_passed_over_are_counted(checkpoint: Path, bad: int, said: str) -> None:
    for number in range(bad):
        (checkpoint / f"b{number}.json").write_text("{cut off")

    (note,) = [one for one in inspect_checkpoint(checkpoint).notes if "passed over" in one]

    assert note.startswith(f"passed over{said}: The file is not complete JSON: ")
    assert "b0.json" in note


def test_files_beyond_those_that_are_read_are_said(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "MOST_FILES", 1)
    (checkpoint / "b.json").write_text("{}")

    notes = inspect_checkpoint(checkpoint).notes

    assert f"passed over: {checkpoint}: of 2 files the first 1 are read" in notes
