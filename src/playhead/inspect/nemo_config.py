"""What a config says of the sources that states of NeMo and Lhotse number: names, shares, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from playhead.blend.read import open_config
from playhead.blend.several import read_blends
from playhead.blend.yaml_tree import YamlTree, load_tree
from playhead.errors import ConfigError, PlayheadError
from playhead.formats import format_of
from playhead.inspect.nemo_declared import PATH_KEYS, DeclaredSource, first_text, number_of
from playhead.inspect.nemo_entries import lenient_sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.blend.leaf import Leaf
    from playhead.blend.several import Blends
    from playhead.config import Spot

__all__ = ["Declared", "declared_sources"]

# Of these the nearest counts.
_INHERITED: Final = ("index_pack",)


class Declared(NamedTuple):
    """The sources of a config."""

    sources: list[DeclaredSource]
    """In its order."""
    notes: list[str]
    """What people should know of how it was read."""


def declared_sources(
    config: Any, *, section: str | None = None, data_blend_dir: str | None = None
) -> Declared:
    """Read the sources of a config in its order, which is that of the states.

    Names, weights, temperatures and inherited options are those that training with Playhead would
    use. A config that it cannot train from is read with less care, which is noted.

    Parameters
    ----------
    config, section, data_blend_dir
        As for `playhead.blend.read.read_blend`.

    Raises
    ------
    ConfigError
        When the config cannot be used.
    SourceNotFoundError
        When a YAML file does not exist.
    """
    try:
        blends = read_blends(config, section=section, data_blend_dir=data_blend_dir)
    except ConfigError as error:
        sources = lenient_sources(config, section=section, data_blend_dir=data_blend_dir)
        return Declared(sources, [f"Playhead cannot train from this config: {error}"])
    tree, _ = open_config(config, data_blend_dir)
    entries = _Entries(tree, data_blend_dir)
    leaves = _leaves_of(blends)
    return Declared(
        [
            replace(_declared(leaf, share, entries.at(spot)), part=part)
            for part, leaf, spot, share in leaves
        ],
        [],
    )


def _leaves_of(blends: Blends) -> Iterator[tuple[str, Leaf, Spot, float]]:
    whole = sum(blends.weights)
    for (part, blend), weight in zip(blends.parts.items(), blends.weights, strict=True):
        total = sum(leaf.weight for leaf in blend.leaves)
        for leaf, spot in zip(blend.leaves, blend.spots, strict=True):
            yield part, leaf, spot, float(Fraction(leaf.weight * weight, total * whole or 1))


def _declared(leaf: Leaf, share: float, entry: Mapping[str, Any]) -> DeclaredSource:
    weight = entry.get("weight")
    specs = {key: entry[key] for key in PATH_KEYS if entry.get(key) is not None}
    return DeclaredSource(
        name=leaf.name,
        type=leaf.type,
        desired_weight=share,
        raw_weight=number_of(weight),
        hours=number_of(leaf.labels.get("hours")),
        tags={**leaf.outer_tags, **leaf.tags},
        first_path=first_text(next(iter(specs.values()), "")),
        specs=specs,
        groups=_groups(leaf),
        indexes_root=leaf.options.indexes_root,
        index_pack=leaf.options.index_pack,
        pack_name=entry.get("index_pack"),
        leaf=leaf,
    )


def _groups(leaf: Leaf) -> tuple[tuple[str, ...], ...]:
    """The files of a leaf whose items are its own: its manifests, or archives of their audio."""
    try:
        # As they are declared: relative ones have their indexes elsewhere below a root.
        pairs = format_of(leaf).sources(leaf)
    except (PlayheadError, OSError):
        # Folders that nobody can look into: their files are not known.
        return tuple(leaf.paths.values())
    manifests = tuple(pair.manifest for pair in pairs)
    tars = tuple(tar for pair in pairs for tar in pair.tars)
    groups = (tars, manifests) if leaf.type == "nemo_tarred" else (manifests, tars)
    return tuple(group for group in groups if group)


class _Entries:
    """Entries as they are written, by their place."""

    def __init__(self, tree: YamlTree, data_blend_dir: str | None) -> None:
        self._trees = {tree.path: tree}
        self._data_blend_dir = data_blend_dir or tree.data_blend_dir

    def at(self, spot: Spot) -> Mapping[str, Any]:
        """The entry that stands at a place, or around it; empty where there is none."""
        tree = self._trees.get(spot.file)
        if tree is None:
            tree = load_tree(spot.file, data_blend_dir=self._data_blend_dir)
            self._trees[spot.file] = tree
        node, entry, keys = tree.content, {}, ()
        inherited: dict[str, Any] = {}
        for place, key in enumerate(spot.keys):
            try:
                node = node[key]
            except (KeyError, IndexError, TypeError):
                break
            if isinstance(node, Mapping):
                facts = cast("Mapping[str, Any]", node)
                inherited |= {name: facts[name] for name in _INHERITED if name in facts}
                if "type" in facts:
                    entry, keys = facts, spot.keys[: place + 1]
        wanted = {key: entry[key] for key in (*PATH_KEYS, "weight") if key in entry}
        return cast("Mapping[str, Any]", tree.resolve({**inherited, **wanted}, keys))
