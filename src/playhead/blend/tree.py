"""From entries to a tree: references followed, options, tags and labels handed down."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.blend.entry import CASCADED, CONCATENATED, Entry, Remarks, read_entry
from playhead.blend.leaf import ExtraField
from playhead.blend.mixture import Branch, Mixture, Node, Twig
from playhead.blend.sources import located, sources_of
from playhead.blend.transforms import TRANSFORMS
from playhead.blend.types import declared
from playhead.blend.weights import shares
from playhead.config import Spot
from playhead.config.faults import collected
from playhead.errors import ConfigError, NotSupportedError
from playhead.paths import scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Transform
    from playhead.blend.yaml_tree import YamlTree
    from playhead.config import Options
    from playhead.config.faults import Faults

__all__ = ["plant"]

_DEEPEST = 100


def plant(
    entries: Any,
    tree: YamlTree,
    keys: tuple[str | int, ...],
    options: Options,
    remarks: Remarks,
    *,
    faults: Faults | None = None,
) -> Mixture:
    """The tree of a blend.

    Parameters
    ----------
    entries
        A list of entries, or the path of a YAML file that holds one.
    tree
        The file that declares them.
    keys
        The way to them in it.
    options
        The options of the section.
    remarks
        Gets what people should be told once.
    faults
        Gets what is refused of entries, which are left out then; None raises the first.

    Raises
    ------
    ConfigError
        Naming the entry and what is wrong with it.
    """
    branch = Branch(options={name: getattr(options, name) for name in CASCADED})
    files = () if tree.folder is None else (str(Path(tree.path).resolve()),)
    gardener = _Gardener(remarks=remarks, files=files, faults=faults)
    return gardener.mixture(entries, tree, keys, branch)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Gardener:
    """Where in the files a walk is."""

    remarks: Remarks
    files: tuple[str, ...]
    level: int = 0
    faults: Faults | None = None

    def mixture(
        self, entries: Any, tree: YamlTree, keys: tuple[str | int, ...], branch: Branch
    ) -> Mixture:
        where = Spot(tree.path, keys)
        if self.level > _DEEPEST:
            raise ConfigError(
                f"groups are nested more than {_DEEPEST} deep",
                where=str(where),
                fix="Look for a group that holds itself",
            )
        entries = tree.resolve(entries, keys) if isinstance(entries, str) else entries
        if isinstance(entries, str):
            return self._referred(entries, tree, where, branch)
        if isinstance(entries, dict) and "type" in entries:
            nodes = [self._node(entries, tree, keys, branch)]
            return Mixture(weight=None, children=nodes, where=where, is_level=True)
        if not isinstance(entries, list) or not entries:
            raise ConfigError(
                "there are no entries" if not entries else "`input_cfg` is not a list of entries",
                where=str(where),
                fix="List entries, each with a type, or name a YAML file that does",
            )
        nodes: list[Node] = []
        for number, given in enumerate(entries):
            with collected(self.faults):
                nodes.append(self._node(given, tree, (*keys, number), branch))
        return Mixture(weight=None, children=nodes, where=where, is_level=True)

    def _node(
        self, given: Any, tree: YamlTree, keys: tuple[str | int, ...], branch: Branch
    ) -> Node:
        where = Spot(tree.path, keys)
        children: Any = None
        if isinstance(given, dict):
            # A group's entries are resolved one by one, where they stand.
            children = given.get("input_cfg")
            given = {key: None if key == "input_cfg" else value for key, value in given.items()}
        given = tree.resolve(given, keys)
        if children is not None:
            given["input_cfg"] = children
        entry = read_entry(given, where, self.remarks)
        below = _below(branch, entry, where)
        if declared(entry.type) is None:
            inner = replace(self, level=self.level + 1)
            mixture = inner.mixture(entry.children, tree, (*keys, "input_cfg"), below)
            return replace(mixture, weight=entry.weight, temperature=entry.temperature)
        return _node_of_files(entry, tree, where, below)

    def _referred(self, reference: str, tree: YamlTree, where: Spot, branch: Branch) -> Mixture:
        if scheme(reference):
            raise NotSupportedError(
                f"the config {reference} is not a local file, which is not supported yet",
                where=str(where),
                fix="Copy it to a file system",
            )
        inner = tree.refer(reference)
        real = str(Path(inner.path).resolve())
        if real in self.files:
            raise ConfigError(
                f"the config names itself: {' → '.join((*self.files, real))}",
                where=str(where),
                fix="Break the circle",
            )
        content, keys = inner.content, ()
        if isinstance(content, dict) and "input_cfg" in content:
            content, keys = content["input_cfg"], ("input_cfg",)
        below = replace(self, files=(*self.files, real), level=self.level + 1)
        return below.mixture(content, inner, keys, branch)


def _below(branch: Branch, entry: Entry, where: Spot) -> Branch:
    options = {**branch.options, **entry.options}
    tolerant = branch.options["fault_tolerant_audio_loading"]
    if tolerant is not None:
        options["fault_tolerant_audio_loading"] = tolerant
    elif options["fault_tolerant_audio_loading"]:
        raise NotSupportedError(
            "`fault_tolerant_audio_loading` of one entry is not supported",
            where=str(where.at("fault_tolerant_audio_loading")),
            fix="Set it for the whole section",
        )
    if branch.concatenation is not None and entry.concatenation is not None:
        raise ConfigError(
            f"an entry of type `{CONCATENATED}` holds another",
            where=str(where),
            fix="Join rows once",
        )
    if entry.concatenation is not None and branch.transforms:
        raise NotSupportedError(
            f"an entry of type `{branch.transforms[0].name}` holds one of type `{CONCATENATED}`",
            where=str(where),
            fix="Leave one of them out; what changes single cuts may stand inside"
            f" `{CONCATENATED}`",
        )
    tags, outer = _tags_below(branch, entry)
    is_group = declared(entry.type) is None and entry.name is not None
    return Branch(
        options=options,
        tags=tags,
        outer_tags=outer,
        labels={**branch.labels, **entry.labels},
        names=(*branch.names, entry.name) if is_group and entry.name else branch.names,
        concatenation=entry.concatenation or branch.concatenation,
        transforms=(
            branch.transforms if entry.transform is None else (entry.transform, *branch.transforms)
        ),
    )


def _tags_below(branch: Branch, entry: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tags inside an entry: those that may become turns of a conversation, and the others."""
    makes_turns = declared(entry.type) is not None or _is_conversion(entry.transform)
    if makes_turns and not any(map(_is_conversion, branch.transforms)):
        return entry.tags, {**branch.outer_tags, **branch.tags}
    return {**branch.tags, **entry.tags}, dict(branch.outer_tags)


