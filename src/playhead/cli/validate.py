"""`playhead validate`: proof that training on a config resumes exactly."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from playhead.cli import app
from playhead.cli import validate_options as given
from playhead.cli.configs import import_all
from playhead.cli.default_command import SELF, WithDefault
from playhead.cli.options import DataBlendDir, Imports, Section, Tokenizer, parse_spec
from playhead.cli.progress import say
from playhead.cli.validate_consolidate import consolidate
from playhead.errors import ConfigError, PlayheadError, WorkerError
from playhead.local_ranks import leaving_in_order
from playhead.user_code import blame, load_object

if TYPE_CHECKING:
    from collections.abc import Generator

    from playhead.validate.launch import Validation
    from playhead.validate.options import PhaseOptions

__all__ = ["validate"]

_EVERY = 50
_RANKS = 2
_DEADLINE_SECONDS = 3600.0

group = typer.Typer(cls=WithDefault, help="Prove that training on a config resumes exactly.")
app.add_typer(group, name="validate")
group.command("consolidate")(consolidate)


@group.command(SELF, hidden=True)
def validate(
    config: given.Config = None,
    *,
    config_option: given.ConfigOption = None,
    section: Section = None,
    input_cfg: given.InputCfg = None,
    output_dir: given.OutputDir = None,
    steps: given.Steps = None,
    checkpoint_at: given.CheckpointAt = None,
    force_finite: given.ForceFinite = True,
    metadata_only: given.MetadataOnly = True,
    num_workers: given.NumWorkers = None,
    skip_missing: given.SkipMissing = None,
    mode: given.ModeOption = given.Mode.FAST,
    dataset: given.Dataset = None,
    tokenizer: Tokenizer = None,
    data_blend_dir: DataBlendDir = None,
    imports: Imports = None,
    verbose: given.Verbose = False,
    phase: given.PhaseOption = None,
    run_idx: given.RunIdx = 0,
    state_dir: given.StateDir = None,
    ranks: given.Ranks = None,
    resume_ranks: given.ResumeRanks = None,
    resume_workers: given.ResumeWorkers = None,
    whole_pass: given.WholePass = False,
    deadline: given.Deadline = None,
) -> None:
    """Prove that training on a config resumes exactly, by runs that are stopped and resumed.

    One command does it all on this machine: a baseline, the same again, resumed runs on as many and
    on other ranks and workers, and the truth about a pass out of the columns. Then five questions
    are asked of what they wrote down. With --phase it is one phase, as a launcher's rank;
    `playhead validate consolidate` judges them.

    Exit code 0: nothing fails; 1: something does; 2: wrong input, or nothing could be judged.
    """
    from playhead.validate.options import PhaseOptions  # noqa: PLC0415  (imports torch)

    _check_folder(output_dir)
    import_all(imports or ())
    path = _one_config(config, config_option)
    made = None
    if dataset is not None:
        made = load_object(dataset, kind="dataset", option="--dataset")
    workers = _numbers(resume_workers, "--resume-workers", least=0)
    resumed = _numbers(resume_ranks, "--resume-ranks", least=1)
    common: dict[str, Any] = {
        "config": path,
        "section": section,
        "input_cfg": input_cfg,
        "data_blend_dir": data_blend_dir,
        "force_finite": force_finite,
        "metadata_only": metadata_only,
        "num_workers": num_workers,
        "skip_missing": skip_missing,
        "mode": mode.value,
        "tokenizer": parse_spec(tokenizer),
        "dataset": made,
    }
    if phase is None:
        _check_one_process()
        _refuse({"--run-idx": bool(run_idx), "--state-dir": state_dir is not None}, "needs --phase")
        switches = {
            "--config": path,
            "--section": section,
            "--input-cfg": input_cfg,
            "--data-blend-dir": data_blend_dir,
            "--num-workers-override": num_workers,
            "--mode": mode.value,
            "--dataset": dataset,
            "--tokenizer": tokenizer,
        }
        arguments = [f"{name}={value}" for name, value in switches.items() if value is not None]
        arguments += [f"--import={name}" for name in imports or ()]
        arguments.append("--force-finite" if force_finite else "--no-force-finite")
        arguments.append("--metadata-only" if metadata_only else "--no-metadata-only")
        if skip_missing is not None:
            skip = "--skip-missing" if skip_missing else "--fail-on-missing"
            arguments.append(f"{skip}-manifest-entries")
        _run_all(
            output_dir,
            common,
            arguments=tuple(arguments),
            ranks=_RANKS if ranks is None else ranks,
            resume_ranks=resumed or (1,),
            resume_workers=workers or (None,),
            steps=steps,
            whole_pass=whole_pass,
            checkpoint_at=checkpoint_at,
            deadline_seconds=_DEADLINE_SECONDS if deadline is None else deadline,
        )
        return
    _refuse(
        {
            "--whole-pass": whole_pass,
            # How many ranks there are is the launcher's to say, and how long they may take.
            "--ranks": ranks is not None,
            "--deadline": deadline is not None,
        },
        "does not go with --phase",
    )
    is_resumed = phase is given.Phase.RESUMED
    _refuse({"--resume-workers": bool(workers) and not is_resumed}, "needs --phase resumed")
    if output_dir is None:
        raise typer.BadParameter("--phase needs --output-dir")
    if workers:
        common["num_workers"] = _only(workers, "--resume-num-workers")
    options = PhaseOptions(
        **common,
        output_dir=output_dir,
        phase=phase.value,
        run=run_idx,
        steps=steps,
        checkpoint_at=None if checkpoint_at in (None, -1) else checkpoint_at,
        state_dir=state_dir,
        world_size=_only(resumed, "--resume-world-size"),
    )
    _run_one(options, verbose=verbose)


def _run_one(options: PhaseOptions, *, verbose: bool) -> None:
    """Run this process's share of a phase."""
    from playhead.validate.group import process_group  # noqa: PLC0415  (imports torch)
    from playhead.validate.phases import run_phase  # noqa: PLC0415  (same)

    with process_group() as topology:
        speaks = topology.rank == 0

        def say_here(line: str) -> None:
            if speaks:
                say(f"note: {line}")

        def tell(done: int, steps: int) -> None:
            if speaks and (verbose or done % _EVERY == 0):
                say(f"  {options.phase} {options.run}: {done:,}/{steps:,} batches of a rank")

        with _notes(say_here), _blamed():
            meta = run_phase(options, topology, say=say_here, tell=tell)
    if speaks and options.phase == "groundtruth":
        say("groundtruth: all samples of a pass, out of the columns")
    elif speaks:
        over = ", the pass is over" if meta.is_exhausted else ""
        say(f"{meta.phase} {meta.run}: {meta.batches:,} batches of a rank{over}")


