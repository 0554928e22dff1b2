"""The script that checks a config before anything runs, by the command line of the guide."""

from __future__ import annotations

import json

import pytest

from playhead.check.preflight.rule import rules
from playhead.cli.nemo_names.checking import _NAMES_HERE
from support.command import run_script
from support.corpus import nemo_corpus

CHECK = "dataloading/_validate_dataloader/pre_validation.py"


@pytest.fixture
def folder(tmp_path):
    nemo_corpus(tmp_path / "data", [0.2, 0.3])
    (tmp_path / "train.yaml").write_text(
        "data:\n  train_ds:\n    input_cfg:\n    - type: nemo\n"
        "      manifest_filepath: ${data_blend_dir}/manifest.json\n"
        "    batch_size: 2\n    sample_rate: 16000\n    seed: randomized\n"
    )
    return tmp_path


def check(folder, *flags, config="train.yaml"):
    return run_script(
        CHECK,
        *("--config", config, "--data-blend-dir", folder / "data", "--section", "train_ds"),
        *("--output-dir", "out/checks", *flags),
        cwd=folder,
    )


def written(folder):
    return json.loads((folder / "out/checks/pre_validation.json").read_text())


def test_every_check_has_a_status_and_they_add_up(folder):
    done = check(folder, "-v")
    assert done.returncode == 0, done.stderr
    found = written(folder)
    assert {*found} == {"checks", "summary"}
    statuses = [one["status"] for one in found["checks"].values()]
    assert {*statuses} <= {"PASS", "WARN", "FAIL", "SKIP"}
    summary = found["summary"]
    assert summary.pop("total") == len(statuses) == len(list(rules()))
    assert summary == {
        status.lower(): statuses.count(status) for status in ("PASS", "WARN", "FAIL", "SKIP")
    }
    seed = found["checks"]["seed-drawn"]
    assert (seed["status"], seed["severity"]) == ("WARN", "warning")
    assert f"  WARN  seed-drawn: {seed['detail']}" in done.stdout.splitlines()
    assert done.stderr == "Wrote out/checks/pre_validation.json.\n"


def test_a_check_that_fails_ends_with_1_unless_it_is_ignored(folder):
    text = (folder / "train.yaml").read_text()
    (folder / "train.yaml").write_text(text + "    max_durration: 30\n")
    done = check(folder)
    assert done.returncode == 1
    assert written(folder)["checks"]["misspelt-key"]["status"] == "FAIL"
    assert "  FAIL  misspelt-key: " in done.stdout
    names = [name for name, one in written(folder)["checks"].items() if one["status"] == "FAIL"]
    flags = [flag for name in names for flag in ("--ignore-fail", name)]
    done = check(folder, *flags)
    assert done.returncode == 0, done.stderr
    assert written(folder)["checks"]["misspelt-key"]["status"] == "WARN"


def test_the_names_of_the_guide_are_understood(folder):
    flags = ("--ignore-fail", "idx-files-present", "--ignore-fail", "stateful-on")
    done = check(folder, *flags)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[:2] == [
        "note: the check idx-files-present is called index-missing and index-stale here",
        "note: the check stateful-on is not needed here",
    ]
    assert {name for here in _NAMES_HERE.values() for name in here} <= {one.id for one in rules()}
    assert len(_NAMES_HERE) == 16


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--ignore-fail", "no-such-check"), "There is no rule 'no-such-check'"),
        (("--config", "gone.yaml"), "gone.yaml"),
        (("--config", "half.yaml"), "half.yaml"),
        (("--config", "empty.yaml"), "empty.yaml"),
        (("--section", "no_ds"), "no_ds"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(folder, flags, said):
    (folder / "half.yaml").write_text("data: {train_ds: {input_cfg: [\n")
    (folder / "empty.yaml").write_text("")
    done = check(folder, *flags)
    assert (done.returncode, done.stdout) == (2, "")
    *_, line = done.stderr.splitlines()
    assert line.startswith("playhead: ")
    assert said in line
    assert not (folder / "out").exists()


def test_a_config_and_a_folder_are_needed(folder):
    done = run_script(CHECK, "--output-dir", "out", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "playhead: --config is missing. Give it; --help lists all.\n"
