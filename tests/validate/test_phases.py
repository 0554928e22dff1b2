"""Phases, run rank by rank in this process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from playhead.errors import ConfigError, PositionError, SourceNotFoundError
from playhead.loader.ranks import Topology
from playhead.validate.meta import RunMeta, read_meta
from playhead.validate.options import PhaseOptions
from playhead.validate.phases import run_phase
from playhead.validate.rows import log_path, state_path, throughput_path
from support.ten_cuts import Corpus, make


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make(tmp_path_factory.mktemp("ten"), [0.2 * (n + 1) for n in range(10)])


@pytest.fixture
def config(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    entries = [{**corpus.entry("nemo"), "weight": 1}, {**corpus.entry("shar"), "weight": 1}]
    path = tmp_path / "blend.yaml"
    path.write_text(
        yaml.safe_dump({"input_cfg": entries, "batch_duration": 3, "shuffle": True, "seed": 5})
    )
    return path


def run(config: Path, world: int = 1, **options: Any) -> tuple[RunMeta, list[dict[str, Any]]]:
    """What a phase says of itself, and its rows, rank after rank."""
    asked = PhaseOptions(config=str(config), output_dir=config.parent / "out", **options)
    said: list[str] = []
    rows: list[dict[str, Any]] = []
    for rank in range(world):
        meta = run_phase(asked, Topology(rank=rank, world_size=world), say=said.append)
        log = log_path(asked.output_dir, asked.phase, asked.run, rank)
        rows += map(json.loads, log.read_text().splitlines())
    assert read_meta(asked.output_dir, asked.phase, asked.run).is_over
    return meta, rows


def places(rows: list[dict[str, Any]]) -> list[str]:
    return [place for row in rows for place in row["cut_ids"]]


def by_slot(rows: list[dict[str, Any]]) -> dict[tuple[int, int], Any]:
    return {(row["of_step"], row["slot"]): (row["cut_ids"], row["digest"]) for row in rows}


def test_a_baseline_of_a_whole_pass_has_every_sample_of_the_truth_once(config: Path) -> None:
    meta, rows = run(config, 2, phase="baseline")
    _, truth = run(config, phase="groundtruth")
    assert meta.is_exhausted
    assert len(places(truth)) == 20
    assert sorted(places(rows)) == sorted(places(truth))
    # Two corpora call their samples alike, and a place is no id.
    assert len({name for row in rows for name in row["semantic_cut_ids"]}) == 20


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_that_divide_the_step_go_on_with_the_same_batches(
    config: Path, world: int, workers: int
) -> None:
    meta, whole = run(config, 4, phase="baseline", checkpoint_at=1, mode="full")
    states = config.parent / "out" / "baseline" / "run0"
    resumed, rest = run(
        config, world, phase="resumed", state_dir=states, num_workers=workers, mode="full"
    )
    assert resumed.first_step == 2
    assert resumed.micro_batches_per_step == 4
    assert resumed.config_digest == meta.config_digest
    wanted = {place: what for place, what in by_slot(whole).items() if place[0] > 1}
    assert by_slot(rest) == wanted
    assert all(row["digest"] for row in rest)
    assert {row["worker_id"] for row in rest} <= {0, 1}


def test_ranks_that_cannot_share_the_step_get_every_sample_that_is_left(config: Path) -> None:
    _, whole = run(config, 2, phase="baseline", checkpoint_at=1)
    states = config.parent / "out" / "baseline" / "run0"
    with (
        pytest.warns(UserWarning, match="which 3 ranks cannot share"),
        pytest.warns(UserWarning, match="dealt out anew"),
    ):
        resumed, rest = run(config, 3, phase="resumed", state_dir=states)
    assert resumed.micro_batches_per_step == 3
    assert resumed.is_exhausted
    before = [row for row in whole if row["of_step"] < 2]
    assert sorted(places(before) + places(rest)) == sorted(places(whole))


def test_a_state_asked_for_inside_a_step_is_saved_at_its_end(config: Path) -> None:
    text = config.read_text() + "micro_batches_per_step: 4\n"
    config.write_text(text)
    meta, whole = run(config, 1, phase="baseline", checkpoint_at=1)
    assert meta.checkpoint_at == 3
    states = config.parent / "out" / "baseline" / "run0"
    _, rest = run(config, 2, phase="resumed", state_dir=states)
    assert by_slot(rest) == {place: what for place, what in by_slot(whole).items() if place[0]}


def test_an_endless_run_goes_on_for_as_long_as_its_baseline_did(config: Path) -> None:
    options = {"force_finite": False, "steps": 30}
    meta, whole = run(config, 2, phase="baseline", checkpoint_at=9, **options)
    assert not meta.is_finite
    assert not meta.is_exhausted
    assert len(set(places(whole))) == len(places(whole)) > 40
    states = config.parent / "out" / "baseline" / "run0"
    resumed, rest = run(config, 1, phase="resumed", state_dir=states, force_finite=False)
    assert resumed.batches == 40
    assert by_slot(rest) == {place: what for place, what in by_slot(whole).items() if place[0] > 9}


def test_rows_say_what_a_rank_waited_for(config: Path) -> None:
    _, rows = run(config, 1, phase="baseline", steps=3)
    first, second, _ = rows
    assert first["t_first_batch_ms"] == first["t_total_ms"] > 0
    assert second["t_first_batch_ms"] is None
    assert round(second["t_total_ms"], 3) == second["t_total_ms"]
    assert first["batch_size"] == len(first["source_ids"]) == len(first["semantic_cut_ids"])
    assert 0 < first["declared_duration_seconds"] <= 3
    figures = json.loads(throughput_path(config.parent / "out", 0).read_text())
    assert figures["count"] == 2
    assert figures["t_first_batch_ms"] == first["t_total_ms"]


def test_all_ranks_save_one_position_as_torch_does(config: Path) -> None:
    run(config, 2, phase="baseline", checkpoint_at=1)
    one, two = (
        torch.load(state_path(config.parent / "out", 0, rank), weights_only=True)
        for rank in range(2)
    )
    assert one == two
    assert one["step"] == 2


def test_what_an_earlier_run_of_more_ranks_left_is_removed(config: Path) -> None:
    run(config, 4, phase="baseline", checkpoint_at=1)
    run(config, 2, phase="baseline")
    folder = config.parent / "out" / "baseline" / "run0"
    assert sorted(path.name for path in folder.iterdir()) == [
        "meta.json",
        "rank_000.jsonl",
        "rank_001.jsonl",
        "throughput_rank_000.json",
        "throughput_rank_001.json",
    ]


def test_a_full_run_says_what_its_batches_held(config: Path) -> None:
    run(config, 1, phase="baseline", mode="full")
    path = config.parent / "out" / "baseline" / "run0" / "full_summary_rank_000.json"
    summary = json.loads(path.read_text())
    assert summary["samples"] == 20
    assert summary["bytes"] > 20_000
    assert summary["fields"]['batch["audio"]'].startswith("float32 tensor")
    assert summary["not_compared"] == {}


@pytest.mark.parametrize("batch_size", [1, 3])
def test_samples_that_cannot_be_read_are_left_out_by_name(
    corpus: Corpus, config: Path, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = config.parent / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    folder = config.parent / "broken"
    shutil.copytree(corpus.folder, folder)
    (folder / "cut-0004.wav").write_bytes(b"no sound")
    entry = {"type": "nemo", "manifest_filepath": str(folder / corpus.manifest.name)}
    section = {"input_cfg": [entry], "batch_size": batch_size, "shuffle": True, "seed": 5}
    config.write_text(yaml.safe_dump({**section, "fault_tolerant_audio_loading": True}))
    _, rows = run(config, 2, phase="baseline", mode="full")
    _, truth = run(config, phase="groundtruth")
    (lost,) = (place for row in rows for place in row["left_out"])
    # Of an empty batch another takes the place, and none of its samples counts twice.
    assert lost.endswith(":4:0")
    assert sorted([lost, *places(rows)]) == sorted(places(truth))
    # Nothing is added to the list of whoever trains in this folder.
    assert not list(here.iterdir())
    (listed,) = (config.parent / "out" / "baseline" / "run0").glob("bad_samples*.jsonl")
    assert "cut-0004" in listed.read_text()


def test_a_seed_that_is_drawn_is_another_one_here(config: Path) -> None:
    config.write_text(config.read_text().replace("seed: 5", "seed: randomized"))
    one, rows = run(config, 1, phase="baseline")
    two, again = run(config, 1, phase="baseline", run=1)
    assert one.seed == two.seed == 0
    assert by_slot(rows) == by_slot(again)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04half", b"{}"], ids=["empty", "half", "of_something_else"]
)
def test_a_state_that_cannot_be_read_is_named(config: Path, content: bytes) -> None:
    states = config.parent / "states"
    states.mkdir()
    (states / "state_rank_000.pt").write_bytes(content)
    with pytest.raises(PositionError, match="This is no state: ") as caught:
        run(config, 1, phase="resumed", state_dir=states)
    assert caught.value.exit_code == 2
    assert "state_rank_000.pt" in str(caught.value)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ([1, 2], "This is no state but a list"),
        ({}, "not a position of Playhead"),
        ({"train_dataloader_per_rank": []}, "not a position of Playhead"),
    ],
)
def test_a_state_of_something_else_is_named(config: Path, state: Any, message: str) -> None:
    states = config.parent / "states"
    states.mkdir()
    torch.save(state, states / "state_rank_000.pt")
    with pytest.raises(PositionError, match=message) as caught:
        run(config, 1, phase="resumed", state_dir=states)
    assert caught.value.exit_code == 2


def test_a_state_of_other_data_is_refused(config: Path, corpus: Corpus) -> None:
    run(config, 1, phase="baseline", checkpoint_at=1)
    manifest = config.parent / "manifest.json"
    lines = corpus.manifest.read_text().splitlines(keepends=True)
    manifest.write_text("".join(lines[:-1]))
    other = config.with_name("other.yaml")
    entry = {"name": corpus.entry("nemo")["manifest_filepath"], "type": "nemo"}
    text = yaml.safe_load(config.read_text())
    text["input_cfg"][0] = {**entry, "manifest_filepath": str(manifest), "weight": 1}
    other.write_text(yaml.safe_dump(text))
    original = yaml.safe_load(config.read_text())
    original["input_cfg"][0]["name"] = entry["name"]
    config.write_text(yaml.safe_dump(original))
    run(config, 1, phase="baseline", checkpoint_at=1)
    states = config.parent / "out" / "baseline" / "run0"
    with pytest.raises(PositionError, match="manifest") as caught:
        run(other, 1, phase="resumed", state_dir=states)
    assert caught.value.exit_code == 2


def test_states_of_different_positions_are_refused(config: Path) -> None:
    run(config, 2, phase="baseline", checkpoint_at=1)
    states = config.parent / "out" / "baseline" / "run0"
    state = torch.load(states / "state_rank_001.pt", weights_only=True)
    torch.save({**state, "step": 99}, states / "state_rank_001.pt")
    with pytest.raises(PositionError, match="ranks 0 and 1 are of different positions"):
        run(config, 2, phase="resumed", state_dir=states)


def test_a_folder_without_states_is_named(config: Path) -> None:
    with pytest.raises(SourceNotFoundError, match=r"no state_rank_NNN\.pt .*nowhere"):
        run(config, 1, phase="resumed", state_dir=config.parent / "nowhere")


@pytest.mark.parametrize("step", [9, 10, 500])
def test_a_state_after_the_last_batch_is_refused_before_anything_runs(
    config: Path, step: int
) -> None:
    with pytest.raises(ConfigError, match="no batch is left"):
        run(config, 1, phase="baseline", checkpoint_at=step, steps=10)
    assert not (config.parent / "out").exists()


def test_a_state_after_the_end_of_a_pass_is_refused_with_how_long_a_pass_is(config: Path) -> None:
    batches = run(config, 1, phase="baseline", steps=100_000)[0].batches
    for last in (batches - 1, batches + 50):
        with pytest.raises(ConfigError, match=f"rank has {batches} batches, and after batch"):
            run(config, 1, phase="baseline", checkpoint_at=last, steps=100_000)


def test_the_truth_is_told_by_one_process(config: Path) -> None:
    with pytest.raises(ConfigError, match="by one rank, and the launcher started 2"):
        run(config, 2, phase="groundtruth")


def test_other_ranks_than_were_asked_for_are_refused(config: Path) -> None:
    with pytest.raises(ConfigError, match="--resume-world-size is 3"):
        run(config, 2, phase="baseline", world_size=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"phase": "resumed"}, "needs a state"),
        ({"phase": "groundtruth", "force_finite": False}, "no whole pass"),
        ({"phase": "baseline", "dataset": object()}, "Add --mode full"),
        ({"phase": "baseline", "steps": 0}, "below 1"),
        ({"phase": "baseline", "run": -1}, "below 0"),
        ({"phase": "baseline", "num_workers": -1}, "below 0"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PhaseOptions(config="x.yaml", output_dir=Path("out"), **options)
