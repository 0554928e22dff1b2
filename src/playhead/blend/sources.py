"""The forms in which an entry names its files: a pattern, lists, buckets, lists with weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.paths import exists, expand, scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.config import Spot

__all__ = ["Source", "located", "sources_of"]

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
    weight: float | None
    """Weight among the sources of its entry; None where they have none."""
    is_listed: bool
    """Whether it was declared in a list: elsewhere that makes a mixture, which has no end."""


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of a list of paths."""

    spec: str
    weight: float | None = None


def sources_of(
    type_: str,
    specs: Mapping[str, Any],
    *,
    base: Path | None,
    where: Spot,
    are_partners: bool = True,
) -> list[Source]:
    """The sources that an entry names.

    A flat list and a list of one-element lists are one source of many files: drawing from files in
    proportion to their rows is drawing from all rows alike. `[[path, weight], …]` are as many
    sources. Items that stand at the same place of the lists of two roles belong together.

    Parameters
    ----------
    type_
        The input type.
    specs
        Role (`manifest`, `tar`, `cuts`) to what the entry says; the first role has the weights.
    base
        Folder of the file that declares them: relative paths that are not in the working directory
        and are there, are those. None where there is no such file.
    where
        The entry, for messages.
    are_partners
        Whether items at the same place belong together; otherwise the files of one role belong to
        all those of another.

    Raises
    ------
    ConfigError
        When the lists have no known form, or do not have the same length.
    """
    items = {role: _items(spec, role, where) for role, spec in specs.items()}
    main, *others = items
    for role in others if are_partners else ():
        _check_partners(items[main], items[role], (main, role), specs, where)
    weighted = [item.weight is not None for item in items[main]]
    if any(weighted) and not all(weighted):
        raise ConfigError(
            f"some {main} paths have a weight and some have none",
            where=str(where),
            fix="Write [path, weight] for all of them, or for none",
        )
    is_listed = not isinstance(specs[main], str)
    if not any(weighted):
        declared = {role: [item.spec for item in listed] for role, listed in items.items()}
        return [_source(type_, declared, base, None, is_listed=is_listed)]
    return [
        _source(
            type_,
            {role: [listed[place].spec] for role, listed in items.items()},
            base,
            item.weight,
            is_listed=is_listed,
        )
        for place, item in enumerate(items[main])
    ]


def _check_partners(
    main: Sequence[_Item],
    other: Sequence[_Item],
    roles: tuple[str, str],
    specs: Mapping[str, Any],
    where: Spot,
) -> None:
    are_lists = not any(isinstance(specs[role], str) for role in roles)
    has_weights = main[0].weight is not None
    if len(main) != len(other) and (are_lists or has_weights):
        raise ConfigError(
            f"the lists of {roles[0]} and {roles[1]} paths have {len(main)} and {len(other)} items",
            where=str(where),
            fix=f"Give every {roles[0]} its {roles[1]}",
        )
    for mine, theirs in zip(main, other, strict=False):
        if theirs.weight is not None and theirs.weight != mine.weight:
            raise ConfigError(
                f"the {roles[1]} {theirs.spec} has a weight that its {roles[0]} has not",
                where=str(where),
                fix=f"Write weights with the {roles[0]} paths",
            )


def _source(
    type_: str,
    declared: Mapping[str, Sequence[str]],
    base: Path | None,
    weight: float | None,
    *,
    is_listed: bool,
) -> Source:
    text = json.dumps([type_, declared], sort_keys=True)
    return Source(
        paths={
            role: tuple(path for spec in specs for path in located(spec, base))
            for role, specs in declared.items()
        },
        identity=blake2b(text.encode(), digest_size=_KEY_BYTES).hexdigest(),
        first=next(iter(declared.values()))[0],
        weight=weight,
        is_listed=is_listed,
    )


def _items(spec: Any, role: str, where: Spot) -> list[_Item]:
    listed: Any = [spec] if isinstance(spec, str) else spec
    items = [_item(item) for item in listed] if isinstance(listed, (list, tuple)) else []
    kept = [item for item in items if item is not None]
    if not kept or len(kept) < len(items):
        shown = json.dumps(spec, default=str)
        shown = shown if len(shown) <= 80 else shown[:77] + "…"
        raise ConfigError(
            f"the {role} paths {shown} have no known form",
            where=str(where),
            fix="Give a path, [path, …], [[path], …] or [[path, weight], …]",
        )
    return kept


def _item(item: Any) -> _Item | None:
    match item:
        case str() as path if _is_path(path):
            return _Item(path)
        case [str() as path] if _is_path(path):
            return _Item(path)
        case [str() as path, int() | float() as weight] if _is_path(path) and not isinstance(
            weight, bool
        ):
            return _Item(path, weight)
        case _:
            return None


def _is_path(text: str) -> bool:
    return text != "" and "\0" not in text


def located(spec: str, base: Path | None) -> list[str]:
    """The paths of a pattern; relative ones that only exist beside the config are those.

    Parameters
    ----------
    spec
        A path, a pattern of paths, or a URL.
    base
        Folder of the config; None where it is in memory.
    """
    paths = expand(spec)
    first = paths[0]
    if first.startswith("~"):
        return [str(Path(path).expanduser()) for path in paths]
    if base is None or first.startswith("/") or scheme(first) or exists(first):
        return paths
    if exists(base / spec):
        return [str(base / spec)]
    return [str(base / path) for path in paths] if exists(base / first) else paths
