"""From a config to its blends: one, or with `multi_config` one of every sub-config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.blend.read import open_config, read_section
from playhead.blend.section import INPUTS, Section, find_section
from playhead.blend.several_top import OPTION_NAMES, Top, at_keys
from playhead.config import Spot
from playhead.config.faults import collected
from playhead.config.read import convert_option
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.read import Blend
    from playhead.blend.yaml_tree import YamlTree
    from playhead.config import Options
    from playhead.config.faults import Faults

__all__ = ["Blends", "Named", "read_blends", "section_of", "sections_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Blends:
    """The blends of a config, and how they take turns."""

    parts: Mapping[str, Blend]
    """By name, in the order of names; one of the name "" where the config is one blend."""
    fusion: str | None
    """`round_robin`, `randomized_round_robin` or `zip`; None where the config is one blend."""
    weights: tuple[int, ...]
    """Weight of each part, whole numbers, where turns are drawn at random."""
    notes: tuple[str, ...]
    """What people should be told once of the parts together; each has notes of its own."""

    @property
    def options(self) -> Options:
        """The options of a part: what a loader has but one of is the same in all."""
        return next(iter(self.parts.values())).options


def read_blends(
    config: Any,
    *,
    section: str | None = None,
    strict: bool = False,
    overrides: Mapping[str, Any] | None = None,
    data_blend_dir: str | None = None,
    faults: Faults | None = None,
) -> Blends:
    """Read the blend of a config, or those of the parts of one with `multi_config: true`.

    Parts are the keys that hold mappings; options that do are none. The top level decides `seed`,
    `shuffle`, workers, whether passes end, and where indexes are; nothing else of it reaches a
    part. A section that is itself a part is read as it is there, alone.

    Parameters
    ----------
    config, section, strict, data_blend_dir
        As for `read_blend`.
    overrides
        Options that win over those of every part.
    faults
        Gets what is refused, and the rest is read all the same; None raises the first.

    Raises
    ------
    ConfigError
        When the config cannot be used; the message names file and place.
    SourceNotFoundError
        When a YAML file does not exist.
    """
    given = dict(overrides or {})
    tree, own_name = open_config(config, data_blend_dir)
    wanted = section or own_name
    top = _find_top(tree, wanted, given)
    if top is None:
        found = find_section(tree.content, wanted, Spot(tree.path))
        if given.get("multi_config"):
            raise ConfigError(
                "multi_config is given to the call, and the config has no parts that it marks",
                where=str(Spot(tree.path, found.keys)),
                fix="Write multi_config: true into the config, beside its parts",
            )
        return _one(tree, found, strict=strict, overrides=given, faults=faults)
    several = Top(tree, top, given, strict=strict)
    parts = several.read(faults)
    fusion = "round_robin"
    with collected(faults):
        fusion = several.fusion()
    weights = (1,) * len(parts)
    with collected(faults):
        weights = several.weights(list(parts), fusion)
    return Blends(parts=parts, fusion=fusion, weights=weights, notes=tuple(several.notes))


class Named(NamedTuple):
    """A section that describes one blend."""

    section: str | None
    """Its dotted path, or what a caller called it."""
    indexes_root: str | None
    """Where the top level of its config keeps indexes; None where that does not say."""


def sections_of(config: Any, section: str, *, data_blend_dir: str | None = None) -> list[Named]:
    """The sections that a section consists of: its parts with `multi_config`, else itself.

    Parameters
    ----------
    config, section, data_blend_dir
        As for `read_blend`.

    Raises
    ------
    ConfigError
        When the config cannot be used.
    """
    tree, _ = open_config(config, data_blend_dir)
    found = _find_top(tree, section, {})
    if found is not None:
        top = Top(tree, found, {}, strict=False)
        root = top.handed_down().get("indexes_root")
        return [Named(".".join((*found.keys, name)), root) for name in top.names()]
    found = find_section(tree.content, section, Spot(tree.path))
    return [Named(section, _above(tree, found, {}, strict=False).get("indexes_root"))]


def section_of(tree: YamlTree, wanted: str | None) -> Section:
    """Find the section that is meant, one with `multi_config` too.

    Parameters
    ----------
    tree
        The config.
    wanted
        Its dotted path or the end of that; the training section if None.

    Raises
    ------
    ConfigError
        When there is none, or several.
    """
    top = _find_top(tree, wanted, {})
    return find_section(tree.content, wanted, Spot(tree.path)) if top is None else top


def _one(
    tree: YamlTree,
    found: Section,
    *,
    strict: bool,
    overrides: Mapping[str, Any],
    faults: Faults | None = None,
) -> Blends:
    handed = _above(tree, found, overrides, strict=strict)
    options = {**handed, **overrides}
    blend = read_section(tree, found, strict=strict, overrides=options, faults=faults)
    return Blends(parts={"": blend}, fusion=None, weights=(1,), notes=())


def _above(
    tree: YamlTree, found: Section, overrides: Mapping[str, Any], *, strict: bool
) -> dict[str, Any]:
    """What a section gets from the one that it is a part of, if it is."""
    top = Section(found.keys[:-1], None)
    if not found.keys or not _is_several(tree, at_keys(tree.content, top.keys), top.keys):
        return {}
    return Top(tree, top, overrides, strict=strict).handed_down()


def _find_top(tree: YamlTree, wanted: str | None, overrides: Mapping[str, Any]) -> Section | None:
    """The section with `multi_config` that is meant, if one is."""
    if overrides.get("multi_config") is False or isinstance(tree.content, list):
        return None
    shown = _shown(tree, tree.content, ())
    if _is_mark(shown):
        last = (wanted or "").rpartition(".")[2]
        is_part = isinstance(tree.content.get(last), dict) and last not in OPTION_NAMES
        return None if is_part else Section((), wanted)
    try:
        found = find_section(shown, wanted, Spot(tree.path))
    except ConfigError:
        # Nobody is meant, or a part: reading on says which.
        return None
    return found if _is_mark(at_keys(shown, found.keys)) else None


_MARK = object()


def _is_mark(node: Any) -> bool:
    return isinstance(node, dict) and any(value is _MARK for value in node.values())


def _shown(tree: YamlTree, node: Any, keys: tuple[str, ...]) -> Any:
    """A config in which sections with `multi_config` look like those of one blend."""
    if not isinstance(node, dict):
        return node
    if _is_several(tree, node, keys):
        return {INPUTS[0]: _MARK}
    return {key: _shown(tree, value, (*keys, str(key))) for key, value in node.items()}


def _is_several(tree: YamlTree, node: Any, keys: tuple[str, ...]) -> bool:
    if not isinstance(node, dict) or not node.get("multi_config"):
        return False
    at = (*keys, "multi_config")
    value = tree.resolve(node["multi_config"], at)
    return bool(convert_option("multi_config", value, Spot(tree.path, at[:-1])))
