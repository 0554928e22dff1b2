"""The script that says how far a checkpoint's sources were read, by the guide's command line."""

from __future__ import annotations

import csv
import json

import pytest
import torch
import yaml

from playhead.inspect.summary import COLUMNS
from support.command import run_script
from support.nemo_states import (
    indexed,
    mixture,
    nemo_sources,
    per_rank,
    repeated,
    sampler,
    workers,
)

ANALYZE = "dataloading/analyze_resumable_checkpoint.py"
TABLE = [
    (
        "| idx | dataset | utilization | epochs | desired_w | observed_w | drift | items | total |"
        " parts | notes |"
    ),
    "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    "| 0 | corpus-0 | 130.00% | 1 + 30.00% | 0.333333 | 0.866667 | 0.533333 | 13 | 10 | 4 |  |",
    "| 1 | corpus-1 | 40.00% | 0 + 40.00% | 0.666667 | 0.133333 | -0.533333 | 2 | 5 | 4 |  |",
]


def state():
    """Two ranks with two workers, which have read 13 and 2 items."""

    def one(shard, epoch, first, second):
        mixed = mixture(repeated(indexed(first, shard, 4), epoch), indexed(second, shard, 4))
        return sampler(mixed)

    return per_rank(
        workers(one(0, 1, 2, 1), one(1, 1, 0, 0)), workers(one(2, 1, 1, 1), one(3, 0, 2, 0))
    )


@pytest.fixture
def run(tmp_path):
    """The folder of a run: a checkpoint of torch, and its config beside it."""
    folder = tmp_path / "run" / "checkpoints" / "step=7.ckpt"
    folder.mkdir(parents=True)
    torch.save({"weights": torch.zeros(3), **state()}, folder / "meta.pt")
    config = {"data": {"train_ds": {"input_cfg": nemo_sources(tmp_path / "data", [10, 5])}}}
    (tmp_path / "run" / "exp_config.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "run" / "eval-step-7").mkdir()
    return tmp_path / "run"


@pytest.mark.parametrize(
    "place", ["checkpoints/step=7.ckpt/meta.pt", "checkpoints/step=7.ckpt", "eval-step-7"]
)
def test_the_table_comes_as_markdown(run, place):
    done = run_script(ANALYZE, "--checkpoint", place, "--config", run / "exp_config.yaml", cwd=run)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("# ")
    assert [line.partition(":")[0] for line in lines[2:6]] == [
        "- checkpoint",
        "- metadata_loaded",
        "- config",
        "- generated_at",
    ]
    assert lines[7:11] == TABLE


def test_a_config_beside_the_checkpoint_is_found(run):
    done = run_script(ANALYZE, "--checkpoint-path", "checkpoints/step=7.ckpt", cwd=run)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[7:11] == TABLE


def test_a_state_as_json_and_notes(run):
    (run / "state.json").write_text(json.dumps(state()))
    (run / "other.yaml").write_text("[{type: nemo, manifest_filepath: none.jsonl}]")

    done = run_script(ANALYZE, "--state-json=state.json", "--config", "other.yaml", cwd=run)

    assert done.returncode == 0, done.stderr
    assert "\nNotes:\n\n- the config has 1 source and the checkpoint 2: " in done.stdout
    assert "missing index: none.jsonl.idx" in done.stdout


def test_files_are_written_and_the_table_only_where_it_is_wanted(run):
    asked = ("--checkpoint", "checkpoints/step=7.ckpt", "--output-dir", "out")

    done = run_script(ANALYZE, *asked, "--output-csv", "rows.csv", cwd=run)

    assert (done.returncode, done.stdout) == (0, "")
    assert sorted(path.name for path in (run / "out").iterdir()) == ["summary.json", "summary.md"]
    summary = json.loads((run / "out/summary.json").read_text())
    assert [row["consumed_items"] for row in summary["rows"]] == [13, 2]
    assert summary["num_leaf_progress_states"] == 8
    assert (run / "out/summary.md").read_text().splitlines()[7:] == TABLE
    with (run / "rows.csv").open() as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == COLUMNS
    assert [row[1] for row in rows] == ["corpus-0", "corpus-1"]
    assert run_script(ANALYZE, *asked, "--print-table", cwd=run).stdout.splitlines()[7:11] == TABLE


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((), "nothing to look at"),
        (("--checkpoint", "none.ckpt"), "none.ckpt"),
        (("--checkpoint", "empty.ckpt"), "empty"),
        (("--checkpoint", "checkpoints/step=7.ckpt", "--config", "none.yaml"), "none.yaml"),
        (("--checkpoint",), "--checkpoint has 0 values"),
    ],
)
def test_wrong_input_is_one_line(run, asked, said):
    (run / "empty.ckpt").write_bytes(b"")

    done = run_script(ANALYZE, *asked, cwd=run)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr.lower()
    assert len(done.stderr.splitlines()) == 1
