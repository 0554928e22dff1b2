"""Small models for probes, and one that does all that models should not."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
from torch import nn

from playhead.fit.model import ModelSource
from playhead.fit.probing.options import ProbeOptions

MIB = 1 << 20
OPTIONS = ProbeOptions(device="cpu", memory=20 * MIB, fraction=0.5, seconds=60.0)
"""A CPU with little memory, of which half may be held."""

FOLDER = "SMALL_MODELS_FOLDER"
"""Name of the variable that holds the folder in which `Told` looks for what it is told."""


def small(name):
    """Where one of these models comes from."""
    return ModelSource(kind="code", name=f"support.small_models:{name}")


class Small(nn.Module):
    """A layer over frames of which a bucket has as many as it says."""

    sample_rate = None

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def make_batch(self, batch_size, input_length, output_length):
        return torch.randn(batch_size, input_length, 64)

    def training_step(self, batch, batch_idx=0):
        return self.layer(batch).relu().mean()


class AsksForCuda(Small):
    """Looks in its constructor for the card that is current, as code with `.cuda()` in it does."""

    def __init__(self):
        torch.cuda.current_device()
        super().__init__()


class Told(Small):
    """Does in each step what the file `act` says: the name of a function here, and a size.

    Batches of fewer samples than that are trained on as if nothing was.
    """

    def training_step(self, batch, batch_idx=0):
        act = Path(os.environ[FOLDER], "act")
        if act.exists():
            name, size = act.read_text().split()
            if len(batch) >= int(size):
                globals()[name]()
        return super().training_step(batch)


def fail():
    raise IndexError("index out of range in self")


def run_out_of_cublas():
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


def find_no_engine():
    raise RuntimeError("GET was unable to find an engine to execute this computation")


def abort():
    print("the last thing that it says", file=sys.stderr, flush=True)
    os.abort()


def abort_for_memory():
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def leave():
    os._exit(3)


def segfault():
    ctypes.string_at(0)


def kill_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def hang():
    Path(os.environ[FOLDER], "hanging").write_text(str(os.getpid()))
    time.sleep(1000)


def talk():
    os.write(1, b'\x00\xff{"status": "oom"}\n' * 1000)
    os.write(2, b"x" * 4_000_000)


def start_children():
    """Start processes that would outlive the probe, in its group and out of it."""
    for own in (False, True):
        child = subprocess.Popen(["sleep", "1000"], start_new_session=own)
        with Path(os.environ[FOLDER], "children").open("a") as file:
            file.write(f"{child.pid}\n")


def hang_with_children():
    start_children()
    hang()


class Threaded(Small):
    """Has a thread, which a fork leaves behind, and waits for it in every step."""

    def __init__(self):
        super().__init__()
        self.asked, self.answered = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.answer, daemon=True, name="the-thread")
        self.thread.start()

    def answer(self):
        while self.asked.wait():
            self.asked.clear()
            self.answered.set()

    def training_step(self, batch, batch_idx=0):
        self.asked.set()
        assert self.answered.wait(20), "the thread is not there"
        self.answered.clear()
        return super().training_step(batch)


class UnfitForForks(Small):
    """Works in the process that made it alone, and dies in any other."""

    def __init__(self):
        super().__init__()
        self.pid = os.getpid()

    def training_step(self, batch, batch_idx=0):
        if os.getpid() != self.pid:
            os.abort()
        return super().training_step(batch)


class CannotBeMade(Small):
    def __init__(self):
        raise ZeroDivisionError("no layers")


class DiesAsItIsMade(Small):
    def __init__(self):
        os.abort()
