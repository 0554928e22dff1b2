"""The data sets of an evaluation section of a config, by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from playhead.blend.read import open_config, read_section
from playhead.blend.section import DEEPEST, GROUP_OF_SETS, INPUTS, Section
from playhead.config import Spot
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.blend.read import Blend
    from playhead.blend.yaml_tree import YamlTree

__all__ = ["has_section", "read_sets"]

_SECTION = "validation_ds"
_MANIFESTS = "manifest_filepath"


@dataclass(frozen=True, slots=True)
class _Set:
    """A set, and where it is described."""

    section: Section
    """Its section."""
    manifest: str | None = None
    """Which of the manifests of that section it is; None where it is all of the section."""


def read_sets(
    config: Any,
    *,
    section: str | None = None,
    strict: bool = False,
    overrides: Mapping[str, Any] | None = None,
    data_blend_dir: str | None = None,
) -> dict[str, Blend]:
    """Read the sets of a section, each as a blend of which one pass is made.

    They are what stands under `datasets` in the section, a mapping or a list of sets with names,
    which share its options; the manifests of a list; or the section itself, as one set.

    Parameters
    ----------
    config, strict, data_blend_dir
        As for `read_blend`.
    section
        The section by its dotted path or the end of that; `validation_ds` if None. Of a set that
        stands alone it is the name.
    overrides
        Options that win over those of every set.

    Returns
    -------
    dict[str, Blend]
        By name, in the order of the config.

    Raises
    ------
    ConfigError
        When there is no such section, a set has no data, two have one name, or one of them cannot
        be used; the message names file and place.
    SourceNotFoundError
        When a YAML file does not exist.
    """
    given = dict(overrides or {})
    tree, own_name = open_config(config, data_blend_dir)
    wanted = section or own_name or _SECTION
    keys = _find(tree, wanted)
    sets = _sets(tree, keys, ".".join(keys) or wanted, given)
    # Whatever the section is called, evaluation ends.
    given["force_finite"] = True
    return {
        name: _read(tree, name, one, strict=strict, overrides=given) for name, one in sets.items()
    }


def has_section(config: Any, section: str, *, data_blend_dir: str | None = None) -> bool:
    """Whether a config has a section of that name; one that is a blend by itself has none.

    Parameters
    ----------
    config, data_blend_dir
        As for `read_blend`.
    section
        The dotted path of the section, or the end of that.

    Raises
    ------
    ConfigError
        When the config cannot be read.
    SourceNotFoundError
        When a YAML file does not exist.
    """
    content = open_config(config, data_blend_dir)[0].content
    if isinstance(content, list):
        return False
    return any(f".{'.'.join(keys)}".endswith(f".{section}") for keys, _ in _mappings(content, ()))


def _read(
    tree: YamlTree, name: str, one: _Set, *, strict: bool, overrides: Mapping[str, Any]
) -> Blend:
    where = Spot(tree.path, one.section.keys)
    own = {} if one.manifest is None else {_MANIFESTS: one.manifest}
    blend = read_section(tree, one.section, strict=strict, overrides={**overrides, **own})
    if blend.options.multi_config:
        raise ConfigError(
            f"the set {name} has multi_config, of which a pass may leave data out",
            where=str(where),
            fix=f"Put its parts under `{GROUP_OF_SETS}:`, each as a set of its own",
        )
    if blend.options.drop_last:
        raise ConfigError(
            f"the set {name} has drop_last, and a set is evaluated whole",
            where=str(where),
            fix="Remove drop_last; it is for training",
        )
    return blend


def _find(tree: YamlTree, wanted: str) -> tuple[str, ...]:
    """The way to the section that is meant, from the top; empty for the config itself."""
    content = tree.content
    if isinstance(content, list) or any(content.get(key) is not None for key in INPUTS):
        return ()
    nodes = list(_mappings(content, ()))
    exact = [keys for keys, _ in nodes if ".".join(keys) == wanted]
    ending = [keys for keys, _ in nodes if f".{'.'.join(keys)}".endswith(f".{wanted}")]
    meant = exact or ending
    if len(meant) == 1:
        return meant[0]
    if not meant and GROUP_OF_SETS in content:
        return ()
    with_data = [".".join(keys) for keys, node in nodes if _has_data(node)]
    many = [".".join(keys) for keys in meant]
    raise ConfigError(
        f"there is {'more than one' if many else 'no'} section {wanted!r}",
        where=str(Spot(tree.path)),
        fix=(
            f"Choose one of these as `section`: {', '.join(many or with_data)}"
            if many or with_data
            else f"Add a section {wanted} that names data"
        ),
    )


def _mappings(
    content: Mapping[str, Any], keys: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    for key, value in content.items():
        if isinstance(value, dict) and len(keys) < DEEPEST:
            yield (*keys, key), value
            yield from _mappings(value, (*keys, key))


def _has_data(node: Mapping[str, Any]) -> bool:
    return GROUP_OF_SETS in node or any(node.get(key) is not None for key in INPUTS)


def _sets(
    tree: YamlTree, keys: tuple[str, ...], called: str, overrides: Mapping[str, Any]
) -> dict[str, _Set]:
    node: Any = tree.content
    for key in keys:
        node = node[key]
    section = Section(keys, called)
    last = called.rpartition(".")[2]
    if isinstance(node, list):
        return {last: _Set(section)}
    where = Spot(tree.path, keys)
    group = node.get(GROUP_OF_SETS)
    named = [key for key in INPUTS if node.get(key) is not None]
    if group is not None:
        if isinstance(group, list):
            group = node[GROUP_OF_SETS] = _by_name(group, where.at(GROUP_OF_SETS))
        if named:
            raise ConfigError(
                f"the section has {GROUP_OF_SETS} and names data itself: {', '.join(named)}",
                where=str(where),
                fix=f"Put these data under `{GROUP_OF_SETS}:` too, or remove them",
            )
        return _sets_below(group, section, where.at(GROUP_OF_SETS))
    if not named and not any(overrides.get(key) is not None for key in INPUTS):
        raise ConfigError(
            f"the section {called} names no data",
            where=str(where),
            fix=f"Set {', '.join(INPUTS[:2])} or {INPUTS[2]}, or put sets under `{GROUP_OF_SETS}:`",
        )
    values = {
        key: tree.resolve(node[key], (*keys, key))
        for key in (*INPUTS, "name")
        if node.get(key) is not None
    }
    return _manifests({**values, **overrides}, section, where) or {
        _one_name(values.get("name", last), where.at("name")): _Set(section)
    }


def _by_name(group: list[Any], where: Spot) -> dict[str, Any]:
    """A list of sets that bear their names, as a mapping."""
    sets: dict[str, Any] = {}
    for number, one in enumerate(group):
        name = _one_name(one.get("name") if isinstance(one, dict) else None, where.at(number))
        if name in sets:
            raise ConfigError(
                f"two sets are called {name}", where=str(where.at(number)), fix="Rename one of them"
            )
        sets[name] = one
    return sets


def _sets_below(group: Any, section: Section, where: Spot) -> dict[str, _Set]:
    """The sets under `datasets`."""
    if not isinstance(group, dict) or not group:
        raise ConfigError(
            f"`{GROUP_OF_SETS}` names no sets",
            where=str(where),
            fix="Give a mapping from the name of each set to its options",
        )
    sets: dict[str, _Set] = {}
    for name, one in group.items():
        if not isinstance(one, dict) or not any(one.get(key) is not None for key in INPUTS):
            raise ConfigError(
                f"the set {name} names no data",
                where=str(where.at(name)),
                fix=f"Set {', '.join(INPUTS[:2])} or {INPUTS[2]} in it, or remove it",
            )
        keys = (*section.keys, GROUP_OF_SETS, name)
        sets[name] = _Set(Section(keys, ".".join(keys)))
    return sets


def _manifests(values: Mapping[str, Any], section: Section, where: Spot) -> dict[str, _Set]:
    """A set of each manifest of a list; none where there is no list of paths alone."""
    paths = values.get(_MANIFESTS)
    others = [key for key in INPUTS if key != _MANIFESTS and values.get(key) is not None]
    if others or not isinstance(paths, list) or not all(isinstance(one, str) for one in paths):
        return {}
    names = values.get("name")
    if names is None:
        names = [PurePosixPath(path).stem for path in paths]
    if not isinstance(names, list) or len(names) != len(paths):
        count = len(names) if isinstance(names, list) else 1
        raise ConfigError(
            f"there {'is' if count == 1 else 'are'} {count} name{'' if count == 1 else 's'} for"
            f" {len(paths)} manifests",
            where=str(where.at("name")),
            fix="Give a list of as many names, or none: then they are those of the files",
        )
    sets: dict[str, _Set] = {}
    for number, (name, path) in enumerate(zip(names, paths, strict=True)):
        one = _one_name(name, where.at("name", number))
        if one in sets:
            raise ConfigError(
                f"two sets are called {one}: {sets[one].manifest} and {path}",
                where=str(where.at(_MANIFESTS)),
                fix="Give `name:` beside them, a list with a name for each manifest",
            )
        sets[one] = _Set(section, path)
    return sets


def _one_name(name: Any, where: Spot) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigError(
            f"a set cannot be called {name!r}", where=str(where), fix="Give a name as text"
        )
    return name
