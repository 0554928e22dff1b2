"""Validations in processes of their own: ranks that meet, workers, and a rank that is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from playhead.local_ranks import run_ranks
from playhead.validate.meta import read_meta
from support.corpus import nemo_corpus

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.e2e

DATASET = """
import random

class Drawing:
    reads_audio = True

    def collate(self, examples, *, sample_rate, sample_keys):
        from playhead.fetch import pad_waveforms
        audio, lengths = pad_waveforms(examples, sample_rate)
        return {"audio": audio, "lengths": lengths, "drawn": random.random()}

class Clocked(Drawing):
    def collate(self, examples, **options):
        import time
        return {**super().collate(examples, **options), "now": time.time_ns()}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    manifest = nemo_corpus(tmp_path, [0.1 + 0.01 * n for n in range(30)])
    section = {
        "manifest_filepath": str(manifest),
        "batch_size": 2,
        "shuffle": True,
        "seed": 1,
        "num_workers": 1,
        "perturb_speed": True,
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({"data": {"train_ds": section}}))
    (tmp_path / "mine.py").write_text(DATASET)
    return path


def phase(config: Path, *arguments: str) -> list[str]:
    common = ("--config", str(config), "--output-dir", str(config.parent / "out"))
    return ["-m", "playhead", "validate", *common, *arguments]


def validate(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "playhead", "validate", str(config), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=500,
        cwd=config.parent,
    )


def test_ranks_that_meet_agree_and_save_one_state(config: Path) -> None:
    command = phase(config, "--phase", "baseline", "--checkpoint-at", "2")
    run_ranks("baseline", 2, lambda _: command, config.parent, deadline_seconds=200)
    out = config.parent / "out"
    meta = read_meta(out, "baseline", 0)
    assert (meta.is_over, meta.is_exhausted, meta.world_size, meta.batches) == (True, True, 2, 8)
    folder = out / "baseline" / "run0"
    rows = [
        json.loads(line)
        for rank in range(2)
        for line in (folder / f"rank_{rank:03d}.jsonl").read_text().splitlines()
    ]
    assert len({place for row in rows for place in row["cut_ids"]}) == 30
    assert (folder / "state_rank_000.pt").is_file()
    assert (folder / "state_rank_001.pt").is_file()


@pytest.mark.slow
def test_one_command_proves_it_on_other_ranks_and_workers_bit_for_bit(config: Path) -> None:
    ran = validate(
        *(config, "--mode", "full", "--dataset", "mine:Drawing"),
        *("--resume-ranks", "1,3", "--resume-workers", "0,2", "-o", "out"),
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("PASS") == 5
    assert "samples and tensors" in ran.stdout
    # On as many ranks, and on 2, 1 and 3 with each number of workers.
    assert ran.stderr.count("resumed ") == 7
    report = json.loads((config.parent / "out" / "validation_report.json").read_text())
    assert report["questions"]["Q2"]["status"] == "PASS"


@pytest.mark.slow
def test_a_dataset_that_looks_at_the_clock_fails_and_its_logs_are_kept(config: Path) -> None:
    ran = validate(config, "--mode", "full", "--dataset", "mine:Clocked")
    assert ran.returncode == 1, ran.stderr
    assert "FAIL  Q4" in ran.stdout
    assert "FAIL  Q5" in ran.stdout
    kept = ran.stderr.rpartition("logs and states are in ")[2].strip()
    assert (config.parent / kept / "baseline" / "run0" / "rank_000.jsonl").is_file()
    assert kept.rpartition("/")[2].startswith("playhead-validate-")


@pytest.mark.slow
def test_torchrun_and_the_verdict_of_what_it_left(config: Path) -> None:
    def torchrun(ranks: int, *arguments: str) -> None:
        launcher = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}")
        ran = subprocess.run(
            [sys.executable, *launcher, *phase(config, *arguments)],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr

    torchrun(2, "--phase", "baseline", "--checkpoint-at", "3")
    states = str(config.parent / "out" / "baseline" / "run0")
    torchrun(2, "--phase", "resumed", "--state-dir", states)
    torchrun(1, "--phase", "resumed", "--state-dir", states, "--run-idx", "1")
    torchrun(1, "--phase", "groundtruth")
    ran = subprocess.run(
        [sys.executable, "-m", "playhead", "validate", "consolidate", "--output-dir", "out"],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
        cwd=config.parent,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("PASS") == 4


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_whole_lines_and_no_end(config: Path) -> None:
    command = phase(config, "--phase", "baseline", "--no-force-finite", "--steps", "100000")
    log = config.parent / "out" / "baseline" / "run0" / "rank_000.jsonl"

    def is_under_way() -> bool:
        return log.exists() and log.stat().st_size > 50_000

    text = config.read_text()
    manifest = yaml.safe_load(text)["data"]["train_ds"].pop("manifest_filepath")
    entries = [{"type": "nemo", "manifest_filepath": manifest}] * 2
    section = {**yaml.safe_load(text)["data"]["train_ds"], "input_cfg": entries}
    section.pop("manifest_filepath")
    config.write_text(yaml.safe_dump({"data": {"train_ds": section}}))
    run_ranks(
        *("baseline", 2, lambda _: command, config.parent),
        deadline_seconds=200,
        is_time_to_kill=is_under_way,
    )
    lines = log.read_bytes().splitlines(keepends=True)
    assert lines[-1].endswith(b"\n")
    steps = [json.loads(line)["step"] for line in lines]
    assert steps == list(range(len(steps)))
    assert not read_meta(config.parent / "out", "baseline", 0).is_over
