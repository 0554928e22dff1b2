"""The examples of plain PyTorch are killed, go on on other ranks, and end with the same weights."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from support.real_speech import RATE

if TYPE_CHECKING:
    from support.jobs import Job, Server

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def blend(tmp_path: Path, digits: Path) -> Path:
    """Two endless sources."""
    entries = [
        {"type": "nemo", "manifest_filepath": str(digits / "manifest.json"), "name": name}
        for name in ("one", "two")
    ]
    options = {"sample_rate": RATE, "shuffle": True, "seed": 3, "batch_duration": 4}
    path = tmp_path / "blend.yaml"
    path.write_text(json.dumps({"input_cfg": entries, **options}))
    return path


def start(server: Server, folder: Path, script: list[str], ranks: int) -> list[Job]:
    """A process for each rank, as torchrun would start it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    return [
        server.start(
            folder,
            {
                "script": script,
                "environment": {**address, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                "notes": "default",
            },
        )
        for rank in range(ranks)
    ]


def run(server: Server, folder: Path, script: list[str], ranks: int) -> None:
    for job in start(server, folder, script, ranks):
        job.finish(90)


def run_until_saved(server: Server, folder: Path, script: list[str], ranks: int) -> None:
    """Kill all ranks once there is a checkpoint."""
    jobs = start(server, folder, [*script, "--steps=1000000"], ranks)
    deadline = time.monotonic() + 90
    while not steps_saved(folder):
        assert all(job.poll() is None for job in jobs), jobs[0].log.read_text()
        assert time.monotonic() < deadline, "nothing was saved"
        time.sleep(0.01)
    for job in jobs:
        job.kill()


def steps_saved(folder: Path) -> int:
    """Steps before the last whole checkpoint; 0 where there is none."""
    path = folder / "saved"
    if path.is_file():
        return torch.load(path, weights_only=True)["step"]
    return max((int(done.parent.name) for done in path.glob("*/.metadata")), default=0)


def weights_saved(folder: Path, step: int) -> dict[str, torch.Tensor]:
    """The model of the last checkpoint, which must be that of a step."""
    path = folder / "saved"
    if path.is_dir():
        dcp_to_torch_save(path / f"{step:08}", folder / "whole")
        path = folder / "whole"
    saved = torch.load(path)
    assert saved["step"] == step
    return saved["model"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("train", marks=pytest.mark.slow),
        pytest.param("train_ddp", marks=pytest.mark.slow),
        "train_dcp",
        "train_torchdata",
    ],
)
def test_a_killed_run_goes_on_on_other_ranks_to_the_same_weights(
    server: Server, tmp_path: Path, blend: Path, name: str
) -> None:
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    option = "--checkpoints" if name == "train_dcp" else "--checkpoint"

    def script(folder: Path) -> list[str]:
        path = str(EXAMPLES / f"{name}.py")
        return [path, str(blend), "--save-every=4", f"{option}={folder / 'saved'}"]

    run_until_saved(server, stopped, script(stopped), 2)
    end = steps_saved(stopped) + 8
    run(server, stopped, [*script(stopped), f"--steps={end}"], 1)
    run(server, whole, [*script(whole), f"--steps={end}"], 4 if name == "train_ddp" else 1)
    weights = weights_saved(whole, end)
    for key, weight in weights_saved(stopped, end).items():
        # In single precision, the order in which ranks add gradients up shows a little.
        torch.testing.assert_close(weight, weights[key], rtol=1e-4, atol=1e-6)
