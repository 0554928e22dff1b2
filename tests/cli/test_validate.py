"""`playhead validate`: one phase as the guides have it, all of them at once, and wrong inputs."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
import torch
import yaml

from playhead.cli.validate import _blamed
from playhead.cli.validate import validate as validate_everything
from playhead.errors import ConfigError, WorkerError
from playhead.storage.held import hold
from playhead.validate.meta import RunMeta, read_meta
from support.command import Ran, run_command
from support.corpus import nemo_corpus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.validate.launch import Validation
    from playhead.validate.options import PhaseOptions

    Playhead = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    manifest = nemo_corpus(tmp_path, [0.1 + 0.01 * n for n in range(16)])
    section = {"manifest_filepath": str(manifest), "batch_size": 2, "shuffle": True, "seed": 1}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"data": {"train_ds": section}}))
    return tmp_path


@pytest.fixture
def playhead(folder: Path) -> Playhead:
    return lambda *arguments, **environment: run_command(
        "validate", *arguments, cwd=folder, **environment
    )


META = RunMeta(
    phase="baseline",
    run=0,
    is_over=True,
    world_size=2,
    micro_batches_per_step=2,
    num_workers=0,
    mode="fast",
    config_digest="c0ffee",
    seed=1,
    is_finite=True,
    steps=4,
)
GUIDE = ("--config", "config.yaml", "--output-dir", "out", "--section", "train_ds")


def test_the_command_lines_of_the_guides_prove_a_config(folder: Path, playhead: Playhead) -> None:
    for run in ("0", "1"):
        ran = playhead(
            *GUIDE, "--phase", "baseline", "--run-idx", run, "--steps", "8", "--checkpoint-at", "3"
        )
        assert ran.returncode == 0, ran.stderr
    ran = playhead(
        *(*GUIDE, "--phase", "resumed", "--state-dir", "out/baseline/run0"), "--steps", "4"
    )
    assert ran.returncode == 0, ran.stderr
    assert "resumed 0: 4 batches of a rank, the pass is over" in ran.stderr
    ran = playhead(*GUIDE, "--phase", "groundtruth", "--force-finite", "--metadata-only")
    assert ran.returncode == 0, ran.stderr
    ran = playhead(
        *("consolidate", "--output-dir", "out", "--checkpoint-at", "3"),
        *("--num-determinism-runs", "2"),
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("PASS") == 5
    report = json.loads((folder / "out" / "validation_report.json").read_text())
    assert [report["questions"][f"Q{n}"]["status"] for n in range(1, 6)] == ["PASS"] * 5


def test_a_phase_says_how_far_it_is(playhead: Playhead) -> None:
    ran = playhead(*GUIDE, "--phase", "baseline", "--steps", "3", "-v")
    assert "baseline 0: 2/3 batches of a rank" in ran.stderr


def test_the_last_yaml_of_entries_stands_in_for_those_of_the_config(
    folder: Path, playhead: Playhead
) -> None:
    other = folder / "other"
    other.mkdir()
    manifest = nemo_corpus(other, [0.3, 0.4, 0.5])
    entries = [{"type": "nemo", "manifest_filepath": str(manifest)}]
    (folder / "entries.yaml").write_text(yaml.safe_dump(entries))
    config = yaml.safe_load((folder / "config.yaml").read_text())
    section = config["data"]["train_ds"]
    section["input_cfg"] = [{"type": "nemo", "manifest_filepath": section.pop("manifest_filepath")}]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    ran = playhead(*GUIDE, "--phase", "groundtruth", "--input-cfg", "entries.yaml")
    assert ran.returncode == 0, ran.stderr
    rows = (folder / "out" / "groundtruth" / "cuts.jsonl").read_text().splitlines()
    assert [len(json.loads(row)["cut_ids"]) for row in rows] == [3]


def test_workers_of_a_resumed_run_are_those_that_are_asked_for(
    folder: Path, playhead: Playhead
) -> None:
    playhead(*GUIDE, "--phase", "baseline", "--checkpoint-at", "3", "--num-workers-override", "0")
    given = ("--phase", "resumed", "--state-dir", "out/baseline/run0")
    ran = playhead(*GUIDE, *given, "--resume-num-workers", "1", "--resume-world-size", "1")
    assert ran.returncode == 0, ran.stderr
    assert read_meta(folder / "out", "baseline", 0).num_workers == 0
    assert read_meta(folder / "out", "resumed", 0).num_workers == 1
    ran = playhead(*GUIDE, *given, "--resume-world-size", "2")
    assert (ran.returncode, "the launcher started 1 rank" in ran.stderr) == (2, True)


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no config": ((), "give the config"),
    "two configs": (("config.yaml", "--config", "other.yaml"), "there are two configs"),
    "unknown config": (("nowhere.yaml",), "no such config"),
    "empty config": (("empty.yaml",), "empty.yaml"),
    "config of something else": (("sound.wav",), "sound.wav"),
    "folder for a config": ((".",), "(.)"),
    "no output": (("config.yaml", "--phase", "baseline"), "--phase needs --output-dir"),
    "no state": ((*GUIDE, "--phase", "resumed"), "needs a state"),
    "no such state": (
        (*GUIDE, "--phase", "resumed", "--state-dir", "nowhere"),
        "no state_rank_NNN.pt",
    ),
    "unknown section": (("config.yaml", "--section", "test_ds"), "test_ds"),
    "unknown phase": ((*GUIDE, "--phase", "both"), "'both'"),
    "state dir without a phase": (("config.yaml", "--state-dir", "x"), "--state-dir needs --phase"),
    "state never saved": (("config.yaml", "--checkpoint-at", "-1"), "nothing to resume"),
    "ranks of something else": (("config.yaml", "--resume-ranks", "two"), "no list of numbers"),
    "no ranks": (("config.yaml", "--resume-ranks", "0"), "no list of numbers"),
    "too few batches": (("config.yaml", "--ranks", "8"), "Each of 8 ranks has 1 batch"),
    "ranks of a launcher": (
        (*GUIDE, "--phase", "baseline", "--ranks", "4"),
        "--ranks does not go with --phase",
    ),
    "deadline of a launcher": (
        (*GUIDE, "--phase", "baseline", "--deadline", "9"),
        "--deadline does not go with --phase",
    ),
    "workers of a run that is not resumed": (
        (*GUIDE, "--phase", "baseline", "--resume-workers", "1"),
        "--resume-workers needs --phase resumed",
    ),
    "length given twice": (("config.yaml", "--whole-pass", "--steps", "4"), "Give one of them"),
    "late state": (("config.yaml", "--steps", "4", "--checkpoint-at", "7"), "no batch is left"),
    "endless pass": (
        ("config.yaml", "--no-force-finite", "--whole-pass", "--input-cfg", "endless.yaml"),
        "no end",
    ),
    "dataset of a fast run": (
        ("config.yaml", "--dataset", "collections:OrderedDict"),
        "Add --mode full",
    ),
    "unknown dataset": (
        ("config.yaml", "--mode", "full", "--dataset", "nothing_here:X"),
        "no module nothing_here",
    ),
    "file for a folder": (("config.yaml", "-o", "sound.wav"), "need a folder, and this is a file"),
    "folder in a file": (
        ("--config", "config.yaml", "--output-dir", "sound.wav/x", "--phase", "baseline"),
        "this is a file",
    ),
    "no logs": (("consolidate", "--output-dir", "nowhere"), "nowhere"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_one_line_and_exit_code_2(
    folder: Path, playhead: Playhead, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = folder / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (folder / "empty.yaml").write_text("")
    (folder / "sound.wav").write_bytes(b"RIFF\0\0\xff")
    entry = {"type": "nemo", "manifest_filepath": str(folder / "manifest.json")}
    (folder / "endless.yaml").write_text(yaml.safe_dump([entry, entry]))
    if name == "endless pass":
        (folder / "config.yaml").write_text("train_ds: {input_cfg: x.yaml, batch_size: 2, seed: 1}")
    arguments, message = WRONG[name]
    ran = playhead(*arguments)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    assert not list(temporary.iterdir())


def test_a_state_of_something_else_is_one_line(folder: Path, playhead: Playhead) -> None:
    torch.save({"train_dataloader_per_rank": []}, folder / "state_rank_000.pt")
    ran = playhead(*GUIDE, "--phase", "resumed", "--state-dir", ".")
    assert ran.returncode == 2
    assert "not a position of Playhead" in ran.stderr
    (folder / "state_rank_000.pt").write_bytes((folder / "state_rank_000.pt").read_bytes()[:200])
    ran = playhead(*GUIDE, "--phase", "resumed", "--state-dir", ".")
    assert ran.returncode == 2
    assert "This is no state" in ran.stderr


def test_a_dataset_that_fails_is_named_by_its_line(folder: Path, playhead: Playhead) -> None:
    (folder / "mine.py").write_text(
        "class Bad:\n"
        "    reads_audio = False\n"
        "    def collate(self, examples, *, sample_rate, sample_keys):\n"
        "        raise KeyError('lost')\n"
    )
    ran = playhead(*GUIDE, "--phase", "baseline", "--mode", "full", "--dataset", "mine:Bad")
    assert ran.returncode == 1
    assert "mine.py:4" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_rank_that_waits_for_one_that_died_does_not_blame_the_dataset() -> None:
    waits = compile("raise RuntimeError('reset by peer')", "lib/torch/distributed/c10d.py", "exec")
    with pytest.raises(WorkerError, match="nother rank ended") as error, _blamed():
        exec(waits)
    assert error.value.exit_code == 1
    fails = compile("raise RuntimeError('mine')", "my_project/data.py", "exec")
    with (
        pytest.raises(ConfigError, match="dataset failed to make a batch: RuntimeError: mine"),
        _blamed(),
    ):
        exec(fails)


def test_ranks_that_do_not_meet_are_told_how_to_start(playhead: Playhead) -> None:
    ran = playhead(*GUIDE, "--phase", "baseline", RANK="0", WORLD_SIZE="2")
    assert ran.returncode == 2
    assert "Start them with torchrun" in ran.stderr


def test_ranks_are_not_started_by_every_process_of_torchrun(
    folder: Path, playhead: Playhead
) -> None:
    ran = playhead("config.yaml", "-o", "out", LOCAL_WORLD_SIZE="2")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Torchrun started 2 of these" in ran.stderr
    assert not (folder / "out").exists()


def test_two_validations_do_not_share_a_folder(
    folder: Path, playhead: Playhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.validate.launch.run_ranks", lambda *_, **__: pytest.fail("runs"))
    log = folder / "out" / "baseline" / "run0" / "rank_000.jsonl"
    for path in (log, folder / "out" / "processes" / "lock"):
        path.parent.mkdir(parents=True)
        path.touch()
    held = hold(folder / "out" / "processes" / "lock")
    assert held is not None
    ran = playhead("config.yaml", "-o", "out")
    assert ran.returncode == 2
    assert "another validation runs in this folder" in ran.stderr.lower()
    assert log.exists()
    held.close()


def test_help_is_of_the_command_and_names_the_one_below(playhead: Playhead) -> None:
    ran = playhead("--help")
    assert ran.returncode == 0
    assert "--resume-ranks" in ran.stdout
    assert "playhead validate consolidate" in ran.stdout
    ran = playhead("consolidate", "--help")
    assert "--num-determinism-runs" in ran.stdout


@pytest.mark.parametrize(
    "asked",
    [
        (),
        ("--section=train_ds", "--input-cfg=entries.yaml", "--data-blend-dir=blend"),
        ("--num-workers-override=3", "--tokenizer=en=a.model,de=b.model"),
        ("--mode=full", "--dataset=collections:OrderedDict"),
        ("--no-force-finite", "--no-metadata-only", "--skip-missing-manifest-entries"),
        ("--fail-on-missing-manifest-entries",),
    ],
    ids=" ".join,
)
def test_phases_are_asked_for_all_that_the_whole_is(
    folder: Path, playhead: Playhead, asked: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: list[Validation] = []
    phases: list[PhaseOptions] = []
    monkeypatch.setattr("playhead.cli.validate._judge", whole.append)
    monkeypatch.setattr(
        "playhead.cli.validate._run_one", lambda options, **_: phases.append(options)
    )
    assert playhead("config.yaml", "-o", "out", "--import=json", *asked).returncode == 0
    arguments = whole[0].arguments
    assert "--import=json" in arguments
    ran = playhead(*arguments, f"--output-dir={folder / 'out'}", "--phase=baseline")
    assert ran.returncode == 0, ran.stderr
    assert phases == [whole[0].options]


def test_one_command_starts_every_phase_with_what_was_asked_for(
    playhead: Playhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, int, list[str]]] = []

    def start(
        name: str, ranks: int, command: Callable[[int], list[str]], *_: Any, **__: Any
    ) -> float:
        started.append((name, ranks, command(0)))
        return 0.0

    monkeypatch.setattr("playhead.validate.launch.run_ranks", start)
    monkeypatch.setattr("playhead.validate.launch.read_meta", lambda *_: META)
    ran = playhead("config.yaml", "-o", "out", "--resume-ranks", "1,4", "--resume-workers", "0,2")
    # Nothing ran, so that there is nothing to judge.
    assert ran.returncode == 2
    assert [(name, ranks) for name, ranks, _ in started] == [
        ("baseline-0", 2),
        ("baseline-1", 2),
        ("resumed-0", 2),
        ("resumed-1", 2),
        ("resumed-2", 2),
        ("resumed-3", 1),
        ("resumed-4", 1),
        ("resumed-5", 4),
        ("resumed-6", 4),
    ]
    assert all(command[:3] == ["-m", "playhead", "validate"] for _, _, command in started)
    baseline, last = started[0][2], started[-1][2]
    assert {"--config=config.yaml", "--steps=4", "--checkpoint-at=2"} <= set(baseline)
    assert {"--phase=resumed", "--resume-ranks=4", "--resume-workers=2"} <= set(last)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), SystemExit(143)], ids=repr)
def test_nothing_is_left_of_a_validation_that_is_interrupted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, interruption: BaseException
) -> None:
    def start(_name: str, _ranks: int, _command: Any, logs: Path, **_: Any) -> float:
        (logs / "s.0.err").write_text("it was said")
        raise interruption

    temporary = folder / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("playhead.validate.launch.run_ranks", start)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with pytest.raises(type(interruption)):
        validate_everything(str(folder / "config.yaml"))
    assert not list(temporary.iterdir())
    with pytest.raises(type(interruption)):
        validate_everything(str(folder / "config.yaml"), output_dir=folder / "out")
    assert (folder / "out" / "processes" / "s.0.err").exists()
