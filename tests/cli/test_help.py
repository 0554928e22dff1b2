"""Tests that --help says all that is written, of every command."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import playhead.cli

for _found in pkgutil.iter_modules(playhead.cli.__path__):
    importlib.import_module(f"playhead.cli.{_found.name}")


def commands(group: Any, name: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found = {}
    for part, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, (*name, part))
        elif not command.hidden:
            found[(*name, part)] = command
    return found


COMMANDS = commands(typer.main.get_command(playhead.cli.app))


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_no_bracket_and_no_line_of_what_is_written_is_lost(
    name: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 1000)
    ran = CliRunner().invoke(playhead.cli.app, [*name, "--help"])
    assert ran.exit_code == 0
    shown = " ".join(ran.stdout.split())
    command = COMMANDS[name]
    said = [one.help for one in command.params if one.help and not one.hidden]
    for text in said + (command.help or "").split("\n\n"):
        assert " ".join(text.replace("`", "").split()) in shown
