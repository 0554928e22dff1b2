"""The same model on other ranks, killed in between: the same samples, losses and weights."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.distributed.checkpoint import FileSystemReader

from playhead.inspect import inspect_checkpoint
from support.real_speech import RATE
from support.train_torch import TOLERANCE
from support.training_runs import (
    content_of,
    last_words,
    losses_of,
    saved_step,
    start_group,
    starts_of,
    survived,
    wait_until_killable,
)

if TYPE_CHECKING:
    from support.jobs import Server

pytestmark = pytest.mark.e2e

STEPS = 16


def write_config(folder: Path, digits: Path, step: int, *, augmented: bool) -> Path:
    options = {
        "manifest_filepath": str(digits / "manifest.json"),
        "sample_rate": RATE,
        "shuffle": True,
        "force_finite": False,
        "seed": 5,
        "batch_duration": 3,
        "window_draws": 400,
        "micro_batches_per_step": step,
        "num_workers": 0,
    }
    if augmented:
        options |= {"perturb_speed": True, "noise_path": options["manifest_filepath"]}
    path = folder / "config.yaml"
    path.write_text(json.dumps(options))
    return path


def spec_of(folder: Path, config: Path, **more: Any) -> dict[str, Any]:
    return {
        "config": str(config),
        "steps": STEPS,
        "save_every": 3,
        "checkpoint": str(folder / "checkpoint"),
        "logs": str(folder / "logs"),
        "weights": str(folder / "weights.pt"),
        "pause": 0.02,
        **more,
    }


def train_on(
    server: Server, folder: Path, spec: dict[str, Any], ranks: list[int]
) -> dict[str, torch.Tensor]:
    """Train on so many ranks until a kill, then on so many, …, and to the end; the weights."""
    saved = 0
    for stage, size in enumerate(ranks[:-1]):
        jobs = start_group(server, folder / str(stage), {**spec, "steps": None}, size)
        wait_until_killable(spec, saved, partial(last_words, jobs))
        for job in jobs:
            job.kill()
        saved = saved_step(spec)
        assert saved < STEPS, "the last of these runs has nothing left to do"
    for job in start_group(server, folder / "last", spec, ranks[-1]):
        job.finish(90)
    assert [start.ranks for start in starts_of(Path(spec["logs"]))] == [
        size for size in ranks for _ in range(size)
    ]
    return torch.load(spec["weights"])


def check_elastic(server: Server, folder: Path, config: Path, ranks: list[int], **how: Any) -> None:
    whole = spec_of(folder / "whole", config, pause=0)
    wanted = train_on(server, folder / "whole", whole, [1])
    stopped = spec_of(folder / "stopped", config, **how)
    weights = train_on(server, folder / "stopped", stopped, ranks)
    history, expected = survived(Path(stopped["logs"])), survived(Path(whole["logs"]))
    assert content_of(history) == content_of(expected)
    losses = losses_of(expected)
    assert losses_of(history) == pytest.approx(losses, abs=TOLERANCE)
    assert sum(losses[-4:]) < sum(losses[:4])
    for name, weight in wanted.items():
        torch.testing.assert_close(weights[name], weight, rtol=0, atol=TOLERANCE)


def check_positions(checkpoints: Path) -> None:
    """One object in each, whoever wrote it, which can be looked at beside sharded tensors."""
    folders = [path.parent for path in checkpoints.glob("*/.metadata")]
    assert len(folders) == STEPS // 3
    for folder in folders:
        stored = FileSystemReader(folder).read_metadata().storage_data
        assert [index.fqn for index in stored].count("loader.position") == 1
        assert inspect_checkpoint(folder).overall.step == int(folder.name)


@pytest.mark.timeout(240)
def test_four_two_and_one_rank_end_with_the_same_weights(
    server: Server, tmp_path: Path, digits: Path
) -> None:
    config = write_config(tmp_path, digits, 8, augmented=True)
    check_elastic(server, tmp_path, config, [4, 2, 1])


@pytest.mark.timeout(240)
def test_a_sharded_model_and_its_loader_go_on_from_one_distributed_checkpoint(
    server: Server, tmp_path: Path, digits: Path
) -> None:
    """Saved in the background by four ranks, loaded by two, three, and one that has no group."""
    config = write_config(tmp_path, digits, 12, augmented=False)
    check_elastic(server, tmp_path, config, [4, 2, 3, 1], wrap="fsdp", save="dcp in background")
    check_positions(tmp_path / "stopped/checkpoint")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("augmented", [False, True])
@pytest.mark.parametrize(
    "how",
    [{}, {"wrap": "ddp"}, {"wrap": "fsdp", "save": "dcp"}, {"torchdata": 1}],
    ids=["summed", "ddp", "fsdp", "torchdata"],
)
def test_eight_four_two_and_one_rank_end_with_the_same_weights(
    server: Server, tmp_path: Path, digits: Path, how: dict[str, Any], *, augmented: bool
) -> None:
    config = write_config(tmp_path, digits, 8, augmented=augmented)
    check_elastic(server, tmp_path, config, [8, 4, 2, 1], **how)
