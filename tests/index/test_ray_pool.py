"""Tasks on a cluster: done, tried again, given up and cancelled, with a stand-in for Ray."""

from __future__ import annotations

import socket
import sys
from itertools import count
from pathlib import Path

import pytest

from playhead.errors import (
    ArchiveError,
    BuildError,
    ConfigError,
    MissingExtraError,
    WorkerError,
)
from playhead.index import ray_pool
from playhead.index.build import build_packs
from playhead.index.pool import run_each
from playhead.index.ray_pool import TRIES, ray_cluster
from playhead.index.sidecar_run import build_sidecars
from playhead.index.sidecars import Sidecar
from playhead.tokens.jobs import Stretch, do_all
from support.corpus import write_jsonl
from support.fake_ray import FakeRay
from support.leaves import make_leaf


def work(item):
    """What an item says: (verb, argument)."""
    verb, argument = item
    if verb == "refuse":
        raise ArchiveError("no", where=argument)
    if verb == "miss":
        Path(argument).read_bytes()
    if verb == "break":
        raise ZeroDivisionError("a fault of the program")
    return argument


def number_of_rows(stretch):
    return stretch.stop - stretch.start


@pytest.fixture
def use(monkeypatch):
    def install(ray):
        monkeypatch.setitem(sys.modules, "ray", ray)
        return ray

    return install


def run(items, tasks=None):
    deaths: list = []
    with ray_cluster("auto", tasks) as cluster:
        outcomes = list(
            run_each(work, items, workers=cluster, on_death=lambda *death: deaths.append(death))
        )
    by_item = {outcome.item: outcome for outcome in outcomes}
    assert len(by_item) == len(outcomes) == len(items), "one outcome for each"
    return by_item, deaths


def test_failures_are_outcomes_as_they_are_in_processes(use):
    use(FakeRay())
    items = [("refuse", "a.tar"), ("miss", "/nowhere"), *(("ok", i) for i in range(5))]
    outcomes, deaths = run(items)
    assert deaths == []
    for outcome in run_each(work, items, workers=1, on_death=print):
        found = outcomes[outcome.item]
        assert found.result == outcome.result
        assert (type(found.error), str(found.error)) == (type(outcome.error), str(outcome.error))


def test_what_is_lost_is_tried_again_and_said(use):
    ray = use(FakeRay(lose=lambda item, number: item == ("ok", 3) and number < TRIES))
    outcomes, deaths = run([("ok", i) for i in range(8)])
    assert all(outcomes["ok", i].result == i for i in range(8))
    assert [item for item, _ in deaths] == [("ok", 3)] * (TRIES - 1)
    assert "lost: WorkerCrashedError: The worker died unexpectedly" in deaths[0][1]
    assert len(ray.submitted) == 8 + TRIES - 1


def test_what_is_always_lost_fails_after_its_tries_and_the_others_go_on(use):
    ray = use(FakeRay(lose=lambda item, _: item == ("ok", 3)))
    outcomes, deaths = run([("ok", i) for i in range(8)])
    error = outcomes["ok", 3].error
    assert isinstance(error, WorkerError)
    assert f"unexpectedly, {TRIES} times" in str(error)
    assert ray.submitted.count(("ok", 3)) == TRIES
    assert sum(outcome.error is None for outcome in outcomes.values()) == 7
    assert len(deaths) == TRIES - 1


def test_a_node_that_cannot_do_it_is_named_and_not_asked_again(use):
    ray = use(FakeRay())
    outcomes, _ = run([("break", 1), ("ok", 2)])
    error = outcomes["break", 1].error
    assert isinstance(error, WorkerError)
    assert "ZeroDivisionError: a fault of the program" in str(error)
    assert "same Playhead" in str(error)
    assert ray.submitted.count(("break", 1)) == 1
    assert outcomes["ok", 2].result == 2


def test_a_node_with_another_version_is_refused(use, monkeypatch):
    use(FakeRay())
    versions = map(str, count())
    monkeypatch.setattr(ray_pool, "own_version", lambda: next(versions))
    outcomes, _ = run([("ok", 1)])
    assert "it has Playhead 1, and 0 is asked for" in str(outcomes["ok", 1].error)


@pytest.mark.parametrize(("cpus", "tasks", "most"), [(2, None, 4), (0, 1, 1), (8, 3, 3)])
def test_so_many_tasks_at_a_time_as_the_cluster_takes(use, monkeypatch, cpus, tasks, most):
    ray = use(FakeRay(cpus=cpus or 1))
    run([("ok", i) for i in range(20)], tasks)
    assert ray.most == most


