"""Workers that die, a training job that is interrupted, and a builder that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import playhead
from playhead.errors import AudioError, WorkerError
from support.builders import builders, held_builder, holders
from support.corpus import nemo_corpus, write_jsonl
from support.jobs import SCRIPT, environment, history_of, lines_of
from support.real_speech import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lhotse import CutSet

    from support.jobs import Server

pytestmark = pytest.mark.e2e


class WhoWorks(torch.utils.data.Dataset):
    """Says which process made a batch."""

    def __getitem__(self, cuts: CutSet) -> dict[str, Any]:
        return {"pid": os.getpid(), "ids": [cut.id for cut in cuts]}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return nemo_corpus(tmp_path / "small", [0.1 + i % 5 / 10 for i in range(200)], rate=8000)


def config_of(manifest: Path, **options: Any) -> dict[str, Any]:
    chosen = {"sample_rate": 8000, "shuffle": True, "seed": 3, "batch_size": 4, **options}
    return {"manifest_filepath": str(manifest), "force_finite": True, **chosen}


def append_ids(taken: list[list[str]], batches: Iterable[dict[str, Any]]) -> None:
    taken.extend(batch["ids"] for batch in batches)


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def runs(pid: int) -> bool:
    """Whether a process is there and not only waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.01)


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    ("num_workers", "method"), [(2, "fork"), pytest.param(1, "spawn", marks=pytest.mark.slow)]
)
def test_a_killed_worker_is_an_error_and_the_loader_goes_on(
    manifest: Path, num_workers: int, method: str
) -> None:
    options = {"num_workers": num_workers, "multiprocessing_context": method}
    whole = [
        batch["ids"]
        for batch in playhead.dataloader(
            config_of(manifest), dataset=WhoWorks(), rank=0, world_size=1
        )
    ]
    loader = playhead.dataloader(
        config_of(manifest, **options), dataset=WhoWorks(), rank=0, world_size=1
    )
    iterator = iter(loader)
    batch = next(iterator)
    taken = [batch["ids"]]
    assert batch["pid"] != os.getpid()
    os.kill(batch["pid"], signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(WorkerError, match="worker"):
        append_ids(taken, iterator)
    assert time.monotonic() - begin < 30
    append_ids(taken, iterator)
    assert taken == whole


@pytest.mark.parametrize("num_workers", [0, 2])
def test_audio_that_cannot_be_read_is_an_error_that_says_where(
    manifest: Path, num_workers: int
) -> None:
    (manifest.parent / "wav/utt00042.wav").write_bytes(b"RIFF is not enough")
    loader = playhead.dataloader(
        config_of(manifest, num_workers=num_workers, shuffle=False), rank=0, world_size=1
    )
    with pytest.raises(AudioError, match=r"row 42.*utt00042\.wav") as caught:
        list(loader)
    assert "\n" not in str(caught.value)
    assert loader.state_dict()["step"] == 10


def direct_job(tmp_path: Path, config: dict[str, Any], **spec: Any) -> subprocess.Popen:
    """`run_loader` as a process of its own."""
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    paths = {name: str(tmp_path / name) for name in ("out", "log", "state_out")}
    spec = {"config": str(tmp_path / "config.yaml"), "ranks": [0], "world_size": 1, **paths, **spec}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(tmp_path / "spec.json")],
        env=environment(),
        start_new_session=True,
    )


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    ("num_workers", "signal_number", "to_workers"),
    [(0, signal.SIGINT, False), (2, signal.SIGINT, False), (2, signal.SIGINT, True),
     (2, signal.SIGKILL, False)],
)  # fmt: skip
def test_an_interrupted_job_ends_and_leaves_no_process(
    tmp_path: Path, manifest: Path, num_workers: int, signal_number: int, to_workers: bool
) -> None:
    config = {
        "input_cfg": [{"type": "nemo", "manifest_filepath": str(manifest), "weight": 1}] * 2,
        "sample_rate": 8000,
        "batch_size": 2,
        "seed": 1,
        "num_workers": num_workers,
    }
    job = direct_job(tmp_path, config, steps=10**9)
    try:
        wait_until(lambda: len(lines_of(tmp_path / "out")) > 5, 60)
        workers = children_of(job.pid)
        assert len(workers) >= num_workers
        for pid in [job.pid, *workers] if to_workers else [job.pid]:
            os.kill(pid, signal_number)
        status = job.wait(15)
        if signal_number == signal.SIGINT:
            assert status == 1
            # A worker that was handing a tensor over may have something to say after it.
            assert "\nKeyboardInterrupt\n" in (tmp_path / "log").read_text()
        wait_until(lambda: not any(runs(pid) for pid in workers), 15)
    finally:
        if job.poll() is None:
            job.kill()
            job.wait(20)


@pytest.mark.timeout(240)
def test_eight_start_at_once_and_the_builder_is_killed(
    tmp_path: Path, manifest: Path, server: Server
) -> None:
    rows = rows_of(manifest)
    for row in rows:
        row["audio_filepath"] = str(manifest.parent / row["audio_filepath"])
    large = write_jsonl(tmp_path / "large.json", [dict(rows[i % 200], i=i) for i in range(100_000)])
    config = tmp_path / "config.yaml"
    config.write_text(
        json.dumps(
            {
                "input_cfg": [
                    {"type": "nemo", "manifest_filepath": str(path), "weight": weight}
                    for path, weight in ((large, 0.7), (manifest, 0.3))
                ],
                "sample_rate": 8000,
                "batch_size": 4,
                "seed": 1,
                "shuffle": True,
            }
        )
    )
    cache, notes = tmp_path / "cache", tmp_path / "builders"
    spec = {
        "config": str(config),
        "dataset": "ids",
        "world_size": 8,
        "steps": 5,
        "builders": str(notes),
        "environment": {"PLAYHEAD_CACHE": str(cache)},
    }
    jobs = [server.start(tmp_path / "jobs", {**spec, "ranks": [rank]}) for rank in range(8)]
    held = held_builder(notes, 30)
    assert holders(cache) == [held]
    (builder,) = (job for job in jobs if job.pid == held)
    builder.kill()
    assert builder.status == -signal.SIGKILL
    survivors = [job for job in jobs if job is not builder]
    for job in survivors:
        job.finish(120)
    assert len(builders(notes)) == 3, "the one killed, and one a leaf"
    assert builders(notes).count(held) == 1
    again = server.start(tmp_path / "jobs", {**spec, "ranks": [jobs.index(builder)]})
    again.finish(60)
    assert len(builders(notes)) == 3
    history = history_of([*survivors, again])
    assert set(history) == {(step, slot) for step in range(5) for slot in range(8)}
    files = [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert [path.suffix for path in files] == [".idxpack"] * 2, "one a leaf, and no rubbish"
