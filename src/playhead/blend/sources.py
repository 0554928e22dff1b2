"""The forms in which an entry names its files: a pattern, lists, buckets, lists with weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.paths import expand, scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Source", "sources_of"]

_KEY_BYTES = 8


@dataclass(frozen=True, slots=True)
class Source:
    """Files that are drawn from as one."""

    paths: Mapping[str, tuple[str, ...]]
    """Role to expanded paths."""
    identity: str
    """Hash of the type and of the paths as declared."""
    first: str
    """The first path as declared, for people."""
    weight: float | int | None
    """Weight among the sources of its entry; None where they have none."""
    is_listed: bool
    """Whether it was declared in a list: elsewhere that makes a mixture, which has no end."""


@dataclass(frozen=True, slots=True)
class _Named:
    specs: tuple[str, ...]
    weight: float | int | None


def sources_of(
    type_: str, specs: Mapping[str, Any], *, base: Path | None, where: str
) -> list[Source]:
    """The sources that an entry names.

    A flat list and a list of one-element lists are one source of many files: drawing from files in
    proportion to their rows is drawing from all rows alike. `[[path, weight], …]` are as many
    sources.

    Parameters
    ----------
    type_
        The input type.
    specs
        Role (`manifest`, `tar`, `cuts`) to what the entry says.
    base
        Folder of the file that declares them: relative paths that are not in the working directory
        may lie there.
    where
        Place of the entry, for messages.

    Raises
    ------
    ConfigError
        When a form is not known, or lists do not have the same length.
    """
    named = {role: _named(spec, role, where) for role, spec in specs.items()}
    lengths = {role: len(groups) for role, groups in named.items()}
    if len(set(lengths.values())) > 1:
        raise ConfigError(
            f"the lists do not have the same length: {_counts(lengths)}",
            where=where,
            fix="Give every manifest its tars",
        )
    main = next(iter(named.values()))
    if all(group.weight is None for group in main):
        merged = {
            role: [_Named(tuple(s for group in groups for s in group.specs), None)]
            for role, groups in named.items()
        }
        return [_source(type_, merged, 0, base, specs)]
    if any(group.weight is None for group in main):
        raise ConfigError(
            "some paths of a list have a weight and some have none",
            where=where,
            fix="Write [path, weight] for all of them, or for none",
        )
    return [_source(type_, named, number, base, specs) for number in range(len(main))]


def _source(
    type_: str,
    named: Mapping[str, Sequence[_Named]],
    number: int,
    base: Path | None,
    specs: Mapping[str, Any],
) -> Source:
    declared = {role: list(groups[number].specs) for role, groups in named.items()}
    text = json.dumps([type_, declared], sort_keys=True)
    main = next(iter(named.values()))[number]
    return Source(
        paths={
            role: tuple(path for spec in listed for path in _located(spec, base))
            for role, listed in declared.items()
        },
        identity=blake2b(text.encode(), digest_size=_KEY_BYTES).hexdigest(),
        first=main.specs[0],
        weight=main.weight,
        is_listed=not isinstance(specs[next(iter(specs))], str),
    )


def _named(spec: Any, role: str, where: str) -> list[_Named]:
    if isinstance(spec, str):
        return [_Named((spec,), None)]
    if isinstance(spec, (list, tuple)) and spec:
        if all(isinstance(item, str) for item in spec):
            return [_Named((item,), None) for item in spec]
        if all(isinstance(item, (list, tuple)) for item in spec):
            return [_inner(item, spec, role, where) for item in spec]
    raise _unknown_form(spec, role, where)


def _inner(item: Any, spec: Any, role: str, where: str) -> _Named:
    if item and all(isinstance(part, str) for part in item):
        return _Named(tuple(item), None)
    match item:
        case [str() as path, int() | float() as weight] if not isinstance(weight, bool):
            return _Named((path,), weight)
        case _:
            raise _unknown_form(spec, role, where)


def _unknown_form(spec: Any, role: str, where: str) -> ConfigError:
    shown = repr(spec)
    shown = shown if len(shown) <= 80 else shown[:77] + "…"
    return ConfigError(
        f"the {role} paths {shown} have no known form",
        where=where,
        fix="Give a path, [path, …], [[path], …] or [[path, weight], …]",
    )


def _located(spec: str, base: Path | None) -> list[str]:
    paths = expand(spec)
    first = paths[0]
    if scheme(first):
        return paths
    if first.startswith("~"):
        return [str(Path(path).expanduser()) for path in paths]
    if base is None or Path(first).is_absolute() or Path(first).exists():
        return paths
    return [str(base / path) for path in paths] if (base / first).exists() else paths


def _counts(lengths: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {role}" for role, count in lengths.items())
