"""Options that take several values in a row, and switches that take a word, as in NeMo's guides."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["SeveralValues", "one_by_one"]

_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,8})*|spl_tokens")
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_SWITCHES = {
    "-q": "--quiet",
    "--quiet": "--quiet",
    "-m": "--measure-total-length",
    "--measure-total-length": "--measure-total-length",
}


class SeveralValues(TyperCommand):
    """A command that takes `-t a.model b.model` for `-t a.model -t b.model`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, values in a row written out one by one."""
        return super().parse_args(ctx, one_by_one(args))


def one_by_one(arguments: Sequence[str]) -> list[str]:
    """Write out what stands in a row behind `--tokenizer`, `--langs` and switches.

    Behind a tokenizer further ones are files called `*.model` or `tokenizer.json`; behind a
    language what looks like one and is no file.

    Examples
    --------
    >>> one_by_one(["-t", "a.model", "b.model", "blend.yaml", "--langs", "en", "de", "-m", "False"])
    ['-t', 'a.model', '-t', 'b.model', 'blend.yaml', '--langs', 'en', '--langs', 'de', '--no-measure-total-length']
    """  # noqa: E501 - one line of output
    out: list[str] = []
    left = list(arguments)
    while left:
        name = left.pop(0)
        if name == "--":
            return [*out, name, *left]
        if name in _SWITCHES and left and left[0].lower() in _WORDS:
            wanted = _WORDS[left.pop(0).lower()]
            switch = _SWITCHES[name]
            if wanted:
                out.append(switch)
            elif switch != "--quiet":
                out.append(switch.replace("--", "--no-", 1))
            continue
        out.append(name)
        further = _FURTHER.get(name)
        if further is None or not left:
            continue
        out.append(left.pop(0))
        while left and further(left[0]):
            out += [name, left.pop(0)]
    return out


def _is_tokenizer(text: str) -> bool:
    return text.endswith(".model") or Path(text).name == "tokenizer.json"


def _is_language(text: str) -> bool:
    return _LANGUAGE.fullmatch(text) is not None and not Path(text).exists()


_FURTHER: dict[str, Callable[[str], bool]] = {
    "-t": _is_tokenizer,
    "--tokenizer": _is_tokenizer,
    "-a": _is_language,
    "--langs": _is_language,
}