def _run_all(output_dir: Path | None, common: dict[str, Any], **asked: Any) -> None:
    """Run all phases, print the verdict and end with its exit code."""
    from playhead.validate.launch import Validation  # noqa: PLC0415  (imports torch)
    from playhead.validate.options import PhaseOptions  # noqa: PLC0415  (same)

    if asked["checkpoint_at"] == -1:
        raise typer.BadParameter(
            "--checkpoint-at -1 saves no state, and there is nothing to resume"
        )
    temporary = output_dir is None
    folder = (
        Path(tempfile.mkdtemp(prefix="playhead-validate-")) if output_dir is None else output_dir
    )
    is_wanted = True
    try:
        options = PhaseOptions(**common, output_dir=folder.absolute(), phase="baseline")
        with leaving_in_order():
            _judge(Validation(options=options, **asked))
        is_wanted = False
    except (KeyboardInterrupt, SystemExit):
        # Half of a validation shows nothing; a verdict ends with an exception of typer's.
        is_wanted = False
        raise
    finally:
        if temporary and not (is_wanted and any(folder.iterdir())):
            shutil.rmtree(folder, ignore_errors=True)
        elif temporary:
            say(f"logs and states are in {folder}")


def _judge(validation: Validation) -> None:
    """Say what a validation comes to.

    Raises
    ------
    typer.Exit
        Where something fails, or nothing could be judged.
    """
    from playhead.validate.launch import validate as validated  # noqa: PLC0415  (imports torch)

    said: list[str] = []

    def say_once(line: str) -> None:
        if line not in said:
            said.append(line)
            say(line)

    with _notes(lambda line: say_once(f"note: {line}")):
        verdict = validated(validation, say=say_once)
    for line in verdict.lines:
        typer.echo(line)
    if verdict.exit_code:
        raise typer.Exit(verdict.exit_code)