def test_a_cluster_that_grows_gets_more(use, monkeypatch):
    ray = use(FakeRay(cpus=1))
    monkeypatch.setattr(ray_pool, "_LOOK_SECONDS", 0.0)
    with ray_cluster("auto") as cluster:
        outcomes = cluster.run_each(work, [("ok", i) for i in range(40)], on_death=print)
        for _ in range(3):
            next(outcomes)
        ray.cpus = 4
        assert len(list(outcomes)) == 37
    assert ray.most == 8


def test_a_cluster_without_cpus_is_given_up(use, monkeypatch):
    ray = use(FakeRay(cpus=0))
    clock = count(step=120.0)
    monkeypatch.setattr(ray_pool.time, "monotonic", lambda: next(clock))
    with pytest.raises(BuildError, match=r"no CPU for 600 s \(--ray auto\)"):
        run([("ok", 1)])
    assert ray.waits < 10
    assert ray.cancelled == [1]
    assert ray.stopped == 1


def test_leaving_early_cancels_what_flies(use):
    ray = use(FakeRay(cpus=2))
    with ray_cluster("auto") as cluster:
        outcomes = cluster.run_each(work, [("ok", i) for i in range(50)], on_death=print)
        next(outcomes)
        outcomes.close()
    assert sorted(ray.cancelled) == [1, 2, 3]
    assert len(ray.submitted) == 4


def test_the_connection_is_made_and_ended_once_and_tells_nodes_our_settings(use, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_STORAGE_TRIES", "7")
    ray = use(FakeRay())
    monkeypatch.setattr(ray_pool.socket, "create_connection", lambda *_, **__: socket.socket())
    with ray_cluster("ray://head:10001"):
        (options,) = ray.started
        assert options["address"] == "ray://head:10001"
        assert options["runtime_env"]["env_vars"]["PLAYHEAD_STORAGE_TRIES"] == "7"
        assert "object_store_memory" not in options
        # What somebody else has connected stays so.
        with ray_cluster("auto"):
            pass
        assert ray.stopped == 0
    assert ray.stopped == len(ray.started) == 1
    with ray_cluster("local"):
        assert ray.started[-1]["object_store_memory"] < 1 << 30


def test_no_cluster_and_no_ray_are_said_with_what_to_do(use, monkeypatch):
    ray = use(FakeRay())
    ray.refuses = ConnectionError("Could not find any running Ray instance.\nMore")
    with pytest.raises(ConfigError, match=r"Could not find any running Ray instance \(--ray auto"):
        run([("ok", 1)])
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"playhead\[ray\]") as caught:
        run([("ok", 1)])
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("form", ["ray://127.0.0.1:{}", "127.0.0.1:{}"])
def test_an_address_where_nobody_listens_is_refused_before_ray_waits_for_it(use, form):
    ray = use(FakeRay())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = form.format(free.getsockname()[1])
        with pytest.raises(ConfigError, match="refused"), ray_cluster(address):
            pass
        assert ray.started == []
        free.listen()
        with ray_cluster(address):
            assert ray.started[0]["address"] == address


def test_sidecars_packs_and_rows_are_done_on_the_cluster(use, tmp_path):
    ray = use(FakeRay(lose=lambda _, number: number == 1))
    paths = [
        write_jsonl(tmp_path / f"{i}.json", [{"audio_filepath": "/a.wav", "duration": 1.0}] * 3)
        for i in range(3)
    ]
    sidecars = [Sidecar(path=str(p), kind="jsonl", idx=f"{p}.idx") for p in paths]
    leaf = make_leaf("nemo", manifest=paths)
    said: list[str] = []
    with ray_cluster("auto") as cluster:
        built = list(
            build_sidecars(sidecars, workers=cluster, on_death=lambda _, why: said.append(why))
        )
        assert [outcome.result for outcome in built] == [3, 3, 3]
        assert len(said) == 3
        (pack,) = build_packs([leaf], indexes_root=str(tmp_path / "x"), workers=cluster)
        todo = [Stretch(start, start + 5000) for start in range(0, 20_000, 5000)]
        rows = do_all(number_of_rows, todo, workers=cluster, in_threads=True, on_death=said.append)
        assert sum(count for _, count in rows) == 20_000
    assert pack.status == "built"
    (alone,) = build_packs([leaf], indexes_root=str(tmp_path / "y"))
    assert Path(pack.path).read_bytes() == Path(alone.path).read_bytes()
    assert len(ray.submitted) == 2 * (3 + 3 + 4)
