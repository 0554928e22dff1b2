"""What a config says of the sources that states of NeMo and Lhotse number: names, shares, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast

from playhead.blend.read import open_config
from playhead.blend.several import read_blends
from playhead.blend.yaml_tree import YamlTree, load_tree
from playhead.errors import PlayheadError
from playhead.index.build_target import leaf_sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.blend.leaf import Leaf
    from playhead.blend.several import Blends
    from playhead.config import Spot

__all__ = ["DeclaredSource", "declared_sources"]

# Keys of entries that name files.
_PATH_KEYS: Final = (
    "manifest_filepath",
    "cuts_path",
    "source_paths",
    "source_path",
    "shar_path",
    "paths",
    "data_dir",
    "tarred_audio_filepaths",
    "tarred_audio_filepath",
)
# Of these the nearest counts.
_INHERITED: Final = ("index_pack",)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredSource:
    """One source of a config."""

    name: str
    """What people call it."""
    type: str
    """Its input type."""
    desired_weight: float | None
    """Its share of the blend, 0 to 1."""
    raw_weight: float | None = None
    """The weight of its entry as written; None where it has none."""
    hours: float | None = None
    """Hours of audio that its entry claims."""
    tags: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Its tags, inherited ones among them."""
    first_path: str = ""
    """The first of its paths, as declared."""
    specs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Its paths by their keys, as declared, patterns not expanded."""
    groups: tuple[tuple[str, ...], ...] = ()
    """Lists of files any of which hold all its items, those first whose index counts them best."""
    indexes_root: str | None = None
    """Folder of its `.idx` files; None for beside the data."""
    index_pack: str | None = None
    """The pack that it names, an absolute path."""
    pack_name: str | None = None
    """That pack as the config has it, relative to a root."""
    leaf: Leaf | None = None
    """What the rest of Playhead makes of it; None where it makes nothing."""


def declared_sources(
    config: Any, *, section: str | None = None, data_blend_dir: str | None = None
) -> list[DeclaredSource]:
    """Read the sources of a config in its order, which is that of the states.

    Names, weights, temperatures and inherited options are those that training with Playhead would
    use.

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
    blends = read_blends(config, section=section, data_blend_dir=data_blend_dir)
    tree, _ = open_config(config, data_blend_dir)
    entries = _Entries(tree, data_blend_dir)
    return [_declared(leaf, share, entries.at(spot)) for leaf, spot, share in _leaves_of(blends)]


def _leaves_of(blends: Blends) -> Iterator[tuple[Leaf, Spot, float]]:
    whole = sum(blends.weights)
    for blend, weight in zip(blends.parts.values(), blends.weights, strict=True):
        total = sum(leaf.weight for leaf in blend.leaves)
        for leaf, spot in zip(blend.leaves, blend.spots, strict=True):
            yield leaf, spot, float(Fraction(leaf.weight * weight, total * whole or 1))


def _declared(leaf: Leaf, share: float, entry: Mapping[str, Any]) -> DeclaredSource:
    weight = entry.get("weight")
    specs = {key: entry[key] for key in _PATH_KEYS if entry.get(key) is not None}
    return DeclaredSource(
        name=leaf.name,
        type=leaf.type,
        desired_weight=share,
        raw_weight=_number(weight),
        hours=_number(leaf.labels.get("hours")),
        tags={**leaf.outer_tags, **leaf.tags},
        first_path=_first_text(next(iter(specs.values()), "")),
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
        pairs = leaf_sources(leaf).pairs
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
        wanted = {key: entry[key] for key in (*_PATH_KEYS, "weight") if key in entry}
        return cast("Mapping[str, Any]", tree.resolve({**inherited, **wanted}, keys))


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _first_text(spec: Any) -> str:
    while isinstance(spec, (list, tuple, Mapping)) and spec:
        items = spec.values() if isinstance(spec, Mapping) else spec
        spec = next(iter(cast("Any", items)))
    return spec if isinstance(spec, str) else ""