def _check_folder(folder: Path | None) -> None:
    """Refuse what cannot be a folder before anything is opened.

    Raises
    ------
    ConfigError
        If it is a file, or lies in one.
    """
    if folder is None:
        return
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ConfigError(
            "logs and states need a folder, and this is a file",
            where=str(there),
            fix="Give another --output-dir",
        )


def _one_config(config: str | None, option: str | None) -> str:
    if config is None and option is None:
        raise typer.BadParameter("give the config: playhead validate CONFIG")
    if config is not None and option is not None and config != option:
        raise typer.BadParameter(f"there are two configs, {config} and {option}")
    return str(config or option)


def _check_one_process() -> None:
    """Refuse to start ranks in every one of the processes that torchrun started.

    Raises
    ------
    ConfigError
        If it did start several here.
    """
    processes = os.environ.get("LOCAL_WORLD_SIZE", "1")
    if processes.isdecimal() and int(processes) > 1:
        raise ConfigError(
            f"torchrun started {processes} of these, and each would start ranks of its own",
            where="LOCAL_WORLD_SIZE",
            fix="Start it once, without torchrun, or give a --phase",
        )


def _numbers(text: str | None, option: str, *, least: int) -> tuple[int, ...]:
    """Whole numbers with commas between them.

    Raises
    ------
    ConfigError
        If the text is none.
    """
    parts = [] if text is None else text.split(",")
    if not all(part.strip().isdecimal() and int(part) >= least for part in parts):
        raise ConfigError(f"{option} {text!r} is no list of numbers", fix="Write it as 2,3")
    return tuple(map(int, parts))


def _only(numbers: tuple[int, ...], option: str) -> int | None:
    if len(numbers) > 1:
        raise ConfigError(
            f"{option} has {len(numbers)} numbers, and a phase is run with one",
            fix="Run the phase once for each, with a --run-idx of its own",
        )
    return next(iter(numbers), None)


def _refuse(idle: dict[str, bool], why: str) -> None:
    for option, is_given in idle.items():
        if is_given:
            raise typer.BadParameter(f"{option} {why}")


@contextmanager
def _notes(tell: Any) -> Generator[None]:
    """Give warnings as notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            tell(str(message))

        warnings.showwarning = show
        yield


@contextmanager
def _blamed() -> Generator[None]:
    """Name the line of a dataset of somebody's own that fails, or that another rank did."""
    try:
        yield
    except (PlayheadError, OSError):
        raise
    except Exception as error:
        if _is_of_another_rank(error):
            raise WorkerError(
                "another rank ended while this one waited for it",
                fix="Look at what the other ranks say",
            ) from error
        blamed = blame(error, "the dataset failed to make a batch", fix="Correct it")
        # 2 is kept for what was wrong before anything ran.
        blamed.exit_code = 1
        raise blamed from error


def _is_of_another_rank(error: Exception) -> bool:
    """Whether ranks were talking to each other when it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return "torch/distributed/" in Path(frames[-1].filename).as_posix() if frames else False
