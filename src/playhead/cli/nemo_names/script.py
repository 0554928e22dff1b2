"""What a script of NeMo's guides takes, and what becomes of each of its options here."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from playhead.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "Given",
    "Option",
    "Script",
    "captured_command",
    "idle",
    "kept",
    "passed",
    "refused",
    "run_command",
    "run_given",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An option of a script."""

    names: tuple[str, ...]
    """All of its names; the last is how the command is given it."""
    fate: Literal["passed", "kept", "idle", "refused"]
    """Given to the command; for the script itself; without effect, which is said; or an error."""
    takes: int = 1
    """Values that follow it; 0 for a switch."""
    default: str | None = None
    """What the command is given where the option is not; nothing if None."""
    is_required: bool = False
    """Whether there is no script without it."""
    reasons: Mapping[str | None, str] = field(default_factory=dict["str | None", str])
    """Why it has no effect, or is refused, by value; under None for any other."""


class Given(NamedTuple):
    """What a script was given."""

    arguments: list[str]
    """The command, and all that follows it."""
    kept: dict[str, list[str]]
    """The values of options for the script itself, by their last names."""
    notes: list[str]
    """What people should know of options without effect."""

    def value(self, name: str) -> str | None:
        """Return the last value of an option for the script itself; None where it is not given."""
        values = self.kept.get(name)
        return values[-1] if values else None

    def required(self, name: str) -> str:
        """Return the last value of an option without which there is no script."""
        return self.kept[name][-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """A script of the guides."""

    about: str
    """What it does, in a sentence."""
    usage: str
    """What follows its options."""
    command: tuple[str, ...]
    """The command that does it, with what is always given to it."""
    options: tuple[Option, ...]
    """The options that the guides have; further ones are given to the command as they are."""
    run: Callable[[Given], None]
    """Runs the command."""


def passed(
    *names: str,
    takes: int = 1,
    default: str | None = None,
    required: bool = False,
    without: Mapping[str | None, str] | None = None,
) -> Option:
    """Return an option that the command has, too.

    Parameters
    ----------
    *names
        Its names; the last is that which the command has.
    takes
        Values that follow it; 0 for a switch.
    default
        What the command is given without it.
    required
        Whether it has to be given.
    without
        Values that the command has not, with what to say of each.
    """
    return Option(
        names=names,
        fate="passed",
        takes=takes,
        default=default,
        is_required=required,
        reasons=without or {},
    )


def idle(*names: str, takes: int = 1, reasons: Mapping[str | None, str]) -> Option:
    """Return an option that changes nothing here.

    Parameters
    ----------
    *names
        Its names.
    takes
        Values that follow it.
    reasons
        What people are told, by value, None for any; a value that is not there is refused.
    """
    return Option(names=names, fate="idle", takes=takes, reasons=reasons)


def kept(*names: str, takes: int = 1, required: bool = False) -> Option:
    """Return an option that the script acts on, as the command has nothing like it.

    Parameters
    ----------
    *names
        Its names.
    takes
        Values that follow it; 0 for a switch.
    required
        Whether it has to be given.
    """
    return Option(names=names, fate="kept", takes=takes, is_required=required)


def refused(*names: str, takes: int = 1, why: str) -> Option:
    """Return an option that is refused.

    Parameters
    ----------
    *names
        Its names.
    takes
        Values that follow it.
    why
        Why, and what to do, in two sentences.
    """
    return Option(names=names, fate="refused", takes=takes, reasons={None: why})


def run_given(given: Given) -> None:
    """Run the command as it was given."""
    run_command(given.arguments)


def run_command(arguments: Sequence[str]) -> None:
    """Run `playhead ARGUMENTS` in this process, and end it with the exit code of the command."""
    sys.argv = ["playhead", *arguments]
    main()


def captured_command(arguments: Sequence[str]) -> tuple[int, str]:
    """Run `playhead ARGUMENTS` in this process; return its exit code and what it printed."""
    out = io.StringIO()
    with redirect_stdout(out):
        try:
            run_command(arguments)
        except SystemExit as end:
            return (end.code if isinstance(end.code, int) else 1), out.getvalue()
    return 0, out.getvalue()
