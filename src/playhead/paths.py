"""Path patterns of people's configs, schemes, and where the index of a file lives."""

from __future__ import annotations

import math
import re
from itertools import product
from pathlib import Path

from playhead.errors import ConfigError

__all__ = ["expand", "index_path", "resolve_reference", "scheme"]

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+\-.]*)://")
_DRIVE = re.compile(r"^[a-zA-Z]:")
_NUMBERS = re.compile(r"^(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?$")
_LETTERS = re.compile(r"^([a-zA-Z])\.\.([a-zA-Z])(?:\.\.(-?\d+))?$")
_OPENERS = ("_OP_", "(", "[", "<")
_CLOSERS = ("_CL_", ")", "]", ">")
_MOST = 10_000_000


def scheme(path: str) -> str:
    """The scheme of a URI in lower case; empty for a local path.

    Examples
    --------
    >>> scheme("s3://bucket/key"), scheme("/data/a.json")
    ('s3', '')
    """
    if path.startswith("pipe:"):
        return "pipe"
    match = _SCHEME.match(path)
    return match[1].lower() if match else ""


def expand(spec: str) -> list[str]:
    """The paths that a pattern stands for, the left-most group varying slowest.

    `_OP_`, `(`, `[` and `<` open a group, `_CL_`, `)`, `]` and `>` close it, as braces do. In a
    group stand a range (`0..127`, `000..127`, `0..10..5`, `a..e`) or a list (`a,b,c`), as in bash.
    A path that exists as it is written is taken literally.

    Raises
    ------
    ConfigError
        When the pattern stands for more than ten million paths.

    Examples
    --------
    >>> expand("b_OP_1..2_CL_/m__OP_08..10_CL_.json")  # doctest: +NORMALIZE_WHITESPACE
    ['b1/m_08.json', 'b1/m_09.json', 'b1/m_10.json',
     'b2/m_08.json', 'b2/m_09.json', 'b2/m_10.json']
    """
    if not any(mark in spec for mark in (*_OPENERS, "{")):
        return [spec]
    if any(mark in spec for mark in "([<{") and not scheme(spec) and _exists(spec):
        return [spec]
    pattern = spec
    for marks, brace in ((_OPENERS, "{"), (_CLOSERS, "}")):
        for mark in marks:
            pattern = pattern.replace(mark, brace)
    if "{" not in pattern:
        return [spec]
    return _braces(pattern, spec)


def index_path(path: str, indexes_root: str | None = None) -> str:
    """Where the `.idx` of a data file lives: beside it, or mirrored under a root, as Lhotse maps.

    Examples
    --------
    >>> index_path("s3://bucket/key/a.tar", "/cache")
    '/cache/bucket/key/a.tar.idx'
    >>> index_path("/data/a.jsonl")
    '/data/a.jsonl.idx'
    """
    if indexes_root is None:
        return path + ".idx"
    mirrored = _SCHEME.sub("", path).lstrip("/\\")
    mirrored = _DRIVE.sub("", mirrored).lstrip("/\\")
    if scheme(indexes_root):
        return f"{indexes_root.rstrip('/')}/{mirrored}.idx"
    return str(Path(indexes_root) / f"{mirrored}.idx")


def resolve_reference(reference: str, base: str | Path | None) -> str:
    """The file that a config refers to: relative to the config's folder, else as it stands.

    Parameters
    ----------
    reference
        What the config says.
    base
        Folder of the file that declares it; None where there is no such file.
    """
    path = Path(reference).expanduser()
    if scheme(reference) or path.is_absolute() or base is None:
        return reference if scheme(reference) else str(path)
    beside = Path(base) / path
    return str(beside if beside.exists() else path)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _braces(pattern: str, spec: str) -> list[str]:
    """Bash's brace expansion: text around the first group, times what the group holds."""
    group = _first_group(pattern)
    if group is None:
        return [pattern]
    start, end = group
    heads = [pattern[:start]]
    body, tail = pattern[start + 1 : end], pattern[end + 1 :]
    alternatives = _alternatives(body, spec)
    tails = _braces(tail, spec)
    if len(alternatives) * len(tails) > _MOST:
        raise ConfigError(
            f"the pattern {spec!r} stands for more than {_MOST:,} paths",
            fix="Look at its ranges",
        )
    return ["".join(parts) for parts in product(heads, alternatives, tails)]


def _first_group(pattern: str) -> tuple[int, int] | None:
    """Where the first group that means something opens and closes."""
    for start, character in enumerate(pattern):
        if character != "{":
            continue
        depth = 0
        for end in range(start, len(pattern)):
            if pattern[end] == "{":
                depth += 1
            elif pattern[end] == "}":
                depth -= 1
                if depth == 0:
                    body = pattern[start + 1 : end]
                    if len(_split(body)) > 1 or _NUMBERS.match(body) or _LETTERS.match(body):
                        return start, end
                    break
    return None


def _alternatives(body: str, spec: str) -> list[str]:
    parts = _split(body)
    if len(parts) > 1:
        return [path for part in parts for path in _braces(part, spec)]
    numbers = _NUMBERS.match(body)
    if numbers:
        return _number_range(numbers[1], numbers[2], numbers[3], spec)
    letters = _LETTERS.match(body)
    assert letters is not None
    first, last = ord(letters[1]), ord(letters[2])
    step = abs(int(letters[3] or 1)) or 1
    codes = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [chr(code) for code in codes]


def _number_range(first: str, last: str, step: str | None, spec: str) -> list[str]:
    low, high, by = int(first), int(last), abs(int(step or 1)) or 1
    if math.floor(abs(high - low) / by) >= _MOST:
        raise ConfigError(
            f"the pattern {spec!r} stands for more than {_MOST:,} paths",
            fix="Look at its ranges",
        )
    numbers = range(low, high + 1, by) if low <= high else range(low, high - 1, -by)
    padded = any(len(text.lstrip("-")) > 1 and text.lstrip("-")[0] == "0" for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [f"{number:0{width}d}" if width else str(number) for number in numbers]


def _split(body: str) -> list[str]:
    """The parts of a list, at the commas that are in no inner group."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(body):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(body[start:place])
            start = place + 1
    return [*parts, body[start:]]
