"""Predictions are those of the same process, and whatever code of people does there stays there."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from playhead.errors import ConfigError, FitError
from playhead.fit.bucket import LengthRule, buckets_of
from playhead.fit.fake.asking import PredictorApart
from playhead.fit.fake.predictor import predictor
from playhead.fit.model import ModelSource
from playhead.fit.probing.orphans import children
from playhead.fit.training import Training

CODE = """
import os, signal, sys, time
import torch
from torch import nn

print("from the import", flush=True)


class Plain(nn.Module):
    sample_rate = None

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        os.system("echo from a program")

    def make_batch(self, batch_size, input_length, output_length):
        return torch.randn(batch_size, input_length, 8)

    def training_step(self, batch):
        print("from a step")
        return self.layer(batch).sum()


class Hangs(Plain):
    def training_step(self, batch):
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            time.sleep(60)


class Leaves(Plain):
    def training_step(self, batch):
        sys.exit(0)


class Forks(Plain):
    def training_step(self, batch):
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        return super().training_step(batch)


def ends_and_leaves_another():
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    ends()


def ends():
    os._exit(0)


def leaves():
    sys.exit(0)


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    (tmp_path / "foretold.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    # What a model prints is in the log though it is cut off while it waits in a buffer.
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    opened: list[PredictorApart] = []

    def make(name: str, **options: Any) -> PredictorApart:
        source = ModelSource(kind="code", name=f"foretold:{name}")
        log = tmp_path / "log"
        limits = {"seconds": 60, "prediction_seconds": 60, **options}
        made = PredictorApart(source, Training(), "fake", log=log, **limits)
        opened.append(made)
        return made

    yield make
    for made in opened:
        made.close()


(BUCKET,) = buckets_of([5], LengthRule())


def test_a_peak_is_that_of_a_predictor_here_and_nothing_is_printed(asked, tmp_path, capfd):
    with asked("Plain") as apart:
        assert apart.open().model == "foretold:Plain"
        assert apart.notes[0].startswith("an estimate")
        peak = apart.predict(BUCKET, 7)
    assert capfd.readouterr() == ("", "")
    said = (tmp_path / "log").read_text()
    assert all(f"from {who}" in said for who in ("the import", "a program", "a step"))
    source = ModelSource(kind="code", name="foretold:Plain")
    assert peak == predictor(source, Training(), "fake").predict(BUCKET, 7)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ends", "ended with exit code 0 as it opened the model"),
        ("leaves", "opening foretold:leaves failed: SystemExit: 0"),
        ("is_killed", r"was killed \(SIGKILL\) as it opened the model"),
    ],
)
def test_a_model_that_ends_its_process_is_an_error(asked, name, said):
    with pytest.raises(FitError, match=f"(?i){said}"):
        asked(name).open()


def test_a_model_that_does_not_exist_is_refused(asked):
    with pytest.raises(ConfigError, match="foretold has no nothing"):
        asked("nothing").open()


class Onlooker:
    def __init__(self):
        self.heard = []

    @contextmanager
    def waiting(self):
        self.heard.append("waits")
        yield

    def give_up(self, why):
        self.heard.append(why)


def test_a_step_that_ends_or_hangs_is_the_end_of_predictions_alone(asked):
    leaves = asked("Leaves")
    assert leaves.predict(BUCKET, 1) is None
    assert leaves.blocked == "SystemExit: 0"
    leaves.close()
    before = children(os.getpid())
    onlooker = Onlooker()
    hangs = asked("Hangs", prediction_seconds=0.5, onlooker=onlooker)
    hangs.open()
    [child] = children(os.getpid()) - before
    assert hangs.predict(BUCKET, 1) is None
    why = "a prediction took more than 0.5 s, the limit that --prediction-timeout sets"
    assert hangs.blocked == why
    with pytest.raises(ProcessLookupError):
        os.kill(child, signal.SIGCONT)
    assert hangs.predict(BUCKET, 1) is None
    assert onlooker.heard == ["waits", why]


@pytest.mark.parametrize("name", ["Forks", "ends_and_leaves_another"])
def test_nothing_that_a_model_starts_outlives_its_predictions(asked, name, monkeypatch):
    monkeypatch.setenv("FORETOLD", name)
    with asked(name) as apart:
        apart.predict(BUCKET, 1)
        assert name != "Forks" or len(_of_test(name)) >= 2
    assert _of_test(name) == []


def _of_test(name: str) -> list[Path]:
    """The processes that this test has started, and that these have."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (process / "environ").read_bytes().split(b"\0")
            if f"FORETOLD={name}".encode() in environment:
                found.append(process)
    return found
