"""Ranks that meet in a torch.distributed process group."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.errors import ConfigError
from support.jobs import history_of, lines_of
from support.real_speech import RATE

if TYPE_CHECKING:
    from pathlib import Path

    from support.jobs import Job, Server

pytestmark = pytest.mark.e2e


def config_of(manifest: Path, **options: Any) -> dict[str, Any]:
    return {
        "manifest_filepath": str(manifest),
        "sample_rate": RATE,
        "shuffle": True,
        "force_finite": True,
        "batch_duration": 30,
        "num_workers": 0,
        **options,
    }


def start_group(server: Server, folder: Path, configs: list[dict[str, Any]]) -> list[Job]:
    jobs = []
    for rank, config in enumerate(configs):
        path = folder / f"config{rank}.yaml"
        path.write_text(json.dumps(config))
        jobs.append(
            server.start(
                folder,
                {
                    "config": str(path),
                    "dataset": "ids",
                    "ranks": [rank],
                    "world_size": len(configs),
                    "rendezvous": str(folder / "rendezvous"),
                },
            )
        )
    return jobs


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("seed", [4, "trng", "randomized"])
def test_a_group_shares_a_pass_and_its_seed(
    server: Server, tmp_path: Path, digits: Path, world_size: int, seed: int | str
) -> None:
    config = config_of(digits / "manifest.json", seed=seed)
    jobs = start_group(server, tmp_path, [config] * world_size)
    for job in jobs:
        job.finish(60)
    history = history_of(jobs)
    steps = {step for step, _ in history}
    assert set(history) == {(step, slot) for step in steps for slot in range(world_size)}
    assert len(history) == sum(len(lines_of(job.out)) for job in jobs)
    names = [name for line in history.values() for name in line["ids"]]
    assert len(names) == len(set(names)) == 3000
    states = {job.state.read_text() for job in jobs}
    assert len(states) == 1
    if seed == 4:
        assert json.loads(states.pop())["seed"] == 4


def test_trng_differs_between_runs(server: Server, tmp_path: Path, digits: Path) -> None:
    seeds = set()
    for run in ("one", "two"):
        folder = tmp_path / run
        folder.mkdir()
        config = config_of(digits / "manifest.json", seed="trng")
        for job in start_group(server, folder, [config] * 2):
            job.finish(60)
            seeds.add(json.loads(job.state.read_text())["seed"])
    assert len(seeds) == 2


@pytest.mark.parametrize("seed", ["trng", "randomized"])
def test_a_drawn_seed_without_a_group_asks_for_an_integer(digits: Path, seed: str) -> None:
    loader = playhead.dataloader(
        config_of(digits / "manifest.json", seed=seed), rank=1, world_size=2
    )
    with pytest.raises(ConfigError, match="integer"):
        iter(loader)


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_a_rank_with_other_data_is_named(
    server: Server, tmp_path: Path, digits: Path, odd: int
) -> None:
    other = tmp_path / "manifest.json"
    rows = (digits / "manifest.json").read_text().splitlines(keepends=True)
    row = json.loads(rows[700])
    rows[700] = json.dumps({**row, "duration": row["duration"] + 0.01}) + "\n"
    other.write_text("".join(rows).replace('"fsdd/', f'"{digits}/fsdd/'))
    (tmp_path / "fsdd").symlink_to(digits / "fsdd")
    configs = [
        {"input_cfg": [{"type": "nemo", "manifest_filepath": str(path), "name": "digits"}]}
        for path in [digits / "manifest.json"] * 3
    ]
    configs[odd]["input_cfg"][0]["manifest_filepath"] = str(other)
    base = config_of(digits / "manifest.json", seed=4)
    del base["manifest_filepath"]
    jobs = start_group(server, tmp_path, [{**base, **config} for config in configs])
    for job in jobs:
        assert job.wait(60) == 1
        last = job.log.read_text().strip().splitlines()[-1]
        assert last.startswith("playhead.errors.RankMismatchError: "), job.log.read_text()
        assert f"ank {odd}" in last
        assert "digits" in last
        assert lines_of(job.out) == []


def test_a_rank_with_other_options_is_named(server: Server, tmp_path: Path, digits: Path) -> None:
    config = config_of(digits / "manifest.json", seed=4)
    jobs = start_group(server, tmp_path, [config, config, {**config, "batch_duration": 29}])
    for job in jobs:
        assert job.wait(60) == 1
        last = job.log.read_text().strip().splitlines()[-1]
        assert last.startswith("playhead.errors.RankMismatchError: "), job.log.read_text()
        assert "ank 2" in last
        assert "batch_duration" in last
