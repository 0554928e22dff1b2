"""Commands of the documentation, each looked at by the program that would run it.

`check_command` runs those of Playhead that read data on the files of `page_project`; all others
are taken apart by the real parser of their program, which refuses an option that it does not have.
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from typer.core import TyperCommand

from support.command import SCRIPTS, run_command, run_script
from support.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PARSED_ONLY", "check_command"]

PARSED_ONLY = {
    "demo": "trains for a minute; tests/demo runs it",
    "fit": "searches for minutes; tests/fit runs it",
    "oomptimizer": "searches for minutes; tests/fit runs it",
    "validate": "starts ranks; tests/validate runs it",
}
"""Commands of Playhead that are parsed and not run, and why."""
# Files of the pages that are not on this machine lie here below the folder of the project.
_AWAY = re.compile(r"^/(data|fast|local|lustre|mnt|packs|shared)(?=/)")
_NEEDS = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)?\.?(?:\[(?P<extras>[\w,-]+)\])?(?P<version>[=<>!~].*)?$"
)
# What the shell does by itself, and what hands a file of a page to a scheduler.
_SHELL = frozenset({"cd", "export", "set", "sbatch"})


class _ParsedError(Exception):
    """The arguments of a program were understood."""


def check_command(words: list[str], folder: Path) -> None:
    """Look at a command of a page; an assertion fails where it is wrong.

    Parameters
    ----------
    words
        The command; paths of other machines stand for places in the folder.
    folder
        Where it is run: files of `page_project`.
    """
    program, *rest = [_AWAY.sub(rf"{folder}/\1", word) for word in words]
    while rest and re.fullmatch(r"[A-Z_]+=[^$]*", program):
        program, *rest = rest
    if program == "playhead":
        _playhead(rest, folder)
    elif program == "torchrun":
        _torchrun(rest, folder)
    elif program == "srun":
        check_command(rest[rest.index("playhead") :], folder)
    elif program == "accelerate":
        _accelerate(rest, folder)
    elif program in {"python", "python3"}:
        _python(rest, folder)
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(rest) <= set(targets), f"the Makefile has no {rest}"
    elif program == "pip":
        _pip(rest)
    elif program not in _SHELL and not re.fullmatch(r"\w+=\$\(sbatch", program):
        raise AssertionError(f"nobody knows how to try {words[0]!r}: see tests/support")


def _playhead(arguments: list[str], folder: Path) -> None:
    arguments = ["2" if word.startswith("$SLURM_") else word for word in arguments]
    if arguments[0] in PARSED_ONLY or "auto" in arguments:
        with mock.patch.object(TyperCommand, "invoke", return_value=None):
            ran = run_command(*arguments, cwd=folder)
    else:
        ran = run_command(*arguments, cwd=folder)
    assert ran.returncode == 0, ran.stderr + ran.stdout


def _python(arguments: list[str], folder: Path) -> None:
    if arguments[:2] == ["-m", "playhead.cli.nemo_names"]:
        _script(arguments[2], arguments[3:], folder)
    elif arguments[:2] == ["-m", "playhead"]:
        _playhead(arguments[2:], folder)
    elif arguments[0].startswith("scripts/"):
        _script(arguments[0].removeprefix("scripts/"), arguments[1:], folder)
    else:
        _program(arguments[0], arguments[1:], folder)


def _script(name: str, arguments: list[str], folder: Path) -> None:
    assert (SCRIPTS / name).exists(), f"there is no scripts/{name}"
    ran = run_script(name, *arguments, cwd=folder)
    assert ran.returncode == 0, ran.stderr + ran.stdout


def _program(name: str, arguments: list[str], folder: Path) -> None:
    """Parse the arguments of a program, one of the examples or one that the project has."""
    path = ROOT / name if (ROOT / name).exists() else folder / name
    assert path.exists(), f"there is no {name}"
    if "argparse" not in path.read_text():
        assert not arguments or "sys.argv" in path.read_text(), f"{name} takes no arguments"
        return
    parse = argparse.ArgumentParser.parse_known_args

    def stop(self: argparse.ArgumentParser, *given: object) -> None:
        _, unknown = parse(self, *given)
        raise _ParsedError(unknown)

    with (
        mock.patch.object(argparse.ArgumentParser, "parse_known_args", stop),
        mock.patch.object(sys, "argv", [str(path), *arguments]),
        pytest.raises(_ParsedError) as parsed,
    ):
        runpy.run_path(str(path), run_name="__main__")
    assert not parsed.value.args[0], f"{name} does not know {parsed.value.args[0]}"


def _torchrun(arguments: list[str], folder: Path) -> None:
    from torch.distributed.run import get_args_parser

    # What stands between is written as one sign.
    parsed = get_args_parser().parse_args([word for word in arguments if word != "…"])
    _python(["-m"] * parsed.module + [parsed.training_script, *parsed.training_script_args], folder)


def _accelerate(arguments: list[str], folder: Path) -> None:
    from accelerate.commands.launch import launch_command_parser

    assert arguments[0] == "launch"
    parsed = launch_command_parser().parse_args(arguments[1:])
    _program(parsed.training_script, parsed.training_script_args, folder)


def _pip(arguments: list[str]) -> None:
    assert arguments[0] == "install"
    project = (ROOT / "pyproject.toml").read_text()
    [extras] = re.findall(
        r"^\[project\.optional-dependencies\]\n(.*?)^\[", project, re.MULTILINE | re.DOTALL
    )
    for word in arguments[1:]:
        need = _NEEDS.match(word)
        assert need, f"pip cannot read {word!r}"
        if need["extras"] and need["name"] in {None, "playhead"}:
            known = re.findall(r"^(\w+) = ", extras, re.MULTILINE)
            unknown = set(need["extras"].split(",")) - set(known)
            assert not unknown, f"pyproject.toml has no extra {unknown}"
