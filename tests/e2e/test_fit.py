"""The whole tool on a CPU: sizes that fit, a loader that has them, a search that is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import playhead
from playhead.fit.live_tensors import LiveTensors
from support.corpus import nemo_corpus
from support.fit_in_memory import SOURCE, write_model

pytestmark = pytest.mark.e2e

MIB = 1 << 20
BUCKETS = "[1,4]"
COMMAND = (
    *("oomptimizer", "--model", "fit_tiny:make", "--device", "cpu", "--memory", "100MiB"),
    *("-f", "0.8", "-b", BUCKETS, "-y", "float32", "-o", "profile.yaml"),
)


def start(folder, *arguments):
    environment = {
        **os.environ,
        "PLAYHEAD_CACHE": str(folder / "cache"),
        "PYTHONPATH": str(Path(playhead.__file__).parents[1]),
        "COLUMNS": "200",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "playhead", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process, seconds=150):
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        # Of a process that was late nothing is left behind.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=30)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def tries(folder):
    path = folder / "profile.journal.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    records = [json.loads(line) for line in lines]
    return [record for record in records if record["kind"] in ("probe", "mix")]


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("searched")
    write_model(folder)
    code, out, err = finish(start(folder, *COMMAND))
    assert code == 0, err
    return folder, out, err


def peak_of(batch_size, seconds):
    """Most that tensors hold in steps of that size, counted here."""
    names = {}
    exec(compile(SOURCE, "fit_tiny.py", "exec"), names)
    model = names["make"]()
    optimizer = torch.optim.AdamW(model.parameters())
    live = LiveTensors()
    live.watch(model.parameters())
    copy = [torch.empty_like(weight) for weight in model.parameters()]
    live.watch(copy)
    with live:
        for _ in range(2):
            live.reset_peak()
            optimizer.zero_grad()
            model.training_step(model.make_batch(batch_size, seconds * 1000, 1)).backward()
            optimizer.step()
    return live.peak


def test_sizes_are_the_largest_that_fit_and_a_loader_trains_with_them(
    searched, tmp_path, monkeypatch
):
    folder, out, err = searched
    profile = yaml.safe_load((folder / "profile.yaml").read_text())
    assert profile["bucket_duration_bins"] == [1, 4]
    assert profile["batch_size"] is None
    sizes = profile["bucket_batch_size"]
    budget = 80 * MIB
    for size, seconds in zip(sizes, profile["bucket_duration_bins"], strict=True):
        assert peak_of(size, seconds) <= budget
        assert peak_of(int(size * 1.02) + 1, seconds) > budget
    assert out.splitlines()[-2:] == [
        "\tbucket_duration_bins=[1,4]",
        f"\tbucket_batch_size={str(sizes).replace(' ', '')}",
    ]
    assert (
        f"=> Optimal setting for bucket=4 (input=4000 output=48) is max_batch_size={sizes[1]}"
        in out
    )
    fitted = [line for line in err.splitlines() if line.endswith("OK!")]
    assert fitted
    for line in fitted:
        tensors, predicted = re.findall(r"([\d.]+ MiB)", line)[:2]
        assert f"tensors {tensors} (predicted {predicted})" in line
        # On a CPU it is what was predicted, to the last digit.
        assert tensors == predicted
    # Every try is in the journal, and nothing that did not fit is in the answer.
    for number, size in enumerate(sizes):
        own = [one for one in tries(folder) if one.get("bucket") == number]
        assert any(one["batch_size"] == size and one["status"] == "ok" for one in own)
        assert all(one["batch_size"] > size for one in own if one["status"] == "oom")
    assert trained(folder / "profile.yaml", tmp_path, monkeypatch) == 60


def trained(path, tmp_path, monkeypatch):
    """Train on 60 samples with a profile as it is, and return how many came."""
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    durations = np.random.default_rng(0).uniform(0.1, 3.9, 60).round(2).tolist()
    manifest = nemo_corpus(tmp_path, durations, rate=1000)
    profile = yaml.safe_load(path.read_text())
    section = {"manifest_filepath": str(manifest), "shuffle": True, "force_finite": True, **profile}
    config = tmp_path / "train.yaml"
    config.write_text(yaml.safe_dump({"model": {"train_ds": {**section, "sample_rate": 1000}}}))
    with pytest.warns(UserWarning, match="longer than the last of bucket_duration_bins"):
        loader = playhead.dataloader(config)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = 0
    for batch in loader:
        longest = float(batch["audio_lens"].max()) / 1000
        number = next(
            n for n, most in enumerate(profile["bucket_duration_bins"]) if longest <= most
        )
        assert len(batch["texts"]) <= profile["bucket_batch_size"][number]
        model(batch["audio"].float().mean(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
        seen += len(batch["texts"])
    return seen


@pytest.mark.slow
def test_a_search_that_is_killed_goes_on_where_it_was(searched, tmp_path):
    folder, out, _ = searched
    write_model(tmp_path)
    killed = start(tmp_path, *COMMAND)
    deadline = time.monotonic() + 120
    while len(tries(tmp_path)) < 2 and killed.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=30)
    before = tries(tmp_path)
    assert not (tmp_path / "profile.yaml").exists()
    code, _, err = finish(start(tmp_path, *COMMAND))
    assert code == 2
    assert "There is a journal already" in err
    code, resumed, err = finish(start(tmp_path, *COMMAND, "--resume"))
    assert code == 0
    assert f"{len(before)} tries are known" in err
    assert resumed == out
    after = tries(tmp_path)
    assert after[: len(before)] == before
    wanted = [(one["bucket"], one["batch_size"]) for one in tries(folder)]
    assert [(one["bucket"], one["batch_size"]) for one in after] == wanted
    # What is known needs no try: the same once more, and less memory with few.
    code, again, _ = finish(start(tmp_path, *COMMAND, "--resume"))
    assert (code, again) == (0, out)
    assert len(tries(tmp_path)) == len(after)
    code, less, _ = finish(start(tmp_path, *COMMAND, "--resume", "-f", "0.7"))
    assert code == 0
    assert len(tries(tmp_path)) - len(after) <= 2
    assert less != out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"--model": "fit_tiny:Broken"}, 1, "no_such_layer"),
        ({"--memory": "100KiB"}, 1, "no bucket takes even the smallest batch"),
        ({"--device": "cuda:77"}, (1, 2), "cuda:77"),
    ],
)
def test_what_cannot_work_is_one_line(tmp_path, change, code, said):
    write_model(tmp_path)
    given = {"--model": "fit_tiny:make", "--device": "cpu", "--memory": "100MiB", "-b": "[1]"}
    flags = [word for pair in {**given, **change}.items() for word in pair]
    got, out, err = finish(start(tmp_path, "oomptimizer", *flags))
    assert got in (code if isinstance(code, tuple) else (code,))
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("playhead: ")
    assert said.lower() in last.lower()


@pytest.mark.slow
def test_a_mix_of_all_buckets_proves_the_sizes(tmp_path):
    write_model(tmp_path)
    code, _, err = finish(start(tmp_path, *COMMAND, "--verify", "12"))
    assert code == 0, err
    assert "12 steps over a mix of 2 buckets" in err
    profile = (tmp_path / "profile.yaml").read_text()
    assert "# verified: 12 steps of a mix were clean" in profile
    last = tries(tmp_path)[-1]
    mixes = [one for one in tries(tmp_path) if one["kind"] == "mix" and one["status"] == "ok"]
    assert yaml.safe_load(profile)["bucket_batch_size"] in [one["sizes"] for one in mixes]
    assert last["budget"] == 80 * MIB


@pytest.mark.slow
def test_a_bucket_that_takes_nothing_is_left_out_and_said(tmp_path):
    write_model(tmp_path)
    code, out, err = finish(
        start(tmp_path, *COMMAND[:-6], "-b", "[1,600]", "-y", "float32", "-o", "profile.yaml")
    )
    assert code == 1, err
    assert "=> Not even one sample fits for bucket=600" in out
    profile = (tmp_path / "profile.yaml").read_text()
    assert yaml.safe_load(profile)["bucket_duration_bins"] == [1]
    assert "NOT EVEN ONE FITS" in profile
