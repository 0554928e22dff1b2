"""The scripts that prove exact resume, by the command lines of the guides."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch
import yaml

from support.command import SCRIPTS, run_script
from support.corpus import nemo_corpus

VALIDATE = "dataloading/validate_dataloader.py"
CONSOLIDATE = "dataloading/_validate_dataloader/consolidate.py"
CONFIG = ("--config", "config.yaml", "--output-dir", "out", "--section", "train_ds")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    nemo_corpus(tmp_path / "data", [0.1 + 0.01 * n for n in range(16)])
    section = {
        "input_cfg": [{"type": "nemo", "manifest_filepath": "${data_blend_dir}/manifest.json"}],
        "batch_size": 2,
        "shuffle": True,
        "seed": 1,
        "num_workers": 0,
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"data": {"train_ds": section}}))
    return tmp_path


def validate(folder, *flags, **environment):
    asked = (*CONFIG, "--data-blend-dir", folder / "data", *flags)
    return run_script(VALIDATE, *asked, cwd=folder, **environment)


def consolidate(folder, *flags):
    return run_script(CONSOLIDATE, "--output-dir", "out", *flags, cwd=folder)


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_phases_of_the_guide_write_its_files_and_the_verdict_prints_its_lines(folder):
    for run in (0, 1):
        baseline = ("--phase", "baseline", "--run-idx", run, "--steps", 8, "--checkpoint-at", 3)
        done = validate(folder, *baseline, "--num-workers-override", 0, "-v")
        assert done.returncode == 0, done.stderr
    resumed = ("--phase", "resumed", "--steps", 4, "--state-dir", "out/baseline/run0")
    assert validate(folder, *resumed, "--mode", "fast").returncode == 0
    done = validate(folder, "--phase", "groundtruth", "--force-finite", "--metadata-only")
    assert done.returncode == 0, done.stderr

    out = folder / "out"
    run0 = out / "baseline" / "run0"
    first, *_, last = rows(run0 / "rank_000.jsonl")
    assert {
        *("step", "rank", "world_size", "worker_id", "cut_ids", "batch_size"),
        *("t_total_ms", "t_first_batch_ms"),
    } <= {*first}
    assert (first["step"], last["step"], first["rank"], first["world_size"]) == (0, 7, 0, 1)
    assert first["t_first_batch_ms"] is not None
    assert last["t_first_batch_ms"] is None
    assert torch.load(run0 / "state_rank_000.pt")
    assert {"p50_ms", "p95_ms", "mean_ms", "count", "t_first_batch_ms", "num_workers"} <= {
        *json.loads((run0 / "throughput_rank_000.json").read_text())
    }
    assert len(rows(out / "resumed" / "run0" / "rank_000.jsonl")) == 4
    assert (out / "groundtruth" / "cuts.jsonl").exists()

    done = consolidate(folder, "--checkpoint-at", 3, "--num-determinism-runs", 2, "-v")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "=== validation report (5 questions) ==="
    assert [line.split()[:2] for line in lines[1:6]] == [["PASS", f"Q{n}:"] for n in range(1, 6)]
    report = json.loads((out / "validation_report.json").read_text())
    assert {"questions", "throughput"} <= {*report}
    assert {"available", "num_workers", "num_ranks", "p50_ms_median", "p95_ms_max"} <= {
        *report["throughput"]
    }


def test_the_batches_of_another_run_end_the_verdict_with_1(folder):
    baseline = ("--phase", "baseline", "--steps", 8, "--checkpoint-at", 3)
    assert validate(folder, *baseline).returncode == 0
    assert (
        validate(folder, "--phase", "resumed", "--state-dir", "out/baseline/run0").returncode == 0
    )
    log = folder / "out/resumed/run0/rank_000.jsonl"
    first, second, *others = log.read_text().splitlines()
    row, other = json.loads(first), json.loads(second)
    # Another batch with the first one's turn.
    changed = {**other, **{key: row[key] for key in row if "step" in key or key == "slot"}}
    log.write_text("\n".join([json.dumps(changed), second, *others, ""]))
    done = consolidate(folder, "--checkpoint-at", 3)
    assert done.returncode == 1
    assert "FAIL  Q4 [resume-rng-divergence]" in done.stdout


def test_the_graph_is_what_the_flags_say(folder):
    manifest = nemo_corpus(folder / "other", [0.2] * 6, prefix="other")
    # A mixture, which is endless unless it is told to end.
    (folder / "other.yaml").write_text(f"- {{type: nemo, manifest_filepath: {manifest}}}\n" * 2)
    flags = ("--input-cfg", "other.yaml", "--fail-on-missing-manifest-entries")
    endless = ("--no-force-finite", "--no-metadata-only", "--steps", 8, "--phase", "baseline")
    done = validate(folder, *flags, *endless)
    assert done.returncode == 0, done.stderr
    log = rows(folder / "out/baseline/run0/rank_000.jsonl")
    assert len(log) == 8
    assert all("other" in str(row) for row in log)
    assert not list(folder.rglob("state_rank_*.pt"))
    skipping = ("--skip-missing-manifest-entries", "--steps", 1, "--phase", "baseline")
    assert validate(folder, *flags[:2], *skipping).returncode == 0


def test_full_mode_sums_its_tensors_up(folder):
    done = validate(folder, "--phase", "baseline", "--steps", 2, "--mode", "full")
    assert done.returncode == 0, done.stderr
    assert (folder / "out/baseline/run0/full_summary_rank_000.json").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--phase", "baseline", "--config", "gone.yaml"), "gone.yaml"),
        (("--phase", "baseline", "--config", "empty.yaml"), "empty.yaml"),
        (("--phase", "baseline", "--config", "half.yaml"), "half.yaml"),
        (("--phase", "baseline", "--config", "data"), "data"),
        (("--phase", "resumed"), "--state-dir"),
        (("--phase", "resumed", "--state-dir", "gone"), "gone"),
        (("--phase", "resumed", "--state-dir", "half"), "half"),
        ((), "--phase is missing"),
    ],
)
def test_wrong_input_is_said_without_a_traceback(folder, flags, said):
    (folder / "empty.yaml").write_text("")
    (folder / "half.yaml").write_text("data: {train_ds: {input_cfg: [\n")
    (folder / "half").mkdir()
    (folder / "half" / "state_rank_000.pt").write_bytes(b"PK\x03\x04 no more")
    done = validate(folder, *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize("fault", ["unknown", "empty", "kind", "half"])
def test_a_folder_without_a_validation_ends_the_verdict_with_2(folder, fault):
    if fault != "unknown":
        (folder / "out").mkdir()
    if fault == "kind":
        (folder / "out" / "baseline").write_text("a file")
    elif fault == "half":
        assert validate(folder, "--phase", "baseline", "--steps", 2).returncode == 0
        log = folder / "out/baseline/run0/rank_000.jsonl"
        log.write_bytes(log.read_bytes()[:-20])
    done = consolidate(folder)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stdout + done.stderr


@pytest.mark.e2e
@pytest.mark.slow
def test_ranks_that_torchrun_starts_write_a_log_each(folder):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("--standalone", SCRIPTS / VALIDATE, *CONFIG, "--data-blend-dir", folder / "data"),
            *("--phase", "baseline", "--steps", "4", "--checkpoint-at", "1"),
        ],
        cwd=folder,
        env={**os.environ, "PLAYHEAD_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run0 = folder / "out/baseline/run0"
    logs = [rows(run0 / f"rank_00{rank}.jsonl") for rank in range(2)]
    assert [log[0]["world_size"] for log in logs] == [2, 2]
    seen = [str(row["cut_ids"]) for log in logs for row in log]
    assert len({*seen}) == len(seen) == 8
    assert {path.name for path in run0.glob("state_*")} == {
        "state_rank_000.pt",
        "state_rank_001.pt",
    }
