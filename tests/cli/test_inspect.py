"""The command says how far sources were read, changes nothing, and fails in one line."""

from __future__ import annotations

import json
import os
import shutil
from itertools import islice

import pytest
import torch

import playhead
from playhead.errors import ConfigError
from playhead.inspect import inspect_checkpoint
from support.command import run_command
from support.corpus import nemo_corpus

CONFIG = """
model:
  train_ds:
    input_cfg:
      - {{type: nemo, manifest_filepath: {a}, weight: 0.7, corpus: first, language: en}}
      - {{type: nemo, manifest_filepath: {b}, weight: 0.3, corpus: second}}
    batch_duration: 3
    max_duration: 0.6
    shuffle: true
    seed: 3
    window_draws: 30
    micro_batches_per_step: 2
  validation_ds:
    manifest_filepath: {c}
    batch_size: 4
    shuffle: false
"""


class Ids(torch.utils.data.Dataset):
    """Names and seconds of what it is given."""

    def __getitem__(self, cuts):
        return [(cut.supervisions[0].text.split()[0], cut.duration) for cut in cuts]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of nine steps, its checkpoint, and what it was given."""
    root = tmp_path_factory.mktemp("run")
    (root / "ckpt").mkdir()
    corpora = {
        "a": nemo_corpus(root / "a", [0.1 + 0.01 * n for n in range(40)], prefix="a"),
        "b": nemo_corpus(root / "b", [0.2 + 0.02 * n for n in range(25)], prefix="b"),
        "c": nemo_corpus(root / "c", [0.1 + 0.01 * n for n in range(9)], prefix="c"),
    }
    (root / "config.yaml").write_text(CONFIG.format(**corpora))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(root / "cache"))
        options = {"dataset": Ids(), "rank": 0, "world_size": 1, "num_workers": 0}
        training = playhead.dataloader(str(root / "config.yaml"), **options)
        validation = playhead.dataloader(
            str(root / "config.yaml"), section="validation_ds", **options
        )
        given = [sample for batch in islice(training, 18) for sample in batch]
        list(islice(validation, 2))
    checkpoint = {
        "loops": {"fit_loop": {"state_dict": {"combined_loader": [training.state_dict()]}}},
        "callbacks": {"validation": json.dumps(validation.state_dict())},
        "state_dict": {"w": torch.zeros(3)},
    }
    torch.save(checkpoint, root / "ckpt" / "step=9.ckpt")
    (root / "state.json").write_text(json.dumps(training.state_dict()))
    training.close()
    validation.close()
    return root, given


def _shown(run, *arguments):
    ran = run_command("inspect", *arguments, "--json", cwd=run[0])
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_items_and_hours_are_what_the_loader_gave(run):
    root, given = run
    summary = _shown(run, root / "ckpt" / "step=9.ckpt")
    assert summary["config_path"].endswith("config.yaml")
    for row, name, dataset in zip(summary["rows"], "ab", ["first/en", "second"], strict=True):
        mine = [seconds for prefix, seconds in given if prefix == name]
        assert row["dataset"] == dataset
        assert row["consumed_items"] == len(mine)
        assert row["consumed_hours"] == pytest.approx(sum(mine) / 3600)
        assert row["observed_weight"] == pytest.approx(len(mine) / len(given))
        assert row["utilization_pct"] == pytest.approx(100 * len(mine) / row["total_items"])
    assert [row["total_items"] for row in summary["rows"]] == [40, 21]
    assert [row["desired_weight"] for row in summary["rows"]] == pytest.approx([0.7, 0.3])
    overall = summary["overall"]
    assert overall["pass"] == 0
    assert (overall["step"], overall["micro_batches_per_step"], overall["seed"]) == (9, 2, 3)
    assert overall["padding_of"] == "all steps"


def test_the_padding_is_that_of_the_batches(run):
    root, _ = run
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(root / "cache"))
        loader = playhead.dataloader(
            str(root / "config.yaml"), dataset=Ids(), rank=0, world_size=1, num_workers=0
        )
        batches = [[seconds for _, seconds in batch] for batch in islice(loader, 18)]
        loader.close()
    real = sum(map(sum, batches))
    padded = sum(max(batch) * len(batch) for batch in batches)
    shown = _shown(run, root / "state.json")["overall"]["padding"]
    assert shown == pytest.approx(1 - real / padded, rel=1e-6)
    # Without leave to plan again, it is of the running window alone, or of nothing.
    little = _shown(run, root / "state.json", "--replay-draws", 0)["overall"]
    assert little["padding_of"] != "all steps"


def test_both_loaders_of_a_checkpoint_are_shown_each_with_its_section(run):
    root, _ = run
    ran = run_command("inspect", root / "ckpt", cwd=root)
    assert ran.returncode == 0
    assert "combined_loader[0]" in ran.stdout
    assert "callbacks.validation" in ran.stdout
    validation = _shown(run, root / "ckpt", "--loader", "callbacks.validation")
    assert validation["overall"]["finite"]
    assert validation["overall"]["steps_left"] == 1
    (row,) = validation["rows"]
    assert (row["consumed_items"], row["total_items"]) == (8, 9)
    assert row["hours_left"] == pytest.approx(0.18 / 3600)
    wrong = run_command("inspect", root / "ckpt", "--loader", "nowhere", cwd=root)
    assert wrong.returncode == 2
    assert "combined_loader[0]" in wrong.stderr


def test_nothing_is_built_or_written(run, tmp_path):
    root, _ = run
    before = sorted(path for path in root.rglob("*"))
    ran = run_command(
        "inspect", root / "state.json", cwd=tmp_path, PLAYHEAD_CACHE=str(tmp_path / "none")
    )
    assert ran.returncode == 0
    assert "playhead index" in ran.stdout
    assert "first/en" in ran.stdout
    assert sorted(path for path in root.rglob("*")) == before
    assert list(tmp_path.iterdir()) == []


def test_without_a_config_sources_have_their_keys(run, tmp_path):
    root, given = run
    shutil.copy(root / "state.json", tmp_path / "state.json")
    summary = _shown(run, tmp_path / "state.json")
    assert summary["config_path"] is None
    assert any("--config" in note for note in summary["notes"])
    state = json.loads((tmp_path / "state.json").read_text())
    assert [row["dataset"] for row in summary["rows"]] == list(state["leaves"])
    # Of the second source the filter has refused some of the rows that are counted.
    assert sum(row["consumed_items"] for row in summary["rows"]) >= len(given)


def test_what_a_resume_would_say_is_among_the_notes(run, tmp_path):
    root, _ = run
    text = (root / "config.yaml").read_text()
    (tmp_path / "new.yaml").write_text(text.replace("seed: 3", "seed: 4").replace("0.7", "0.9"))
    summary = _shown(run, root / "state.json", "--config", tmp_path / "new.yaml")
    notes = "\n".join(summary["notes"])
    assert "has seed 3 and the config has 4" in notes
    assert [row["desired_weight"] for row in summary["rows"]] == pytest.approx([0.75, 0.25])


def test_a_source_that_is_gone_keeps_its_row_and_a_new_one_gets_one(run, tmp_path):
    root, _ = run
    text = (root / "config.yaml").read_text()
    (tmp_path / "new.yaml").write_text(text.replace(f"{root / 'b'}/", f"{root / 'c'}/"))
    summary = _shown(run, root / "state.json", "--config", tmp_path / "new.yaml")
    notes = {row["dataset"]: row["notes"] for row in summary["rows"]}
    assert "new" in notes["second"]
    (gone,) = [note for name, note in notes.items() if name not in ("first/en", "second")]
    assert "gone" in gone


def test_changed_data_are_named_and_not_counted(run, tmp_path):
    root, _ = run
    shutil.copytree(root, tmp_path / "run")
    manifest = tmp_path / "run" / "a" / "manifest.json"
    state = json.loads((root / "state.json").read_text())
    key = next(key for key, entry in state["leaves"].items() if entry[2] == 40)
    state["leaves"][key][3] = "0" * 16
    (tmp_path / "state.json").write_text(json.dumps(state))
    summary = _shown(run, tmp_path / "state.json", "--config", root / "config.yaml")
    assert "not those that were drawn from" in summary["rows"][0]["notes"]
    assert any("a resume would stop" in note for note in summary["notes"])
    assert manifest.exists()


def test_files_are_written_where_they_are_asked_for(run, tmp_path):
    root, _ = run
    ran = run_command("inspect", root / "state.json", "--output-dir", tmp_path / "out", cwd=root)
    assert (ran.returncode, ran.stdout) == (0, "")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["summary.csv", "summary.json", "summary.md"]
    ran = run_command(
        *("inspect", "--state-json", root / "state.json"),
        *("--output-csv", tmp_path / "x.csv", "--print-table"),
        cwd=root,
    )
    assert "first/en" in ran.stdout
    assert (tmp_path / "x.csv").read_text().startswith("source_index,dataset,")


def test_the_latest_step_of_a_folder_is_shown_and_the_others_named(run, tmp_path):
    root, _ = run
    state = json.loads((root / "state.json").read_text())
    for step in (9, 7):
        for rank in (0, 1):
            saved = {"rank": rank, "loader": {**state, "step": step}}
            torch.save(saved, tmp_path / f"step{step}-rank{rank}.pt")
    summary = inspect_checkpoint(tmp_path)
    assert summary.overall.step == 9
    (note,) = [note for note in summary.notes if "other steps" in note]
    assert "7 (" in note


BAD = {
    "nothing": (lambda path: None, 2, "no such file"),
    "empty": (lambda path: path.write_bytes(b""), 2, "empty"),
    "no state": (lambda path: path.write_text('{"epoch": 1}'), 2, "No position"),
    "an empty folder": (lambda path: path.mkdir(), 2, "checkpoint"),
    "no checkpoint": (lambda path: path.write_text("seed: 1\n"), 2, "neither"),
    "half": (lambda path: path.write_text('{"epoch": '), 1, "not complete JSON"),
    "another version": (
        lambda path: path.write_text(json.dumps(dict.fromkeys(_KEYS, 9))),
        2,
        "version 9",
    ),
}
_KEYS = ("version", "plan", "seed", "W", "step", "window", "leaves", "chain")


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(tmp_path, name):
    make, code, said = BAD[name]
    make(tmp_path / "x")
    ran = run_command("inspect", tmp_path / "x", cwd=tmp_path)
    assert ran.returncode == code
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert said in ran.stderr


def test_a_hostile_name_in_a_checkpoint_steers_no_terminal(tmp_path):
    state = {"\x1b]0;x\r\n\u202e\ud800": dict.fromkeys(_KEYS, 9)}
    (tmp_path / "x").write_text(json.dumps(state))
    ran = run_command("inspect", tmp_path / "x", cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.rstrip("\n").isprintable()


@pytest.mark.skipif(os.geteuid() == 0, reason="this user may read everything")
def test_a_file_that_may_not_be_read_is_one_line(tmp_path):
    (tmp_path / "x").write_text("{}")
    (tmp_path / "x").chmod(0)
    ran = run_command("inspect", tmp_path / "x", cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1


def test_nothing_to_look_at_and_a_bad_config_are_said(run, tmp_path):
    assert run_command("inspect", cwd=tmp_path).returncode == 2
    ran = run_command("inspect", run[0] / "state.json", "--config", "no.yaml", cwd=tmp_path)
    assert ran.returncode == 2
    assert "no.yaml" in ran.stderr


def test_several_parts_are_counted_each_by_itself(run, tmp_path):
    root, _ = run
    config = tmp_path / "config.yaml"
    config.write_text(
        f"""
