"""Path patterns of people's configs, schemes, and where the index of a file lives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import TypeAlias

from playhead.errors import ConfigError

__all__ = ["exists", "expand", "index_path", "resolve_reference", "scheme"]

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+\-.]*)://")
_DRIVE = re.compile(r"^.:[/\\]*")
_OPENERS = frozenset({"_OP_", "(", "[", "<", "{"})
_CLOSERS = frozenset({"_CL_", ")", "]", ">", "}"})
_MARK = re.compile(r"(_OP_|_CL_|[][(){}<>])")
# What may be part of a file's name; `_OP_` and `_CL_` never are.
_PLAIN_MARKS = frozenset("([<{")
_NUMBERS = re.compile(r"([-+]?[0-9]+)\.\.([-+]?[0-9]+)(?:\.\.(-?[0-9]+))?")
_LETTERS = re.compile(r"([a-zA-Z])\.\.([a-zA-Z])(?:\.\.(-?[0-9]+))?")
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


def exists(path: str | Path) -> bool:
    """Whether a local path exists; false too for what cannot be a path."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def expand(spec: str) -> list[str]:
    """The paths that a pattern stands for, the left-most group varying slowest.

    `_OP_`, `(`, `[` and `<` open a group, `_CL_`, `)`, `]` and `>` close it, as braces do. In a
    group stand a range (`0..127`, `000..127`, `0..10..5`, `a..e`) or a list (`a,b,c`), as in bash;
    what is neither stays as it is written. A path that exists as it is written is that path.

    Raises
    ------
    ConfigError
        When the pattern stands for more than ten million paths.

    Examples
    --------
    >>> expand("b_OP_1..2_CL_/m__OP_08..10_CL_.json")  # doctest: +NORMALIZE_WHITESPACE
    ['b1/m_08.json', 'b1/m_09.json', 'b1/m_10.json',
     'b2/m_08.json', 'b2/m_09.json', 'b2/m_10.json']
    >>> expand("take (1).wav")
    ['take (1).wav']
    """
    tokens = _MARK.split(spec)
    if len(tokens) == 1:
        return tokens
    if not _PLAIN_MARKS.isdisjoint(tokens) and not scheme(spec) and exists(spec):
        return [spec]
    pattern = _parse(tokens, _matches(tokens), 0, len(tokens))
    if _count(pattern) > _MOST:
        raise ConfigError(
            f"the pattern {spec!r} stands for {_count(pattern):,} paths, more than {_MOST:,}",
            fix="Look at its ranges",
        )
    return _generate(pattern)


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
        return f"{path}.idx" if scheme(path) else str(Path(f"{path}.idx"))
    mirrored = _SCHEME.sub("", path).lstrip("/\\")
    mirrored = _DRIVE.sub("", mirrored)
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
    if scheme(reference):
        return reference
    path = Path(reference).expanduser()
    if path.is_absolute() or base is None:
        return str(path)
    beside = Path(base) / path
    return str(beside if exists(beside) else path)


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of several patterns."""

    patterns: list[_Pattern]


_Pattern: TypeAlias = "list[str | range | _Numbers | _Choice]"


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Numbers padded with zeros to a common width."""

    values: range
    width: int


def _matches(tokens: list[str]) -> dict[int, int]:
    """Place of every opening mark that has a closing one, to the place of that."""
    pairs: dict[int, int] = {}
    open_marks: list[int] = []
    for place in range(1, len(tokens), 2):
        if tokens[place] in _OPENERS:
            open_marks.append(place)
        elif open_marks:
            pairs[open_marks.pop()] = place
    return pairs


def _parse(tokens: list[str], pairs: dict[int, int], start: int, stop: int) -> _Pattern:
    pattern: _Pattern = []
    place = start
    while place < stop:
        end = pairs.get(place)
        group = None if end is None else _group(tokens, pairs, place + 1, end)
        if end is None or group is None:
            pattern.append(tokens[place])
            place += 1
        else:
            pattern.append(group)
            place = end + 1
    return pattern


def _group(
    tokens: list[str], pairs: dict[int, int], start: int, stop: int
) -> range | _Numbers | _Choice | None:
    """What a group stands for; None where it is no group but a part of a name."""
    if stop == start + 1:
        found = _range(tokens[start])
        if found is not None:
            return found
    alternatives: list[list[str]] = [[]]
    inside = start
    while inside < stop:
        end = pairs.get(inside)
        if end is not None:
            alternatives[-1] += tokens[inside : end + 1]
            inside = end + 1
            continue
        first, *others = tokens[inside].split(",")
        alternatives[-1].append(first)
        alternatives += [[other] for other in others]
        inside += 1
    if len(alternatives) == 1:
        return None
    return _Choice([_parse(part, _matches(part), 0, len(part)) for part in alternatives])


def _range(body: str) -> range | _Numbers | None:
    numbers = _NUMBERS.fullmatch(body)
    if numbers:
        first, last, step = numbers.groups()
        values = _steps(int(first), int(last), step)
        padded = any(re.match(r"-?0[0-9]", end) for end in (first, last))
        return _Numbers(values, max(len(first), len(last)) if padded else 0)
    letters = _LETTERS.fullmatch(body)
    if letters:
        first, last, step = letters.groups()
        return _steps(ord(first), ord(last), step)
    return None


def _steps(first: int, last: int, step: str | None) -> range:
    """Both ends included, towards the last whatever the step's sign; a step of 0 counts as 1."""
    by = abs(int(step or 1)) or 1
    return range(first, last + 1, by) if first <= last else range(first, last - 1, -by)


def _count(pattern: _Pattern) -> int:
    return prod(map(_count_of, pattern))


def _count_of(part: str | range | _Numbers | _Choice) -> int:
    match part:
        case str():
            return 1
        case range():
            return len(part)
        case _Numbers():
            # len() of a range ends at 2**63.
            return (part.values[-1] - part.values[0]) // part.values.step + 1
        case _Choice():
            return sum(map(_count, part.patterns))


def _generate(pattern: _Pattern) -> list[str]:
    return ["".join(parts) for parts in product(*map(_texts, pattern))]


def _texts(part: str | range | _Numbers | _Choice) -> list[str]:
    match part:
        case str():
            return [part]
        case range():
            return [chr(code) for code in part]
        case _Numbers():
            return [f"{value:0{part.width}d}" for value in part.values]
        case _Choice():
            return [text for pattern in part.patterns for text in _generate(pattern)]
