"""What a probe does, in a process of its own."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from playhead.errors import PlayheadError
from playhead.fit.probing.fault import place, words
from playhead.fit.probing.messages import Answer, Device, Facts, Refusal, Task, encode
from playhead.fit.probing.oom import judge
from playhead.fit.probing.orphans import die_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from mmap import mmap

    from playhead.fit.model import FitModel
    from playhead.fit.probing.memory import Memory
    from playhead.fit.training import Training

__all__ = ["be_a_child", "describe", "facts_of", "run"]

_WORST_OOM_SCORE = "1000"


def be_a_child(work: Callable[[], Answer], *, server: int, answers: int, output: int) -> NoReturn:
    """Do some work right after a fork, say what came of it, and end without ado.

    Parameters
    ----------
    work
        What is done; whatever it raises is part of the answer.
    server
        Process id of the parent.
    answers
        Where the answer goes (a file descriptor).
    output
        Where all else goes that is written (another).
    """
    code = 1
    try:
        os.setpgid(0, 0)
        die_with(server, signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        # If the memory of the machine runs out, the kernel should take this process and no other.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(_WORST_OOM_SCORE)
        os.dup2(output, 1)
        os.dup2(output, 2)
        faulthandler.enable(file=2)
        answer = _said(work)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        with os.fdopen(answers, "wb") as pipe:
            pipe.write(encode(answer))
        code = 0
    except BaseException:  # noqa: BLE001  (there is nobody to raise it to)
        traceback.print_exc()
    finally:
        # Neither handlers of the server, which are not this process's, nor any destructor.
        os._exit(code)


def _said(work: Callable[[], Answer]) -> Answer:
    try:
        return work()
    except PlayheadError as error:
        traceback.print_exc()
        return Answer(status="refused", refusal=Refusal.of(error))
    except BaseException as error:  # noqa: BLE001  (code of others: SystemExit and all)
        traceback.print_exc()
        verdict = judge(error)
        return Answer(status=verdict, reason=words(error), where=place(error))


def describe(memory: Memory, open_model: Callable[[], FitModel] | None) -> Answer:
    """Say what the device is, and what the model.

    Parameters
    ----------
    memory
        That of the device.
    open_model
        Opens the model; None leaves it out. It comes second: who else is on a card is asked before
        anything of this process is.
    """
    facts = Facts(device=memory.device())
    if open_model is not None:
        model = open_model()
        facts = facts_of(facts.device, model)
    return Answer(status="facts", facts=facts)


def facts_of(device: Device, model: FitModel) -> Facts:
    """Put together what is known of a device and of a model."""
    return Facts(device=device, model=model.name, rule=model.rule, notes=tuple(model.notes))


def run(model: FitModel, training: Training, memory: Memory, task: Task, done: mmap) -> Answer:
    """Do the steps of a task.

    Parameters
    ----------
    model
        The model, on the CPU.
    training
        How it is trained.
    memory
        Where.
    task
        The steps.
    done
        Where the number of steps that are done is written, for whoever outlives this process.

    Returns
    -------
    Answer
        What became of them; tensors of the steps that were done, and the most that the allocator
        held, be it in the step that went wrong.
    """
    from playhead.fit.steps import prepare, train_step  # noqa: PLC0415  (torch is slow to import)

    if (busy := memory.limit(task.budget)) is not None:
        return Answer(status="busy", reason=busy)
    allocated = [0] * len(task.sizes)
    reserved = 0

    def steps() -> Answer:
        nonlocal reserved
        memory.place(model.module)
        prepared = prepare(model, training)
        for number, bucket in enumerate(task.order):
            memory.begin_step()
            try:
                train_step(prepared, task.buckets[bucket], task.sizes[bucket])
                memory.wait()
            finally:
                peak = memory.peaks()
                reserved = max(reserved, peak[1])
            # What a step held that was not done says nothing of what it would have held.
            allocated[bucket] = max(allocated[bucket], peak[0])
            done[:8] = (number + 1).to_bytes(8, "little")
        return Answer(status="ok")

    return replace(_said(steps), allocated=tuple(allocated), reserved=reserved)
