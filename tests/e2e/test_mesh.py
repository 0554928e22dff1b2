"""Models split over tensor- and pipeline-parallel ranks: what each process trained on."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
import torch

from support.jobs import history_of, lines_of, wait_for_lines
from support.real_speech import RATE

if TYPE_CHECKING:
    from pathlib import Path

    from support.jobs import History, Job, Server

pytestmark = pytest.mark.e2e

STEP = 4
STEPS = 9

Mesh = dict[str, int]


@pytest.fixture(scope="module")
def config(server: Server, tmp_path_factory: pytest.TempPathFactory, digits: Path) -> Path:
    server.load("support.mesh_trainer")
    path = tmp_path_factory.mktemp("mesh") / "blend.yaml"
    path.write_text(
        json.dumps(
            {
                "manifest_filepath": str(digits / "manifest.json"),
                "sample_rate": RATE,
                "shuffle": True,
                "force_finite": False,
                "seed": 11,
                "batch_duration": 6,
                "num_workers": 0,
                "window_draws": 150,
                "micro_batches_per_step": STEP,
            }
        )
    )
    return path


def start(
    server: Server,
    folder: Path,
    config: Path,
    mesh: Mesh,
    *,
    odd: dict[int, dict[str, Any]] | None = None,
    **spec: Any,
) -> list[Job]:
    """One process a rank; `odd` holds what some ranks are told otherwise."""
    size = math.prod(mesh.values())
    rendezvous = folder / f"rendezvous{len(list(folder.iterdir()))}"
    base = {
        "config": str(config),
        "mesh": mesh,
        "world_size": size,
        "steps": STEPS,
        "checkpoint": str(folder / "checkpoint.pt"),
        "rendezvous": str(rendezvous),
        "place": {"broadcast": True},
        **spec,
    }
    return [
        server.start(folder, {**base, "rank": rank, **(odd or {}).get(rank, {})})
        for rank in range(size)
    ]


def peers_in(mesh: Mesh, jobs: list[Job]) -> list[list[Job]]:
    """The jobs by data-parallel rank."""
    shared = [name in {"tp", "pp", "cp"} for name in mesh]
    sizes = tuple(mesh.values())
    found: dict[tuple[int, ...], list[Job]] = {}
    for rank, job in enumerate(jobs):
        place, coordinate = rank, []
        for size in reversed(sizes):
            place, along = divmod(place, size)
            coordinate.insert(0, along)
        key = tuple(0 if skip else along for along, skip in zip(coordinate, shared, strict=True))
        found.setdefault(key, []).append(job)
    return list(found.values())


def finish(jobs: list[Job]) -> None:
    for job in jobs:
        job.finish(90)


def last_words(job: Job) -> str:
    return job.log.read_text().strip()


@pytest.fixture(scope="module")
def whole(
    server: Server, tmp_path_factory: pytest.TempPathFactory, config: Path
) -> tuple[History, dict[str, Any]]:
    """What one process trains on that nobody interrupts, and what it saves at the end."""
    folder = tmp_path_factory.mktemp("whole")
    jobs = start(server, folder, config, {"dp": 1})
    finish(jobs)
    history = history_of(jobs)
    assert len(history) == STEPS * STEP
    return history, torch.load(folder / "checkpoint.pt", weights_only=True)


@pytest.mark.parametrize(
    "meshes",
    [
        [{"dp": 2, "tp": 2}, {"dp": 1, "tp": 2}, {"dp": 4, "tp": 1}],
        pytest.param([{"pp": 2, "dp": 2}, {"dp": 4}, {"pp": 2, "dp": 1}], marks=pytest.mark.slow),
        pytest.param(
            [{"dp_replicate": 2, "dp_shard": 1, "tp": 2}, {"cp": 2, "dp_shard": 2}, {"tp": 2}],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["dp and tp", "pp and dp", "dp_replicate, dp_shard and tp"],
)
def test_killed_and_gone_on_with_on_other_meshes_it_trains_as_one_process_does(
    server: Server,
    tmp_path: Path,
    config: Path,
    whole: tuple[History, dict[str, Any]],
    meshes: list[Mesh],
) -> None:
    jobs: list[Job] = []
    for number, mesh in enumerate(meshes):
        # One reads for all that share at first and in the end; each for itself in between.
        started = start(server, tmp_path, config, mesh, place={"broadcast": number != 1})
        jobs += started
        if number == len(meshes) - 1:
            finish(started)
        else:
            shares = len(peers_in(mesh, started))
            for job in started:
                wait_for_lines(job, 2 * STEP // shares, 60)
            for job in started:
                job.kill()
        for peers in peers_in(mesh, started):
            trained = [lines_of(job.out) for job in peers]
            # A kill may come when one of them has written a step and another has not.
            common = min(map(len, trained))
            assert common
            assert all(lines[:common] == trained[0][:common] for lines in trained)
    history, reference = whole
    # Two processes that had trained one slot of a step on different bytes would be found here too.
    assert history_of(jobs) == history
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert saved["loader"] == reference["loader"]
    for name, value in reference["model"].items():
        torch.testing.assert_close(saved["model"][name], value, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_eight_processes_share_as_their_coordinates_say(
    server: Server, tmp_path: Path, config: Path
) -> None:
    mesh = {"dp_replicate": 2, "dp_shard": 2, "tp": 2}
    jobs = start(server, tmp_path, config, mesh, steps=2, overrides={"num_workers": 1})
    finish(jobs)
    slots = [[line["slot"] for line in lines_of(job.out)] for job in jobs]
    assert slots == [[0, 0], [0, 0], [1, 1], [1, 1], [2, 2], [2, 2], [3, 3], [3, 3]]
    assert len({job.state.read_text() for job in jobs}) == 1
    reports = [json.loads(job.state.with_suffix(".report").read_text()) for job in jobs]
    assert [report["workers"] for report in reports] == [1, 0] * 4
    assert all(report["waits"] >= 2 for report in reports)
    for one, other in peers_in(mesh, reports):
        assert one["samples"] == other["samples"] > 0


def test_a_seed_is_drawn_once_for_all_processes_of_one_data_parallel_rank(
    server: Server, tmp_path: Path, config: Path
) -> None:
    jobs = start(
        server,
        tmp_path,
        config,
        {"dp": 1, "tp": 2},
        steps=2,
        place={"broadcast": False},
        overrides={"seed": "trng"},
    )
    finish(jobs)
    assert lines_of(jobs[0].out) == lines_of(jobs[1].out) != []


@pytest.mark.parametrize(
    ("mesh", "places"),
    [
        # As Megatron's parallel_state tells: the data-parallel rank and size of each process.
        ({"dp": 2, "tp": 2}, [{"rank": rank // 2, "world_size": 2} for rank in range(4)]),
        pytest.param({"dp": 2, "tp": 2}, [{"group": "tp"}] * 4, marks=pytest.mark.slow),
        pytest.param({"pp": 2, "dp": 2}, [{"group": "pp"}] * 4, marks=pytest.mark.slow),
    ],
    ids=["ranks by hand", "a tensor-parallel group", "a pipeline-parallel group"],
)
def test_without_a_mesh_ranks_or_a_group_say_who_shares(
    server: Server, tmp_path: Path, config: Path, mesh: Mesh, places: list[dict[str, Any]]
) -> None:
    odd = {rank: {"place": place} for rank, place in enumerate(places)}
    jobs = start(server, tmp_path, config, mesh, steps=2, odd=odd)
    finish(jobs)
    shares = peers_in(mesh, jobs)
    for number, peers in enumerate(shares):
        lines = [lines_of(job.out) for job in peers]
        assert lines[0] == lines[1]
        assert [line["slot"] for line in lines[0]] == [number, number + 2] * 2


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({3: {"overrides": {"batch_duration": 5}}}, ["ank 3", "batch_duration"]),
        pytest.param({2: {"overrides": {"seed": 12}}}, ["ank 2", "seed"], marks=pytest.mark.slow),
        (
            {rank: {"place": {"rank": 0, "world_size": 2}} for rank in range(4)},
            ["share 1 of 2", "[0]"],
        ),
        pytest.param(
            {1: {"place": {"rank": 1, "world_size": 4}}},
            ["ank 1", "share steps by 4"],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["options", "seed", "nobody has a share", "world sizes"],
)
def test_a_process_that_would_part_is_named_by_its_global_rank_on_all(
    server: Server, tmp_path: Path, config: Path, odd: dict[int, Any], said: list[str]
) -> None:
    place = {"place": {"broadcast": False}}
    jobs = start(server, tmp_path, config, {"dp": 2, "tp": 2}, odd=odd, **place)
    for job in jobs:
        assert job.wait(60) == 1
        last = last_words(job).splitlines()[-1]
        assert last.startswith("playhead.errors.RankMismatchError: "), last_words(job)
        assert all(words in last for words in said)
        assert lines_of(job.out) == []


def test_what_the_dataset_raises_where_it_reads_is_raised_on_all_that_share(
    server: Server, tmp_path: Path, config: Path
) -> None:
    jobs = start(server, tmp_path, config, {"dp": 1, "cp": 3}, fails=True)
    for job in jobs:
        assert job.wait(60) == 1
        assert "ValueError: this label is unknown" in last_words(job)
        assert last_words(job).endswith("In step 0, slot 3.")
    assert all("Rank 0 raised it" in last_words(job) for job in jobs[1:])
    assert all("in collate" in last_words(job) for job in jobs)


@pytest.mark.slow
def test_a_worker_that_dies_where_it_reads_ends_all_that_share(
    server: Server, tmp_path: Path, config: Path
) -> None:
    workers = {"overrides": {"num_workers": 1}}
    jobs = start(server, tmp_path, config, {"dp": 1, "tp": 2}, steps=None, **workers)
    wait_for_lines(jobs[1], STEP, 60)
    os.kill(worker_of(jobs[0]), signal.SIGKILL)
    assert [job.wait(60) for job in jobs] == [1, 1]
    # torch may say it wherever the training loop is.
    assert "killed by signal: Killed" in last_words(jobs[0])
    assert re.search("WorkerError: (A worker process died|No batch came)", last_words(jobs[1]))


def worker_of(job: Job) -> int:
    with open(f"/proc/{job.pid}/task/{job.pid}/children") as children:  # noqa: PTH123
        return int(children.read().split()[0])


@pytest.mark.parametrize("dead", [0, 1], ids=["the one that reads", "one that receives"])
def test_a_rank_that_dies_ends_those_that_share_with_it(
    server: Server, tmp_path: Path, config: Path, dead: int
) -> None:
    jobs = start(server, tmp_path, config, {"cp": 2, "dp": 1}, steps=None)
    wait_for_lines(jobs[1], STEP, 60)
    jobs[dead].kill()
    assert jobs[1 - dead].wait(30) == 1
    words = "no batch came from rank 0" if dead == 0 else "rank 0 could not send a batch to ranks 1"
    assert words in last_words(jobs[1 - dead]).lower()


def test_a_rank_that_hangs_is_waited_for_until_the_deadline_of_the_process_group(
    server: Server, tmp_path: Path, config: Path
) -> None:
    jobs = start(server, tmp_path, config, {"cp": 2, "dp": 1}, steps=None, timeout=4)
    wait_for_lines(jobs[1], STEP, 60)
    os.kill(jobs[0].pid, signal.SIGSTOP)
    begin = time.monotonic()
    try:
        assert jobs[1].wait(40) == 1
        assert time.monotonic() - begin > 2
        last = last_words(jobs[1]).splitlines()[-1]
        assert "WorkerError: No batch came from rank 0, which reads for rank 1: " in last
        assert "for 4 s, the timeout of init_process_group" in last
    finally:
        os.kill(jobs[0].pid, signal.SIGCONT)
        jobs[0].kill()
