"""Plain loops under torchrun: killed and started on other ranks, and restarted by torchelastic."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
import torch

from support.real_speech import RATE
from support.train_torch import TOLERANCE
from support.training_runs import (
    Torchrun,
    content_of,
    losses_of,
    names_of,
    saved_step,
    start_group,
    starts_of,
    survived,
    wait_until_killable,
)

if TYPE_CHECKING:
    from pathlib import Path

    from support.jobs import Server
    from support.training_runs import Lines

pytestmark = pytest.mark.e2e


@pytest.fixture
def config(tmp_path: Path, digits: Path) -> Path:
    """A finite shuffled pass of 3,000 spoken digits."""
    path = tmp_path / "config.yaml"
    options = {
        "manifest_filepath": str(digits / "manifest.json"),
        "sample_rate": RATE,
        "shuffle": True,
        "force_finite": True,
        "seed": 7,
        "batch_duration": 4,
        "num_workers": 0,
    }
    path.write_text(json.dumps(options))
    return path


def spec_of(folder: Path, config: Path, step: int, **more: Any) -> dict[str, Any]:
    return {
        "config": str(config),
        "overrides": {"micro_batches_per_step": step},
        "steps": None,
        "save_every": 4,
        "checkpoint": str(folder / "checkpoint.pt"),
        "logs": str(folder / "logs"),
        "weights": str(folder / "weights.pt"),
        "pause": 0.05,
        **more,
    }


def uninterrupted(server: Server, folder: Path, config: Path, step: int, **more: Any) -> Lines:
    spec = spec_of(folder, config, step, pause=0, **more)
    (job,) = start_group(server, folder, spec, 1)
    job.finish(120)
    return survived(folder / "logs")


def assert_same_training(folder: Path, other: Path) -> None:
    """Losses and weights of two runs."""
    losses = losses_of(survived(other / "logs"))
    assert losses_of(survived(folder / "logs")) == pytest.approx(losses, abs=TOLERANCE)
    weights, wanted = (torch.load(one / "weights.pt") for one in (folder, other))
    for name, weight in wanted.items():
        torch.testing.assert_close(weights[name], weight, rtol=0, atol=TOLERANCE)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("steps", [(12, 12, 12), (8, 8, 9)], ids=["kept", "dealt out again"])
def test_four_two_and_three_ranks_that_are_killed(
    server: Server, tmp_path: Path, config: Path, steps: tuple[int, int, int]
) -> None:
    folder = tmp_path / "stopped"
    saved = 0
    for ranks, step in zip((4, 2), steps, strict=False):
        place = folder / str(ranks)
        place.mkdir(parents=True)
        spec = spec_of(folder, config, step)
        run = Torchrun(place, spec, "--standalone", f"--nproc-per-node={ranks}")
        wait_until_killable(spec, saved, run.last_words)
        run.kill()
        saved = saved_step(spec)
    spec = spec_of(folder, config, steps[2])
    Torchrun(folder, spec, "--standalone", "--nproc-per-node=3").finish(200)
    assert [start.ranks for start in starts_of(folder / "logs")] == [4] * 4 + [2] * 2 + [3] * 3
    history = survived(folder / "logs")
    taken = names_of(history.values())
    assert len(taken) == 3000
    assert set(taken.values()) == {1}
    whole = uninterrupted(server, tmp_path / "whole", config, steps[0])
    if steps[2] == steps[0]:
        assert content_of(history) == content_of(whole)
        assert_same_training(folder, tmp_path / "whole")
    else:
        before = {place: line for place, line in history.items() if place[0] < saved}
        assert content_of(before) == content_of(whole)[: len(before)]


@pytest.mark.timeout(240)
def test_torchelastic_starts_again_after_a_rank_was_killed(
    server: Server, tmp_path: Path, config: Path
) -> None:
    folder = tmp_path / "restarted"
    folder.mkdir()
    spec = spec_of(folder, config, 8, steps=12, dies=[1, 6, str(folder / "died")])
    run = Torchrun(folder, spec, "--standalone", "--nproc-per-node=2", "--max-restarts=2")
    run.finish(120)
    assert [start.step for start in starts_of(folder / "logs")] == [0, 0, 4, 4]
    whole = uninterrupted(server, tmp_path / "whole", config, 8, steps=12)
    assert content_of(survived(folder / "logs")) == content_of(whole)
    assert_same_training(folder, tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_torchelastic_goes_on_without_a_node_that_is_gone(
    server: Server, tmp_path: Path, config: Path
) -> None:
    folder = tmp_path / "elastic"
    spec = spec_of(folder, config, 8, steps=40, pause=0.3)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [
        "--nnodes=1:2",
        "--nproc-per-node=2",
        "--max-restarts=2",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=127.0.0.1:{port}",
        "--rdzv-id=one",
        "--rdzv-conf=last_call_timeout=5,keep_alive_interval=1,keep_alive_max_attempt=3",
    ]
    nodes = []
    for name in ("stays", "leaves"):
        (folder / name).mkdir(parents=True)
        # What ranks of a node write is known by the folder.
        own = {**spec, "logs": str(folder / name / "logs")}
        nodes.append(Torchrun(folder / name, own, *options))
    stays, leaves = nodes
    wait_until_killable({**spec, "logs": str(leaves.logs)}, 0, leaves.last_words)
    leaves.kill()
    stays.finish(200)
    assert [start.ranks for start in starts_of(stays.logs)] == [4, 4, 2, 2]
    history = survived(stays.logs, leaves.logs)
    whole = uninterrupted(server, tmp_path / "whole", config, 8, steps=40)
    assert content_of(history) == content_of(whole)
