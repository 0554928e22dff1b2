"""`playhead validate consolidate` says the verdict and ends with what scripts look at."""

from __future__ import annotations

import json

import pytest

from playhead.cli import main
from support.validation_logs import validation


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    def run(*arguments):
        folder = str(tmp_path / "logs")
        argv = ["playhead", "validate", "consolidate", "--output-dir", folder, *arguments]
        monkeypatch.setattr("sys.argv", argv)
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, *capsys.readouterr()

    return run


def test_a_clean_validation_ends_with_0_and_five_lines(tmp_path, run):
    validation().write(tmp_path / "logs")
    code, out, err = run("--checkpoint-at", "3", "--num-determinism-runs", "2")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "=== validation report (5 questions) ==="
    assert [line[:10] for line in lines[1:6]] == [f"  PASS  Q{n}" for n in range(1, 6)]
    assert lines[6] == "throughput: not measured"
    assert lines[7] == f"wrote {tmp_path / 'logs' / 'validation_report.json'}"


def test_a_fault_ends_with_1_and_json_is_what_was_written(tmp_path, run):
    made = validation()
    made.run("resumed").rows[0][0]["cut_ids"].reverse()
    made.write(tmp_path / "logs")
    code, out, err = run("--json", "-v")
    assert code == 1
    assert json.loads(out) == json.loads((tmp_path / "logs/validation_report.json").read_text())
    assert json.loads(out)["questions"]["Q4"]["tag"] == "resume-rng-divergence"
    assert err.splitlines()[0] == "baseline/run0: 2 ranks, 24 batches, 72 samples"


def test_an_empty_folder_is_no_verdict(tmp_path, run):
    (tmp_path / "logs").mkdir()
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("playhead: There is no baseline (")
    assert err.count("\n") == 1
    (tmp_path / "logs").rmdir()
    assert run()[0] == 2


def test_a_log_that_is_cut_off_is_one_line_that_names_it(tmp_path, run):
    validation().write(tmp_path / "logs")
    log = tmp_path / "logs" / "resumed" / "run0" / "rank_001.jsonl"
    log.write_bytes(log.read_bytes()[:-9])
    code, out, err = run()
    assert (code, out) == (2, "")
    assert f"{log}:8)" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("bad", [("--num-determinism-runs", "0"), ("--checkpoint-at", "x")])
def test_options_that_mean_nothing_are_refused(tmp_path, run, bad):
    validation().write(tmp_path / "logs")
    assert run(*bad)[0] == 2
