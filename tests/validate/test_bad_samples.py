"""Audio that cannot be read is told of beside the logs, and holds up no verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from playhead.loader.ranks import Topology
from playhead.validate.consolidating import consolidate
from playhead.validate.options import PhaseOptions
from playhead.validate.phases import run_phase
from support.corpus import nemo_corpus

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    manifest = nemo_corpus(tmp_path, [0.1 + 0.01 * n for n in range(12)])
    row = json.loads(manifest.read_text().splitlines()[4])
    (tmp_path / row["audio_filepath"]).write_bytes(b"this is not audio")
    path = tmp_path / "train.yaml"
    options = {
        "manifest_filepath": str(manifest),
        "fault_tolerant_audio_loading": True,
        "batch_size": 2,
        "shuffle": True,
        "seed": 3,
    }
    path.write_text(yaml.safe_dump(options))
    return path


def run(config: Path, world_size: int, **options: Any) -> None:
    asked = PhaseOptions(
        config=str(config), output_dir=config.parent / "out", mode="full", **options
    )
    for rank in range(world_size):
        run_phase(asked, Topology(rank=rank, world_size=world_size), say=lambda _: None)


def test_samples_that_cannot_be_read_are_the_same_in_all_runs_and_told_of(config: Path) -> None:
    out = config.parent / "out"
    for number in range(2):
        run(config, 2, phase="baseline", run=number, checkpoint_at=0)
    run(config, 1, phase="resumed", state_dir=out / "baseline" / "run0")
    run(config, 1, phase="groundtruth")
    verdict = consolidate(out)
    statuses = [answer.status for answer in verdict.answers]
    assert statuses == ["PASS", "WARN", "PASS", "PASS", "PASS"]
    assert "1 of them cannot be read" in verdict.answers[1].detail


def test_they_are_listed_beside_the_logs_of_their_run_and_not_where_training_lists_them(
    config: Path,
) -> None:
    training = config.parent / "bad_samples.jsonl"
    training.write_text("what training left out\n")
    for _ in range(2):
        run(config, 2, phase="baseline")
    folder = config.parent / "out" / "baseline" / "run0"
    listed = [
        line for path in folder.glob("bad_samples*.jsonl") for line in path.read_text().splitlines()
    ]
    assert [json.loads(line)["row"] for line in listed] == [4]
    assert training.read_text() == "what training left out\n"
