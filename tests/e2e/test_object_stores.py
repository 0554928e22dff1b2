"""Training from object stores: the bytes of a disk, whatever fails, wherever it resumes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from support import servers
from support.fault_proxy import FaultProxy, Faults
from support.jobs import history_of, lines_of, wait_for_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.jobs import Server
    from support.servers import S3Server, WebServer

pytestmark = pytest.mark.e2e

PASSING = ("reset", "reset_inside", "cut", "short", "long", "other_range", "garbage", "429", "500")
FAULTS = Faults(share=0.05, kinds=(*PASSING, "503", "silence", "stall"), seed=11)


@pytest.fixture(scope="module")
def web(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with servers.caddy(corpus, logs=tmp_path_factory.mktemp("caddy")) as server:
        yield server


@pytest.fixture(scope="module")
def on_s3(corpus: Path, seaweed: S3Server) -> dict[str, str]:
    """The environment in which the corpus is found in `s3://speech`."""
    seaweed.put_folder("speech", corpus)
    return seaweed.environment()


def spec_of(base: object, steps: int, **options: Any) -> dict[str, Any]:
    """A job on an archive and on plain files; names make the plan the same wherever they lie."""
    tarred = f"{base}/tarred"
    config = {
        "input_cfg": [
            {
                "type": "nemo_tarred",
                "name": "in archives",
                "manifest_filepath": f"{tarred}/manifest__OP_0..2_CL_.json",
                "tarred_audio_filepaths": f"{tarred}/audio__OP_0..2_CL_.tar",
                "weight": 0.5,
            },
            {
                "type": "nemo",
                "name": "in files",
                "manifest_filepath": f"{base}/plain/manifest.json",
                "weight": 0.5,
            },
        ],
        "sample_rate": 8000,
        "shuffle": True,
        "seed": 5,
        "batch_duration": 1.5,
        "window_draws": 200,
        **options,
    }
    return {"config": config, "ranks": [0], "world_size": 1, "steps": steps, "notes": "ignore"}


@pytest.mark.parametrize(
    "steps", [1_000, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_batches_through_faults_are_those_without(
    server: Server, corpus: Path, web: WebServer, tmp_path: Path, steps: int
) -> None:
    plain = server.start(tmp_path, spec_of(corpus, steps, locality="rows"))
    plain.finish(0.3 * steps)
    with FaultProxy(web.port) as proxy:
        spec = spec_of(proxy.url, steps, locality="rows", num_workers=2)
        spec["environment"] = {"PLAYHEAD_STORAGE_REQUEST_SECONDS": "0.5"}
        # The index is made before anything fails: how it is made through faults is not told here.
        first = server.start(tmp_path, {**spec, "steps": 1})
        first.finish(60)
        proxy.forget()
        proxy.set(FAULTS)
        job = server.start(tmp_path, spec)
        job.finish(0.3 * steps)
        seen = proxy.seen()
    assert lines_of(job.out) == lines_of(plain.out)
    assert len(lines_of(job.out)) == steps
    assert seen.faults.total() > 0.03 * seen.requests
    assert set(seen.faults) == set(FAULTS.kinds)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_job_on_a_disk_goes_on_from_copies_on_s3(
    server: Server, corpus: Path, on_s3: dict[str, str], tmp_path: Path, workers: int
) -> None:
    whole = server.start(tmp_path, spec_of(corpus, 60))
    whole.finish(60)
    killed = server.start(tmp_path, spec_of(corpus, 60))
    wait_for_lines(killed, 15, 60)
    killed.kill()
    # How the passes are ordered is the position's, not that which stores have by themselves.
    spec = spec_of("s3://speech", 60, num_workers=workers) | {"state_in": str(killed.state)}
    spec["environment"] = on_s3
    resumed = server.start(tmp_path, spec)
    resumed.finish(120)
    assert history_of([killed, resumed]) == history_of([whole])


def test_a_job_on_s3_goes_on_from_a_disk(
    server: Server, corpus: Path, on_s3: dict[str, str], tmp_path: Path
) -> None:
    spec = spec_of("s3://speech", 40, locality="rows") | {"environment": on_s3}
    whole = server.start(tmp_path, spec)
    whole.finish(120)
    part = server.start(tmp_path, spec | {"steps": 11})
    part.finish(120)
    spec = spec_of(corpus, 40, num_workers=2) | {"state_in": str(part.state)}
    resumed = server.start(tmp_path, spec)
    resumed.finish(60)
    assert history_of([part, resumed]) == history_of([whole])


def test_a_store_that_is_gone_ends_the_job_with_its_name_and_loses_nothing(
    server: Server, corpus: Path, web: WebServer, tmp_path: Path
) -> None:
    copy = shutil.copytree(corpus, tmp_path / "copy")
    with (
        servers.caddy(copy, logs=tmp_path / "logs") as other,
        FaultProxy(other.port) as proxy,
    ):
        spec = spec_of(proxy.url, 30, locality="rows", fault_tolerant=True)
        spec["environment"] = {"PLAYHEAD_STORAGE_DEADLINE_SECONDS": "3"}
        whole = server.start(tmp_path, spec)
        whole.finish(60)
        part = server.start(tmp_path, spec | {"steps": 10})
        part.finish(60)
        proxy.set(Faults(share=1, kinds=("503",)))
        broken = server.start(tmp_path, spec | {"state_in": str(part.state)})
        assert broken.wait(60) == 1
        said = broken.log.read_text()
        assert "playhead.errors.StorageError" in said
        assert "503" in said
        assert proxy.url in said
        # Nothing was taken for bad audio.
        assert lines_of(broken.out) == []
        proxy.set(Faults())
        after = server.start(tmp_path, spec | {"state_in": str(part.state)})
        after.finish(60)
    assert history_of([part, after]) == history_of([whole])
