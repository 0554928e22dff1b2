"""`playhead oomptimizer`: the largest batch that each length bucket can take."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from playhead.cli import app
from playhead.cli import oomptimizer_options as given
from playhead.cli.options import AsJson  # noqa: TC001  (typer reads annotations)
from playhead.cli.progress import say

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from playhead.fit.device import Opened
    from playhead.fit.problem import Problem
    from playhead.fit.profile import Profile
    from playhead.fit.search import Found, FoundBucket
    from playhead.fit.training import Training

__all__ = ["oomptimizer"]

_BUCKETS = "[5,10,15,20,25,30]"
_INTERRUPTED = 130
_NOT_THERE = "a GPU that was not there: an estimate, to be confirmed on one"


def oomptimizer(
    *,
    pretrained_name: given.PretrainedName = None,
    module_name: given.ModuleName = None,
    config_path: given.ConfigPath = None,
    hf: given.Hf = None,
    model: given.Model = None,
    attention: given.Attention = None,
    gradient_checkpointing: given.Checkpointing = False,
    buckets: given.Buckets = _BUCKETS,
    threshold: given.Threshold = 0.05,
    start_batch_size: given.StartBatchSize = 32,
    multiple_of: given.MultipleOf = 1,
    max_batch_size: given.MaxBatchSize = 4096,
    verify: given.Verify = None,
    probe_timeout: given.ProbeTimeout = 900.0,
    prediction_timeout: given.PredictionTimeout = 60.0,
    ratio: given.Ratio = 12.0,
    salm_audio_token_ratio: given.SalmAudioTokenRatio = None,
    optimizer_name: given.OptimizerName = None,
    dtype: given.Dtype = "bfloat16",
    ddp: given.Ddp = True,
    ema: given.Ema = False,
    accumulate: given.Accumulate = 1,
    memory_fraction: given.MemoryFraction = 0.9,
    device: given.Device = "cuda",
    memory: given.Memory = None,
    output: given.Output = None,
    journal: given.Journal = None,
    resume: given.Resume = False,
    dry_run: given.DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Find the largest batch that each length bucket can take, and write it for a config.

    Batches are made up, of the longest samples of each bucket; no data are read. On a GPU every try
    is a process of its own. What was tried is written down at once: after a crash or Ctrl-C,
    --resume goes on.

    Exit code 0: every bucket takes a batch; 1: one takes none (the profile leaves it out), or the
    model fails; 2: wrong input, nothing was tried.
    """
    from playhead.cli.oomptimizer_request import (  # noqa: PLC0415  (--help needs none of it)
        check_places,
        check_range,
        dtype_of,
        identity_of,
        memory_of,
        mixed_steps_of,
        outputs_of,
        places_of,
        source_of,
    )
    from playhead.fit.bounds import read_buckets  # noqa: PLC0415
    from playhead.fit.training import Training  # noqa: PLC0415

    check_range("--threshold", threshold, least=0, most=0.5)
    check_range("--ratio", ratio, least=0)
    check_range("--memory-fraction", memory_fraction, least=0, most=1)
    check_range("--probe-timeout", probe_timeout, least=0)
    check_range("--prediction-timeout", prediction_timeout, least=0)
    if salm_audio_token_ratio is not None:
        check_range("--salm-audio-token-ratio", salm_audio_token_ratio, least=0, most=1)
    check_range("--multiple-of", multiple_of, least=0, most=max_batch_size)
    source = source_of(
        pretrained_name=pretrained_name,
        module_name=module_name,
        config_path=config_path,
        hf=hf,
        model=model,
        ratio=ratio,
        audio_share=salm_audio_token_ratio,
        attn_implementation=attention,
        gradient_checkpointing=gradient_checkpointing,
    )
    outputs = outputs_of(output or (), optimizer_name)
    asked = read_buckets(buckets)
    amount = memory_of(device, memory)
    training = Training(
        optimizer=outputs.optimizer,
        dtype=dtype_of(dtype),
        ddp=ddp,
        ema=ema,
        accumulate=accumulate,
    )
    for note in outputs.notes:
        say(f"note: {note}")
    named = {"device": device, "memory": amount, "dtype": training.dtype}
    places = places_of(outputs.profile, journal, identity_of(source, training, asked, named))
    check_places(outputs.profile, places, [buckets, source.config])
    from playhead.cli.oomptimizer_text import Waiter  # noqa: PLC0415
    from playhead.fit.device import opened_device  # noqa: PLC0415
    from playhead.fit.problem import Problem  # noqa: PLC0415

    waiter = Waiter()
    with (
        _resumable(places.journal, dry_run=dry_run),
        opened_device(
            source,
            asked.bounds,
            training,
            device=device,
            memory=amount,
            fraction=memory_fraction,
            seconds=probe_timeout,
            prediction_seconds=prediction_timeout,
            log=places.log,
            onlooker=waiter,
        ) as opened,
    ):
        problem = Problem(
            buckets=opened.buckets,
            budget=opened.prober.budget,
            start_batch_size=min(start_batch_size, max_batch_size),
            threshold=threshold,
            multiple_of=multiple_of,
            max_batch_size=max_batch_size,
            verify_steps=mixed_steps_of(device, verify),
        )
        said = _say_opened(opened, problem, training)
        if dry_run:
            _say_plan(opened, problem)
            return
        identity = identity_of(source, training, asked, opened.facts)
        found = _found(opened, problem, places.journal, identity, resume=resume)
        notes = (*opened.notes(), *found.notes)
    from playhead.fit.profile import Profile  # noqa: PLC0415

    facts = _facts(opened, problem, training, found, fraction=memory_fraction)
    profile = Profile.of(_measured(opened, found), asked, facts, problem.largest)
    for note in notes:
        if note not in {*said, *waiter.said}:
            say(f"note: {note}")
    _say_found(found, profile, opened, training, memory_fraction, as_json=as_json)
    if outputs.profile is not None:
        profile.write(outputs.profile)
        say(f"wrote {outputs.profile}; every try is in {places.journal}")
    elif journal is None:
        # Nobody asked for it: it was there for a crash.
        places.journal.unlink(missing_ok=True)
    raise typer.Exit(0 if all(found.sizes) else 1)


