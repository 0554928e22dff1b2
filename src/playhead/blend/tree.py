"""The tree of entries: references followed, options cascaded, weights multiplied down."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.blend.entry import GROUP, check_entry, input_specs, labels_of
from playhead.blend.sources import sources_of
from playhead.blend.weights import shares
from playhead.errors import ConfigError
from playhead.paths import scheme

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.blend.sources import Source
    from playhead.blend.yaml_tree import YamlTree

__all__ = ["Branch", "Sprout", "depth_of", "walk"]

_CASCADED = (
    "text_field",
    "lang_field",
    "indexed",
    "indexes_root",
    "index_pack",
    "index_pack_root",
    "input_sampling_rate",
    "channel_selector",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch:
    """What an entry inherits."""

    options: Mapping[str, Any]
    """Cascaded options."""
    tags: Mapping[str, Any]
    """Tags of the groups around it."""
    labels: Mapping[str, str]
    """Labels of the groups around it."""
    share: float
    """Share of the blend that its level has."""
    files: tuple[str, ...]
    """The YAML files that led here."""
    strict: bool
    """Whether unknown keys are errors."""
    notes: list[str]
    """What people should be told once."""

    def into(self, entry: Mapping[str, Any], share: float) -> Branch:
        """What the children of an entry inherit, or its own leaves."""
        own = {name: entry[name] for name in _CASCADED if name in entry}
        return replace(
            self,
            options={**self.options, **own},
            tags={**self.tags, **(entry.get("tags") or {})},
            labels={**self.labels, **labels_of(entry)},
            share=share,
        )


@dataclass(frozen=True, slots=True)
class Sprout:
    """A leaf that has no key yet."""

    type: str
    """Its input type."""
    source: Source
    """Its files."""
    branch: Branch
    """What it inherited, its own options included."""
    name: str | None
    """The name that its entry gives it."""
    where: str
    """Place of its entry, for messages."""


def walk(
    entries: Any,
    tree: YamlTree,
    keys: tuple[str | int, ...],
    branch: Branch,
    temperatures: Sequence[float],
) -> Iterator[Sprout]:
    """The leaves below a list of entries, in declared order.

    Parameters
    ----------
    entries
        A list of entries, or the path of a YAML file that holds one.
    tree
        The file that declares them.
    keys
        The way to them in it.
    branch
        What they inherit.
    temperatures
        Exponents of the weights, of this level and those below.

    Raises
    ------
    ConfigError
        Naming the entry and what is wrong with it.
    """
    if isinstance(entries, str):
        yield from _referred(entries, tree, keys, branch, temperatures)
        return
    where = _place(tree, keys)
    if isinstance(entries, dict) and "type" in entries:
        entries = [entries]
    if not isinstance(entries, list) or not entries:
        raise ConfigError(
            f"input_cfg is {_shown(entries)}, and has to be a list of entries",
            where=where,
            fix="Write entries, each with a type, or the path of a YAML file that has them",
        )
    resolved = [tree.resolve(entry, (*keys, n)) for n, entry in enumerate(entries)]
    for number, entry in enumerate(resolved):
        if not isinstance(entry, dict):
            raise ConfigError(
                f"an entry is {_shown(entry)}, and has to be a mapping",
                where=_place(tree, (*keys, number)),
                fix="Give it a type and its paths",
            )
    parts = shares([entry.get("weight") for entry in resolved], temperatures[0], where)
    if len(resolved) == 1:
        # A level of one is no mixture: its weight, 0 included, means nothing.
        parts = [1.0]
    for number, (entry, part) in enumerate(zip(resolved, parts, strict=True)):
        place = (*keys, number)
        type_ = check_entry(entry, _place(tree, place), branch.strict, branch.notes)
        below = branch.into(entry, branch.share * part)
        if type_ == GROUP:
            yield from walk(
                entry.get("input_cfg"),
                tree,
                (*place, "input_cfg"),
                below,
                temperatures[1:] or [1.0],
            )
        else:
            yield from _sprouts(type_, entry, tree, place, below)


def _sprouts(
    type_: str, entry: dict[str, Any], tree: YamlTree, keys: tuple[str | int, ...], branch: Branch
) -> Iterator[Sprout]:
    where = _place(tree, keys)
    base = Path(tree.path).parent if Path(tree.path).is_file() else None
    sources = sources_of(type_, input_specs(type_, entry, where), base=base, where=where)
    parts = shares([source.weight for source in sources], 1.0, where)
    for source, part in zip(sources, parts, strict=True):
        own = replace(branch, share=branch.share * part)
        yield Sprout(type_, source, own, entry.get("name"), where)


def _referred(
    reference: str,
    tree: YamlTree,
    keys: tuple[str | int, ...],
    branch: Branch,
    temperatures: Sequence[float],
) -> Iterator[Sprout]:
    if scheme(reference):
        raise ConfigError(
            f"input_cfg {reference!r} is not a local file",
            where=_place(tree, keys),
            fix="Copy the YAML to a file system",
        )
    inner = tree.refer(reference)
    real = str(Path(inner.path).resolve())
    if real in branch.files:
        chain = " → ".join((*branch.files, real))
        raise ConfigError(
            f"YAML files refer to each other in a circle: {chain}", where=_place(tree, keys)
        )
    below = replace(branch, files=(*branch.files, real))
    yield from walk(*_entries_of(inner), below, temperatures)


def _entries_of(tree: YamlTree) -> tuple[Any, YamlTree, tuple[str | int, ...]]:
    content = tree.content
    if isinstance(content, dict) and "input_cfg" in content:
        return content["input_cfg"], tree, ("input_cfg",)
    return content, tree, ()


def depth_of(entries: Any, tree: YamlTree) -> int:
    """How deep `input_cfg` is nested, this level included; referred files count."""
    if isinstance(entries, str):
        if scheme(entries):
            return 1
        entries, tree, _ = _entries_of(tree.refer(entries))
    deepest = 0
    for entry in entries if isinstance(entries, list) else [entries]:
        if isinstance(entry, dict) and entry.get("input_cfg") is not None:
            deepest = max(deepest, depth_of(entry["input_cfg"], tree))
    return 1 + deepest


def _place(tree: YamlTree, keys: Sequence[str | int]) -> str:
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return f"{tree.path}: {text}" if text else tree.path


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
