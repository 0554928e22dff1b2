"""Shards of a store read once a pass by all processes of a machine, and data that move about."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.datasets import Ids
from playhead.errors import ConfigError
from support.corpus import tarred_corpus
from support.fault_proxy import FaultProxy, Faults
from support.jobs import history_of, last_state, wait_for_lines
from support.servers import caddy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.jobs import Job, Server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

SECONDS = [round(0.05 + (i * 37 % 89) / 200, 3) for i in range(96)]
SHARDS = 8
OPTIONS = {
    "sample_rate": 8000,
    "shuffle": True,
    "seed": 5,
    "batch_duration": 2,
    "micro_batches_per_step": 4,
    "info": True,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    tarred_corpus(folder / "talk", SECONDS, SHARDS, rate=8000)
    return folder


@contextmanager
def served(root: Path, folder: Path) -> Iterator[FaultProxy]:
    """A web server behind a proxy that counts."""
    with caddy(root, logs=folder / "logs") as server, FaultProxy(server.port) as proxy:
        yield proxy


def config_of(place: str, folder: Path, **options: Any) -> dict[str, Any]:
    span = f"_OP_0..{SHARDS - 1}_CL_"
    return {
        **OPTIONS,
        "manifest_filepath": f"{place}/talk/manifest_{span}.json",
        "tarred_audio_filepaths": f"{place}/talk/audio_{span}.tar",
        "cache_dir": str(folder / "shards"),
        **options,
    }


def num_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in (root / "talk").iterdir())


def loader(config: dict[str, Any], rank: int = 0, world_size: int = 1) -> playhead.Loader:
    return playhead.dataloader(config, rank=rank, world_size=world_size)


def taken(batches: Any, count: int | None = None) -> list[Any]:
    found = []
    for batch in batches:
        info = batch["playhead"]
        found.append((info.step, info.slot, batch["ids"], batch["audio"].tolist()))
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize(("ranks", "workers"), [(1, 0), (2, 2), (4, 0)])
def test_a_pass_fetches_every_shard_once_for_all_processes(
    server: Server, root: Path, tmp_path: Path, ranks: int, workers: int
) -> None:
    """Windows of a fifth of the data, and no room for all of them at a time."""
    options = {"force_finite": True, "window_draws": 20, "num_workers": workers}
    local = loader(config_of(str(root), tmp_path, **options, locality="shards"))
    rows = Counter(name for batch in taken(local) for name in batch[2])
    local.close()
    with served(root, tmp_path) as proxy:
        limit = num_bytes(root) * 8 // 10
        config = config_of(proxy.url, tmp_path, cache_bytes=limit, **options)
        shared = {
            "config": config,
            "world_size": ranks,
            "notes": "ignore",
            "steps": None,
            "rendezvous": str(tmp_path / "rendezvous"),
            "in_step": True,
        }
        loader(config).close()  # which builds the pack
        proxy.forget()
        jobs = [server.start(tmp_path, {**shared, "ranks": [rank]}) for rank in range(ranks)]
        for job in jobs:
            job.finish(60)
        fetched = proxy.seen().sent_bytes
    assert num_bytes(root) <= fetched <= 1.1 * num_bytes(root)
    assert sum(path.stat().st_size for path in (tmp_path / "shards").glob("*.shard")) <= limit
    lines = history_of(jobs).values()
    samples = [zip(line["ids"], line["repeated"], strict=True) for line in lines]
    once = Counter(name for batch in samples for name, repeated in batch if not repeated)
    assert set(once) == set(rows)
    assert set(once.values()) == {1}


@pytest.mark.parametrize("begun", ["disk", "store"])
def test_data_that_move_between_a_disk_and_a_store_give_the_same_batches(
    root: Path, tmp_path: Path, begun: str
) -> None:
    with served(root, tmp_path) as proxy:
        places = {"disk": str(root), "store": proxy.url}
        other = "store" if begun == "disk" else "disk"
        whole = loader(config_of(places[begun], tmp_path, window_draws=50))
        expected = taken(whole, 60)
        whole.close()
        found, state = [], None
        for place, count in ((begun, 7), (other, 13), (begun, 11), (other, 29)):
            part = loader(config_of(places[place], tmp_path / place, window_draws=50))
            if state is not None:
                with warnings.catch_warnings():
                    # That leaves lie elsewhere is said.
                    warnings.filterwarnings("ignore", "leaf .* has the data of", UserWarning)
                    part.load_state_dict(state)
            found += taken(part, 4 * -(-count // 4))
            state = json.loads(json.dumps(part.state_dict()))
            part.close()
        assert found[: len(expected)] == expected[: len(found)]
        assert len(found) >= 60
        # What began row by row is read range by range: no shard was fetched whole.
        assert bool(list((tmp_path / "store/shards").glob("*.shard"))) == (begun == "store")


def test_kills_while_shards_are_fetched_change_no_batch(
    server: Server, root: Path, tmp_path: Path
) -> None:
    """Every start has an empty folder or what the kill before it left; a slow store helps it."""
    rng, steps = random.Random(1), 30
    with served(root, tmp_path) as proxy:
        config = config_of(proxy.url, tmp_path, window_draws=40)
        spec = {"config": config, "notes": "ignore", "steps": steps, "world_size": 1, "ranks": [0]}
        whole = server.start(tmp_path / "whole", {**spec})
        whole.finish(60)
        shutil.rmtree(tmp_path / "shards")
        proxy.set(Faults(latency=0.01))
        jobs: list[Job] = []
        state: Path | None = None
        for kill in range(5):
            shared = {**spec, "state_in": None if state is None else str(state)}
            ranks = rng.choice([1, 2])
            started = [
                server.start(
                    tmp_path / "killed",
                    {
                        **shared,
                        "ranks": [rank],
                        "world_size": ranks,
                        "overrides": {"num_workers": rng.choice([0, 2])},
                    },
                )
                for rank in range(ranks)
            ]
            jobs += started
            if kill == 4:
                for job in started:
                    job.finish(60)
                break
            if kill % 2:
                wait_for_lines(started[0], rng.randint(1, 6), 60)
            time.sleep(rng.uniform(0, 0.6))
            for job in started:
                job.kill()
            state = last_state(started) or state
            if kill == 2:
                shutil.rmtree(tmp_path / "shards", ignore_errors=True)
    expected = history_of([whole])
    assert len(expected) == 4 * steps
    assert history_of(jobs) == expected


def test_a_cache_smaller_than_a_window_gives_the_same_batches(root: Path, tmp_path: Path) -> None:
    local = loader(config_of(str(root), tmp_path, window_draws=90, locality="shards"))
    expected = taken(local, 48)
    largest = max(path.stat().st_size for path in (root / "talk").iterdir())
    with served(root, tmp_path) as proxy:
        small = loader(
            config_of(proxy.url, tmp_path, window_draws=90, cache_bytes=2 * largest, num_workers=2)
        )
        found = taken(small, 48)
        report = small.report()
        assert report.run.kept is not None
        assert report.run.kept.fetched_bytes > largest
        assert f"{report.run.kept.fetched_shards:,} fetched" in str(report)
        small.close()
        assert [batch[:2] for batch in found] == [batch[:2] for batch in expected]
        with pytest.raises(ConfigError, match=rf"{largest - 1:,} bytes in all.*{largest:,} bytes"):
            loader(config_of(proxy.url, tmp_path, cache_bytes=largest - 1))


def test_rows_that_are_asked_for_are_read_range_by_range(root: Path, tmp_path: Path) -> None:
    with served(root, tmp_path) as proxy:
        rows = loader(config_of(proxy.url, tmp_path, locality="rows", force_finite=True))
        found = taken(rows)
        local = loader(config_of(str(root), tmp_path, force_finite=True))
        assert sorted(name for batch in found for name in batch[2]) == sorted(
            name for batch in taken(local) for name in batch[2]
        )
    assert not (tmp_path / "shards").exists()


@pytest.mark.parametrize("form", ["gz", "pipe"])
def test_what_can_only_be_read_from_its_start_gives_the_batches_of_plain_archives(
    root: Path, tmp_path: Path, form: str
) -> None:
    packed = tmp_path / "packed/talk"
    shutil.copytree(root / "talk", packed)
    span = f"_OP_0..{SHARDS - 1}_CL_"
    tars = f"{packed}/audio_{span}.tar"
    if form == "gz":
        for tar in packed.glob("*.tar"):
            tar.with_suffix(".tar.gz").write_bytes(gzip.compress(tar.read_bytes()))
            tar.unlink()
        tars += ".gz"
    else:
        tars = f"pipe:cat {tars}"
    expected = taken(loader(config_of(str(root), tmp_path, force_finite=True, locality="shards")))
    config = config_of(str(tmp_path / "packed"), tmp_path, force_finite=True)
    found = taken(loader({**config, "tarred_audio_filepaths": tars}))
    assert sorted(name for batch in found for name in batch[2]) == sorted(
        name for batch in expected for name in batch[2]
    )
    assert len(list((tmp_path / "shards").glob("*.shard"))) == SHARDS


def test_datasets_that_read_no_audio_fetch_no_archives(root: Path, tmp_path: Path) -> None:
    with served(root, tmp_path) as proxy:
        config = config_of(proxy.url, tmp_path, force_finite=True)
        ids = playhead.dataloader(config, dataset=Ids(), rank=0, world_size=1)
        proxy.forget()
        assert sum(len(batch["ids"]) for batch in ids) == len(SECONDS)
        ids.close()
        assert not [line for line in proxy.seen().asked if "GET" in line and ".tar" in line]
