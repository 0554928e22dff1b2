"""A model of speech and text trained on several blends, killed, and trained on elsewhere."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support import talk, talk_cuts  # noqa: F401  (some of the forms are written there)

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).parents[2] / "examples/speech_language_model.py"
G = 6


def write_blends(folder: Path, **top: Any) -> Path:
    """Text, conversations, and speech as conversations: a part each, with options of its own."""
    measured = {
        "use_multimodal_sampling": True,
        "audio_locator_tag": talk.TAG,
        "token_equivalent_duration": talk.SECONDS_PER_TOKEN,
        "prompt_format": "llama3",
        "window_draws": 60,
    }

    def part(*names: str, **options: Any) -> dict[str, Any]:
        forms = [talk.FORMS[one].write(folder / one.replace(", ", "-")) for one in names]
        return {"input_cfg": forms, **measured, **options}

    blends = {
        "multi_config": True,
        "seed": 3,
        "shard_seed": 3,
        "shuffle": True,
        "sampler_fusion": "zip",
        "text": part("txt_jsonl", "txt", batch_tokens=120),
        "talk": part("multimodal_conversation", batch_tokens=260),
        "asr": part(
            "lhotse_as_conversation, manifest", "lhotse_as_conversation, tars", batch_tokens=160
        ),
        **top,
    }
    path = folder / "blends.yaml"
    path.write_text(json.dumps(blends))
    return path


class Training:
    """Runs of the example in one folder; all share its checkpoint."""

    def __init__(self, folder: Path, blends: Path, tokenizer: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.command = [
            sys.executable, str(EXAMPLE), str(blends), "--tokenizer", tokenizer, "--audio-tag",
            talk.TAG, "--checkpoint", str(folder / "checkpoint.pt"), "--log", str(folder),
        ]  # fmt: skip
        self.ranks: list[subprocess.Popen[bytes]] = []

    def start(self, ranks: int, steps: int, *, save_every: int = 2, workers: int = 0) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        ends = ["--steps", str(steps), "--save-every", str(save_every), "--workers", str(workers)]
        with (self.folder / "errors.txt").open("ab") as errors:
            for rank in range(ranks):
                place = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
                place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
                self.ranks.append(
                    subprocess.Popen(
                        [*self.command, *ends],
                        env={**os.environ, **place, "OMP_NUM_THREADS": "1"},
                        stdout=subprocess.DEVNULL,
                        stderr=errors,
                        start_new_session=True,
                    )
                )

    def lines(self) -> list[dict[str, Any]]:
        """What all runs so far trained on; a line that was cut short is none."""
        texts = [path.read_text() for path in self.folder.glob("*.jsonl")]
        whole = [text[: text.rfind("\n") + 1] for text in texts]
        return [json.loads(line) for text in whole for line in text.splitlines()]

    def kill_after(self, steps: int, timeout: float) -> None:
        """End all ranks at once, when so many steps were begun."""
        deadline = time.monotonic() + timeout
        while max((line["step"] for line in self.lines()), default=-1) < steps:
            assert time.monotonic() < deadline, self.errors()
            assert all(rank.poll() is None for rank in self.ranks), self.errors()
            time.sleep(0.02)
        for rank in self.ranks:
            # With its workers: they are of its session.
            os.killpg(rank.pid, signal.SIGKILL)
        for rank in self.ranks:
            assert rank.wait(10) == -signal.SIGKILL
        self.ranks.clear()

    def finish(self, timeout: float) -> None:
        for rank in self.ranks:
            assert rank.wait(timeout) == 0, self.errors()
        self.ranks.clear()

    def errors(self) -> str:
        return (self.folder / "errors.txt").read_text()[-3000:]

    def close(self) -> None:
        for rank in self.ranks:
            if rank.poll() is None:
                os.killpg(rank.pid, signal.SIGKILL)
                rank.wait(10)


def by_place(lines: list[dict[str, Any]]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for line in lines:
        found.setdefault((line["step"], line["slot"]), []).append(line)
    return found


def check_same_training(whole: Training, killed: Training, steps: int) -> None:
    """Every micro-batch of every step, as often as it was trained on, is that of the whole run."""
    expected = by_place(whole.lines())
    assert set(expected) == {(step, slot) for step in range(steps) for slot in range(G)}
    got = by_place([line for line in killed.lines() if line["step"] < steps])
    assert set(got) == set(expected)
    assert sum(map(len, got.values())) > len(expected), "nothing was lost by the kill"
    for place, again in got.items():
        (one,) = expected[place]
        for line in again:
            assert (line["ids"], line["kinds"], line["sha256"]) == (
                one["ids"], one["kinds"], one["sha256"],
            )  # fmt: skip
            assert line["loss"] == pytest.approx(one["loss"], abs=1e-6)


def check_it_learns(whole: Training, steps: int) -> None:
    curve = [0.0] * steps
    for line in whole.lines():
        curve[line["step"]] += line["loss"] / G
    assert sum(curve[-3:]) < sum(curve[:3])


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    return talk.tokenizer(tmp_path / "tokenizer")


def train(
    folder: Path,
    blends: Path,
    tokenizer: str,
    *,
    steps: int,
    kills: list[tuple[int, int]],
    last: int,
) -> Training:
    """Train to the end in one run, and in runs of (ranks, steps until they are killed).

    `last` is on how many ranks the last of them ends. Returns the run that nothing stopped.
    """
    whole = Training(folder / "whole", blends, tokenizer)
    killed = Training(folder / "killed", blends, tokenizer)
    try:
        # Packs and token counts are made once.
        whole.start(1, steps, save_every=10_000)
        for ranks, at in kills:
            killed.start(ranks, 10_000, workers=int(ranks == 1))
            killed.kill_after(at, 60)
        killed.start(last, steps, workers=int(last == 1))
        killed.finish(90)
        whole.finish(90)
        check_same_training(whole, killed, steps)
        return whole
    finally:
        whole.close()
        killed.close()


@pytest.mark.timeout(120)
def test_killed_and_trained_on_with_other_ranks(tmp_path: Path, tokenizer: str) -> None:
    blends = write_blends(tmp_path / "data")
    whole = train(tmp_path, blends, tokenizer, steps=9, kills=[(2, 4)], last=1)
    check_it_learns(whole, 9)
    # Every micro-batch holds all parts.
    assert {tuple(dict.fromkeys(line["kinds"])) for line in whole.lines()} == {
        ("conversation", "text")
    }
    names = {name for line in whole.lines() for name in line["ids"]}
    assert len({name[:3] for name in names}) > 3


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fusion", ["zip", "round_robin", "randomized_round_robin"])
def test_killed_again_and_again(tmp_path: Path, tokenizer: str, fusion: str) -> None:
    top = {"sampler_weights": {"text": 1, "talk": 3, "asr": 2}}
    blends = write_blends(
        tmp_path / "data", sampler_fusion=fusion, **top if fusion.startswith("randomized") else {}
    )
    kills = [(2, 7), (1, 15), (6, 22), (3, 30)]
    train(tmp_path, blends, tokenizer, steps=40, kills=kills, last=3)
