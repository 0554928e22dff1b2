"""The pages of the documentation as the tests see them: blocks of code with their lines."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

__all__ = ["PAGES", "ROOT", "Block", "Command", "blocks_of", "commands_of"]

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
# A comment right above a block says why it is not run; it is seen on no page.
_BLOCK = re.compile(
    r"^(?:[ ]*<!-- not run: (?P<reason>[^\n]*?) -->\n)?"
    r"(?P<indent>[ ]*)```(?P<language>\S*)[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    """Where its first line of code stands."""
    language: str
    """As after the fence; empty where nothing stands there."""
    code: str
    reason: str | None
    """Why it is not run, as the page says; None for a block that is."""

    @property
    def place(self) -> str:
        """Page and line, for messages and names of tests."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


class Command(NamedTuple):
    """One command of a block."""

    place: str
    """Page and line where it begins."""
    words: list[str]


def blocks_of(page: Path, *languages: str) -> list[Block]:
    """Blocks of a page from top to bottom, of some languages or of all."""
    text = page.read_text()
    found = []
    for match in _BLOCK.finditer(text):
        indent = match["indent"]
        lines = match["code"].splitlines(keepends=True)
        code = "".join(line.removeprefix(indent) for line in lines)
        line = text[: match.start("code")].count("\n") + 1
        if not languages or match["language"] in languages:
            found.append(Block(page, line, match["language"], code, match["reason"]))
    return found


def commands_of(block: Block) -> list[Command]:
    """Commands of a shell block: what follows `$ ` in a console, every line of a script.

    Variables that the block sets itself are put in where it uses them.
    """
    typed = "$ " if block.language == "console" else ""
    variables: dict[str, str] = {}
    found: list[Command] = []
    lines = enumerate(block.code.splitlines())
    for number, line in lines:
        if not line.startswith(typed):
            continue
        command = line.removeprefix(typed)
        while command.endswith("\\"):
            command = command[:-1] + next(lines)[1]
        for name, value in variables.items():
            command = command.replace(f"${name}", value)
        words = shlex.split(command, comments=True)
        if not words:
            continue
        name, is_set, value = words[0].partition("=")
        if len(words) == 1 and is_set and name.isidentifier():
            variables[name] = value
            continue
        place = f"{block.page.relative_to(ROOT)}:{block.line + number}"
        found.append(Command(place, words))
    return found