def _is_conversion(transform: Transform | None) -> bool:
    return transform is not None and TRANSFORMS[transform.name].kind == "conversation"


def _node_of_files(entry: Entry, tree: YamlTree, where: Spot, branch: Branch) -> Node:
    sources = sources_of(
        entry.type,
        entry.specs,
        base=tree.folder,
        where=where,
        are_partners=entry.own.get("tar_lookup_mode") != "collection",
    )
    own, lines = _own_and_lines(entry, where)
    fields = _located((*entry.extra_fields, *lines), tree)
    several = len(sources) > 1
    if not several and sources[0].weight is not None:
        # It has no effect, and is checked as those are that have one.
        shares([sources[0].weight, 1], 1.0, where)
    twigs = [
        Twig(
            weight=source.weight if several else entry.weight,
            type=entry.type,
            source=source,
            branch=branch,
            name=entry.name,
            where=where,
            own=own,
            extra_fields=fields,
        )
        for source in sources
    ]
    if not several:
        return twigs[0]
    if entry.name is not None:
        named = replace(branch, names=(*branch.names, entry.name))
        twigs = [replace(twig, branch=named, name=None) for twig in twigs]
    return Mixture(weight=entry.weight, children=twigs, where=where, is_level=False)


def _own_and_lines(entry: Entry, where: Spot) -> tuple[dict[str, Any], list[ExtraField]]:
    """The own options of an entry, and the fields that come from those that name text files."""
    kind = declared(entry.type)
    names = {} if kind is None else kind.lines
    fields: list[ExtraField] = []
    for option, name in names.items():
        path = entry.own[option]
        if path is not None and (not isinstance(path, str) or not path):
            raise ConfigError(
                f"`{option}` is {path!r}, and has to be the path of a text file",
                where=str(where.at(option)),
                fix="Give one path, or leave it out",
            )
        if path:
            fields.append(ExtraField(type="text_sample", name=name, path=path))
    return {key: value for key, value in entry.own.items() if key not in names}, fields


def _located(fields: Sequence[ExtraField], tree: YamlTree) -> tuple[ExtraField, ...]:
    """Extra fields, their files found as data are."""
    return tuple(replace(field, path=located(field.path, tree.folder)[0]) for field in fields)
