"""The sources of a config that Playhead cannot train from: read with less care, for their names.

A run of NeMo may have input types or options that exist there alone. What its entries say of names,
weights and files is taken as it stands, and nothing is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from playhead.blend.leaves import NAMING_LABELS
from playhead.blend.read import open_config
from playhead.blend.section import find_section
from playhead.blend.sources import located
from playhead.config import Spot
from playhead.errors import ConfigError
from playhead.inspect.nemo_declared import PATH_KEYS, DeclaredSource, first_text, number_of
from playhead.paths import scheme

if TYPE_CHECKING:
    from playhead.blend.yaml_tree import YamlTree

__all__ = ["lenient_sources"]

_OWN: Final = ("input_cfg", "name", "weight")
_DEEPEST: Final = 100


def lenient_sources(
    config: Any, *, section: str | None = None, data_blend_dir: str | None = None
) -> list[DeclaredSource]:
    """Read the sources of a config as its entries name them.

    Siblings share by their weights where all have one, to the power of `reweight_temperature`, and
    equally elsewhere.

    Parameters
    ----------
    config, section, data_blend_dir
        As for `playhead.blend.read.read_blend`.

    Raises
    ------
    ConfigError
        When there is no list of entries, or a `${…}` that cannot be resolved.
    SourceNotFoundError
        When a YAML file does not exist.
    """
    tree, own_name = open_config(config, data_blend_dir)
    found = find_section(tree.content, section or own_name, Spot(tree.path))
    node = tree.content
    for key in found.keys:
        node = node[key]
    options: dict[str, Any] = {}
    entries, keys = node, found.keys
    if isinstance(node, Mapping):
        facts = cast("Mapping[str, Any]", node)
        names = ("indexes_root", "index_pack", "index_pack_root", "reweight_temperature")
        options = tree.resolve({name: facts[name] for name in names if name in facts}, found.keys)
        if "input_cfg" in facts:
            entries, keys = facts["input_cfg"], (*found.keys, "input_cfg")
        else:
            entries = [facts]
    walk = _Walk(exponents=options.pop("reweight_temperature", None))
    return _told_apart(list(walk.level(entries, _Place(tree, keys, options, files=(tree.path,)))))


def _told_apart(sources: Sequence[DeclaredSource]) -> list[DeclaredSource]:
    """Sources with their first paths added to names that several have."""
    count = Counter(source.name for source in sources)
    return [
        replace(source, name=f"{source.name} ({source.first_path})")
        if count[source.name] > 1 and source.first_path
        else source
        for source in sources
    ]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the files a walk is, and what holds there."""

    tree: YamlTree
    keys: tuple[str | int, ...]
    options: Mapping[str, Any]
    names: tuple[str, ...] = ()
    share: float = 1.0
    depth: int = 0
    files: tuple[str, ...] = ()


@dataclass(slots=True)
class _Walk:
    exponents: Any
    seen: int = 0

    def level(self, entries: Any, place: _Place) -> Iterator[DeclaredSource]:
        """The sources of siblings and of all below them."""
        tree, keys = place.tree, place.keys
        if isinstance(entries, str):
            tree = tree.refer(tree.resolve(entries, keys))
            entries, keys = tree.content, ()
            place = replace(place, files=(*place.files, tree.path))
            if isinstance(entries, Mapping) and "input_cfg" in entries:
                entries, keys = cast("Mapping[str, Any]", entries)["input_cfg"], ("input_cfg",)
        siblings = cast("Sequence[Any]", entries if isinstance(entries, list) else [entries])
        if tree.path in place.files[:-1] or place.depth > _DEEPEST or not siblings:
            raise ConfigError(
                "there are no entries" if not siblings else "the config names itself",
                where=str(Spot(tree.path, keys)),
                fix="Correct its input_cfg",
            )
        weights = [one.get("weight") if isinstance(one, Mapping) else None for one in siblings]
        parts = _shares(tree.resolve(weights, keys), self._exponent(place.depth))
        for number, (one, part) in enumerate(zip(siblings, parts, strict=True)):
            entry = cast("Mapping[str, Any]", one if isinstance(one, Mapping) else {})
            at = (*keys, number) if isinstance(entries, list) else keys
            yield from self._entry(
                entry, replace(place, tree=tree, keys=at, share=place.share * part)
            )

    def _entry(self, entry: Mapping[str, Any], place: _Place) -> Iterator[DeclaredSource]:
        tree, keys = place.tree, place.keys
        own = tree.resolve({key: value for key, value in entry.items() if key not in _OWN}, keys)
        tags = {**_mapping(place.options.get("tags")), **_mapping(own.get("tags"))}
        options = {**place.options, **own, "tags": tags}
        name = tree.resolve(entry.get("name"), keys)
        place = place if name is None else replace(place, names=(*place.names, str(name)))
        children = entry.get("input_cfg")
        if children is not None:
            below = (*keys, "input_cfg")
            inner = replace(place, keys=below, options=options, depth=place.depth + 1)
            yield from self.level(children, inner)
            return
        weight = number_of(tree.resolve(entry.get("weight"), keys))
        source = _source(options, self.seen, place.share, weight, tree.folder)
        names = place.names if name is not None else (*place.names, source.name)
        yield replace(source, name="/".join(names))
        self.seen += 1

    def _exponent(self, depth: int) -> float:
        given = self.exponents
        if isinstance(given, (list, tuple)):
            levels = cast("Sequence[Any]", given)
            given = levels[depth] if depth < len(levels) else None
        number = number_of(given)
        return 1.0 if number is None else number


def _shares(weights: Sequence[Any], exponent: float) -> list[float]:
    numbers = [number_of(weight) for weight in weights]
    known = [number for number in numbers if number is not None and number > 0]
    if len(known) < len(numbers):
        return [1 / len(numbers)] * len(numbers)
    # Powers of weights as they stand could be too large, or all of them 0.
    largest = max(known) if exponent >= 0 else min(known)
    powers = [(number / largest) ** exponent for number in known]
    return [power / sum(powers) for power in powers]


def _source(
    entry: Mapping[str, Any], number: int, share: float, weight: float | None, folder: Path | None
) -> DeclaredSource:
    specs = {key: entry[key] for key in PATH_KEYS if entry.get(key) is not None}
    first = first_text(next(iter(specs.values()), ""))
    type_ = str(entry.get("type", ""))
    order = PATH_KEYS[::-1] if type_ == "nemo_tarred" else PATH_KEYS
    called = "/".join(str(entry[key]) for key in NAMING_LABELS if entry.get(key) is not None)
    pack = _text(entry.get("index_pack"))
    root = _text(entry.get("index_pack_root"))
    return DeclaredSource(
        name=called or first or f"source-{number}",
        type=type_,
        desired_weight=share,
        raw_weight=weight,
        hours=number_of(entry.get("hours")),
        tags=entry["tags"],
        first_path=first,
        specs=specs,
        groups=tuple(tuple(_files(specs[key], folder)) for key in order if key in specs),
        indexes_root=_text(entry.get("indexes_root")),
        index_pack=None if pack is None else _joined(root, pack),
        pack_name=pack,
    )


def _files(spec: Any, folder: Path | None) -> Iterator[str]:
    if isinstance(spec, str):
        yield from located(spec, folder)
    elif isinstance(spec, (list, tuple, Mapping)):
        inner = cast("Any", spec.values() if isinstance(spec, Mapping) else spec)
        for one in inner:
            yield from _files(one, folder)


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _joined(root: str | None, pack: str) -> str:
    return pack if scheme(pack) or root is None else str(Path(root) / pack)
