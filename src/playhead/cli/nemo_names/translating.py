"""A command line of NeMo's guides as one of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.cli.nemo_names.script import Given
from playhead.errors import ConfigError, NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from playhead.cli.nemo_names.script import Option, Script

__all__ = ["translated"]


def translated(script: Script, arguments: Sequence[str]) -> Given:
    """Write a command line for the command that does the same.

    Options that the script has not are given to the command as they stand: it has more of them than
    the script, and says what it does not know.

    Parameters
    ----------
    script
        What is called.
    arguments
        What it was called with.

    Raises
    ------
    ConfigError
        If a value is missing, or an option without which there is nothing to do.
    NotSupportedError
        If something is not to be had here: the message says what to do.
    """
    known = {name: option for option in script.options for name in option.names}
    values_of: dict[str, list[str]] = {}
    notes: dict[str, None] = {}
    out: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word == "--":
            out += [word, *left]
            break
        name, values = _split(word, known)
        option = known.get(name)
        if option is None:
            out.append(word)
            continue
        missing = option.takes - len(values)
        values, left = [*values, *left[:missing]], left[missing:]
        if len(values) != option.takes:
            raise ConfigError(
                f"{name} has {len(values)} values, and takes {option.takes}", fix=f"Correct {name}"
            )
        values_of.setdefault(option.names[-1], []).extend(values)
        reason = _reason(option, name, " ".join(values))
        if option.fate == "passed":
            out += [option.names[-1], *values]
        elif reason:
            notes[reason] = None
    kept = {option.names[-1] for option in script.options if option.fate == "kept"}
    return Given(
        [*script.command, *_defaults(script, values_of), *out],
        {name: values for name, values in values_of.items() if name in kept},
        list(notes),
    )


def _defaults(script: Script, given: Collection[str]) -> list[str]:
    """What a command is given for options that are not there.

    Raises
    ------
    ConfigError
        If there is nothing to do without one.
    """
    left = [option for option in script.options if option.names[-1] not in given]
    for option in left:
        if option.is_required:
            name = " or ".join(option.names)
            raise ConfigError(f"{name} is missing", fix="Give it; --help lists all")
    return [
        word
        for option in left
        if option.default is not None
        for word in (option.names[-1], option.default)
    ]


def _split(word: str, known: dict[str, Option]) -> tuple[str, list[str]]:
    """Part a word into an option and the value in it: `--buckets=5`, `-b5`."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, [value] if equals else []
    short = known.get(word[:2])
    if len(word) > 2 and short is not None and short.takes:
        return word[:2], [word[2:]]
    return word, []


def _reason(option: Option, name: str, value: str) -> str:
    """What is said of an option.

    Raises
    ------
    NotSupportedError
        If it is refused.
    """
    said = option.reasons.get(value, option.reasons.get(None))
    if option.fate == "idle" and said is None:
        choices = ", ".join(filter(None, option.reasons))
        raise ConfigError(f"{name} is {value!r}", fix=f"Choose one of {choices}")
    if option.fate == "idle" or said is None:
        return said or ""
    asked = name if option.fate == "refused" else f"{name} {value}"
    raise NotSupportedError(f"{asked} is not to be had here: {said}")