train_ds:
  multi_config: true
  sampler_fusion: round_robin
  seed: 5
  shuffle: true
  one:
    input_cfg:
      - {{type: nemo, manifest_filepath: {root / "a" / "manifest.json"}, weight: 1, name: x}}
      - {{type: nemo, manifest_filepath: {root / "b" / "manifest.json"}, weight: 1, name: y}}
    batch_size: 3
    window_draws: 20
  two:
    input_cfg:
      - {{type: nemo, manifest_filepath: {root / "c" / "manifest.json"}, weight: 1, name: z}}
      - {{type: nemo, manifest_filepath: {root / "b" / "manifest.json"}, weight: 3, name: w}}
    batch_duration: 2
    window_draws: 30
"""
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(root / "cache"))
        loader = playhead.dataloader(
            str(config), dataset=Ids(), rank=0, world_size=1, num_workers=0
        )
        given = [sample for batch in islice(loader, 25) for sample in batch]
        (tmp_path / "state.json").write_text(json.dumps(loader.state_dict()))
        loader.close()
    summary = _shown(run, tmp_path / "state.json")
    names = [row["dataset"] for row in summary["rows"]]
    assert [name.rpartition("/")[2] for name in names] == ["x", "y", "z", "w"]
    assert sum(row["consumed_items"] for row in summary["rows"]) == len(given)
    hours = sum(row["consumed_hours"] for row in summary["rows"])
    assert hours == pytest.approx(sum(seconds for _, seconds in given) / 3600)
    assert [row["desired_weight"] for row in summary["rows"]] == [0.5, 0.5, 0.25, 0.75]
    assert summary["overall"]["step"] == 25
    assert summary["overall"]["padding_of"] == "all steps"
    # Without a config the parts are told apart all the same.
    (tmp_path / "alone").mkdir()
    shutil.move(tmp_path / "state.json", tmp_path / "alone" / "state.json")
    config.unlink()
    alone = _shown(run, tmp_path / "alone" / "state.json")
    assert [row["dataset"][:4] for row in alone["rows"]] == ["one/", "one/", "two/", "two/"]


def test_a_config_with_the_section_of_the_position_alone_will_do(run, tmp_path):
    root, _ = run
    config = tmp_path / "validation.yaml"
    _, _, validation = (root / "config.yaml").read_text().partition("  validation_ds:")
    config.write_text(f"validation_ds:{validation}")
    summary = inspect_checkpoint(root / "ckpt", config, loader="validation")
    assert [row.total_items for row in summary.rows] == [9]
    with pytest.raises(ConfigError, match="no training section"):
        inspect_checkpoint(root / "ckpt", config)


def test_a_config_of_another_run_is_told(run, tmp_path):
    root, _ = run
    config = tmp_path / "other.yaml"
    config.write_text(f"{{manifest_filepath: {root / 'c' / 'manifest.json'}, batch_size: 1}}")
    notes = inspect_checkpoint(root / "state.json", config).notes
    assert any("config of another run?" in note for note in notes)
    own = inspect_checkpoint(root / "state.json", root / "config.yaml").notes
    assert not any("another run" in note for note in own)


def test_hours_of_some_sources_are_not_those_of_the_run(run, tmp_path, monkeypatch):
    root, _ = run
    for folder in ("a", "b"):
        shutil.copytree(root / folder, tmp_path / folder)
    text = (root / "config.yaml").read_text().replace(str(root), str(tmp_path))
    (tmp_path / "config.yaml").write_text(text)
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    loader = playhead.dataloader(
        str(tmp_path / "config.yaml"), dataset=Ids(), rank=0, world_size=1, num_workers=0
    )
    plans = loader.state_dict()
    (tmp_path / "state.json").write_text(json.dumps(plans))
    loader.close()
    with (tmp_path / "a" / "manifest.json").open("a") as manifest:
        manifest.write('{"audio_filepath": "x.wav", "duration": 0.3, "text": "x"}\n')
    summary = inspect_checkpoint(tmp_path / "state.json", tmp_path / "config.yaml")
    assert [row.consumed_hours for row in summary.rows] == [None, 0]
    assert summary.overall.hours is None


def test_passes_that_zip_cuts_short_are_told(run, tmp_path):
    root, _ = run
    parts = {
        name: {"manifest_filepath": str(root / file / "manifest.json"), "batch_size": 3}
        for name, file in (("long", "a"), ("short", "c"))
    }
    blend = {"multi_config": True, "sampler_fusion": "zip", "seed": 5, "shuffle": True, **parts}
    (tmp_path / "config.yaml").write_text(json.dumps({"train_ds": {**blend, "force_finite": True}}))
    notes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(root / "cache"))
        loader = playhead.dataloader(
            str(tmp_path / "config.yaml"), dataset=Ids(), rank=0, world_size=1, num_workers=0
        )
        for taken in (0, None, None, 1):
            list(islice(loader, taken))
            (tmp_path / "state.json").write_text(json.dumps(loader.state_dict()))
            summary = inspect_checkpoint(tmp_path / "state.json", tmp_path / "config.yaml")
            notes.append(any("zip" in note for note in summary.notes))
        loader.close()
    # Of a first pass that has just come to its end, all is known: what is left of each is seen.
    assert notes == [False, False, True, True]


@pytest.mark.parametrize("left_early", [True, False])
def test_passes_that_were_left_in_the_middle_are_told(run, tmp_path, left_early):
    root, _ = run
    config = tmp_path / "config.yaml"
    manifest = root / "c" / "manifest.json"
    config.write_text(f"{{manifest_filepath: {manifest}, batch_size: 2, force_finite: true}}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(root / "cache"))
        loader = playhead.dataloader(
            str(config), dataset=Ids(), rank=0, world_size=1, num_workers=0
        )
        for taken in (2 if left_early else None, 2):
            list(islice(loader, taken))
        (tmp_path / "state.json").write_text(json.dumps(loader.state_dict()))
        loader.close()
        summary = inspect_checkpoint(tmp_path / "state.json", config)
    assert summary.overall.pass_ == 1
    assert any("left in the middle" in note for note in summary.notes) == left_early