app.command("oomptimizer")(oomptimizer)
app.command("fit", help="The same as `playhead oomptimizer`.")(oomptimizer)


@contextmanager
def _resumable(journal: Path, *, dry_run: bool) -> Generator[None]:
    """End quietly at Ctrl-C, and say how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if not dry_run and journal.exists():
            say(f"stopped; what was tried is in {journal}, and --resume goes on")
        raise typer.Exit(_INTERRUPTED) from None


def _found(
    opened: Opened, problem: Problem, path: Path, identity: dict[str, Any], *, resume: bool
) -> Found:
    from playhead.cli.oomptimizer_text import Teller  # noqa: PLC0415
    from playhead.fit.journal import Journal  # noqa: PLC0415
    from playhead.fit.search import run_search  # noqa: PLC0415

    with Journal(path, identity, resume=resume) as journal:
        if resume:
            say(f"{len(journal.records)} tries are known from {path}")
        return run_search(problem, opened.prober, journal, Teller(opened.buckets))


def _say_opened(opened: Opened, problem: Problem, training: Training) -> Sequence[str]:
    """Say what is searched, and return the notes that were said with it."""
    from playhead.fit.amounts import shown_amount  # noqa: PLC0415

    say(
        f"{opened.model} on {opened.facts['device']}, {training.dtype}:"
        f" {len(problem.buckets)} buckets, a budget of {shown_amount(problem.budget)}"
    )
    notes = tuple(opened.notes())
    for note in notes:
        say(f"note: {note}")
    return notes


def _say_plan(opened: Opened, problem: Problem) -> None:
    """Say what would be tried."""
    from playhead.fit.amounts import shown_amount  # noqa: PLC0415
    from playhead.fit.problem import Finished  # noqa: PLC0415
    from playhead.fit.search_plan import next_action  # noqa: PLC0415
    from playhead.fit.text import about, begin_line  # noqa: PLC0415

    size = problem.start_batch_size
    for number, bucket in enumerate(problem.buckets):
        predicted = opened.prober.predict(number, size)
        said = "" if predicted is None else f": batch_size={size} holds {shown_amount(predicted)}"
        typer.echo(f"{about(bucket)}{said}")
    action = next_action(problem, [], opened.prober.predict)
    assert not isinstance(action, Finished)
    typer.echo(f"first: {begin_line(action, problem.buckets).removesuffix(':')}")


def _measured(opened: Opened, found: Found) -> Sequence[FoundBucket]:
    """What was found; on a device that is not there nothing was measured."""
    if opened.is_real:
        return found.buckets
    return [replace(one, is_measured=False) for one in found.buckets]


def _facts(
    opened: Opened, problem: Problem, training: Training, found: Found, *, fraction: float
) -> dict[str, str]:
    """What the sizes were found for and with, as comments of the profile have it."""
    from datetime import datetime, timezone  # noqa: PLC0415  (for this alone)

    from playhead.fit.amounts import shown_amount  # noqa: PLC0415
    from playhead.version import own_version  # noqa: PLC0415

    counted = ["DDP" if training.ddp else "no DDP", *(["EMA"] if training.ema else [])]
    versions = [
        f"{name} {value}"
        for name, value in opened.facts.items()
        if name not in ("device", "memory", "dtype")
    ]
    tries = f"{found.probes} probes, {found.mixes} mixes, {found.seconds:.0f} s"
    verified = f"{problem.verify_steps} steps of a mix were clean" if found.is_verified else "no"
    return {
        "command": shlex.join(["playhead", *sys.argv[1:]]),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "model": opened.model,
        "device": str(opened.facts["device"]) if opened.is_real else _NOT_THERE,
        "memory": (
            f"{fraction:g} of {shown_amount(opened.memory)}, {shown_amount(problem.budget)}"
        ),
        "training": (
            f"{training.dtype}, {training.optimizer}, {', '.join(counted)},"
            f" {training.accumulate} micro-batches a step"
        ),
        "versions": ", ".join([f"playhead {own_version()}", *versions]),
        "search": tries,
        "verified": verified,
    }


def _say_found(
    found: Found,
    profile: Profile,
    opened: Opened,
    training: Training,
    fraction: float,
    *,
    as_json: bool,
) -> None:
    from playhead.fit.text import (  # noqa: PLC0415
        final_lines,
        found_lines,
        merge_lines,
        settings_lines,
    )

    if as_json:
        more = {
            "probes": found.probes,
            "mixes": found.mixes,
            "seconds": found.seconds,
            "verified": found.is_verified,
        }
        typer.echo(json.dumps({**profile.to_json(), **more}, indent=2))
        return
    budget = opened.prober.budget
    settings = settings_lines(training, memory=opened.memory, fraction=fraction, budget=budget)
    _print([*found_lines(found.buckets), *merge_lines(profile), *settings, *final_lines(profile)])


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        typer.echo(line)
