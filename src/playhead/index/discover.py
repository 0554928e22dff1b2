"""Which data files a config names, by NeMo's rules, and where their `.idx` belong."""

from __future__ import annotations

import posixpath
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from playhead.blend.section import find_section
from playhead.blend.types import declared
from playhead.blend.yaml_tree import YamlTree, load_tree
from playhead.config import Spot
from playhead.errors import ConfigError, NotSupportedError, PlayheadError, SourceNotFoundError
from playhead.formats.share_gpt_shards import shards_of
from playhead.index.found import Blend, Discovery, Problem, place
from playhead.index.sidecars import Sidecar
from playhead.paths import expand
from playhead.storage.compression import has_middle, is_archive, plain_name
from playhead.storage.folders import archives_under, is_folder, names_in

if TYPE_CHECKING:
    from playhead.index.sidecars import Kind

__all__ = ["discover_config", "discover_folder"]

_Keys: TypeAlias = tuple["str | int", ...]

_BY_KEYS = frozenset(
    {
        "group",
        "lhotse",
        "lhotse_as_conversation",
        "lhotse_concat",
        "lhotse_magpietts_data_as_continuation",
        "lhotse_shar",
        "materialized_sft_messages",
        "multimodal_conversation",
        "nemo",
        "nemo_sft_jsonl",
        "nemo_tarred",
        "nemo_tarred_to_duplex",
        "nemotron_text_converation",
        "s2s_as_conversation",
        "s2s_duplex_overlap_as_s2s_duplex",
        "s2s_duplex_reverse_role",
        "share_gpt",
        "sqa_as_conversation",
        "txt_jsonl",
    }
)
_DATA_KEYS = frozenset(
    {
        "cuts_path",
        "data_dir",
        "input_cfg",
        "manifest_filepath",
        "paths",
        "shar_path",
        "tarred_audio_filepaths",
    }
)
_UNSET = frozenset({"", "???"})


def discover_config(
    path: str,
    *,
    indexes_root: str | None = None,
    data_blend_dir: str | None = None,
    section: str | None = None,
) -> Discovery:
    """Find every JSONL and tar that a config names, in it and in the YAML files that it names.

    Parameters
    ----------
    path
        A YAML file: a list of entries, `{input_cfg: …}`, or a whole training config.
    indexes_root
        Where the `.idx` belong where the config does not say; beside the data if None.
    data_blend_dir
        What `${data_blend_dir}` stands for.
    section
        The part to look at, as `model.train_ds`; everything if None.

    Raises
    ------
    SourceNotFoundError
        A YAML file does not exist.
    ConfigError
        A YAML file cannot be used.
    """
    walk = _Walk(open_files=[path])
    tree = load_tree(path, data_blend_dir=data_blend_dir)
    keys = () if section is None else find_section(tree.content, section, Spot(tree.path)).keys
    content = tree.content
    for key in keys:
        content = content[key]
    if isinstance(content, list):
        walk.sections.append(())
        walk.entries(tree, cast("list[Any]", content), keys, indexes_root)
    else:
        walk.visit(tree, content, keys, indexes_root)
    return walk.result(path)


def discover_folder(
    path: str, *, kind: Kind = "wds_tar", indexes_root: str | None = None
) -> Discovery:
    """Find the JSONL and tars of a Shar folder; folders inside it are not looked at.

    Parameters
    ----------
    path
        The folder.
    kind
        What its tars are.
    indexes_root
        Where the `.idx` belong; beside the data if None.
    """
    walk = _Walk()
    walk.folder(path, kind, indexes_root)
    return walk.result(None)


@dataclass(slots=True)
class _Walk:
    """What one walk has collected so far."""

    sidecars: dict[Sidecar, None] = field(default_factory=dict[Sidecar, None])
    problems: list[Problem] = field(default_factory=list[Problem])
    notes: dict[str, None] = field(default_factory=dict[str, None])
    unknown: Counter[str] = field(default_factory=Counter[str])
    streams: dict[str, None] = field(default_factory=dict[str, None])
    open_files: list[str] = field(default_factory=list[str])
    sections: list[_Keys] = field(default_factory=list["_Keys"])
    mentions: int = 0

    def result(self, config: str | None) -> Discovery:
        notes = list(self.notes)
        for name, count in self.unknown.items():
            entries = "an entry" if count == 1 else f"{count:,} entries"
            notes.append(f"{entries} of the unknown type {name!r}: nothing is indexed for it")
        if self.streams:
            notes.append(
                f"compressed files and pipes have no byte offsets and get no .idx: "
                f"{len(self.streams):,}, such as {next(iter(self.streams))}"
            )
        return Discovery(
            sidecars=tuple(self.sidecars),
            problems=tuple(self.problems),
            notes=tuple(notes),
            blends=tuple(
                Blend(config=config, section=".".join(map(str, keys)) or None)
                for keys in self.sections
                if config is not None
            ),
        )

    def visit(self, tree: YamlTree, node: Any, keys: _Keys, root: str | None) -> None:
        """Look at a part of a config that may hold entries of a blend, or only parts that do."""
        if isinstance(node, list):
            for i, item in enumerate(cast("list[Any]", node)):
                self.visit(tree, item, (*keys, i), root)
        elif isinstance(node, dict):
            self._mapping(tree, cast("dict[Any, Any]", node), keys, root)

    def entries(self, tree: YamlTree, node: Any, keys: _Keys, root: str | None) -> None:
        """Look at the entries of a blend."""
        for i, item in enumerate(cast("list[Any]", node if isinstance(node, list) else [node])):
            at = (*keys, i) if isinstance(node, list) else keys
            entry = tree.resolve(item, at) if isinstance(item, str) else item
            if isinstance(entry, list):
                self.entries(tree, cast("list[Any]", entry), at, root)
            elif isinstance(entry, dict) and "type" in entry:
                # Whatever its type is: who reads the blend says what is wrong with it.
                self.mentions += 1
                self._entry(tree, cast("dict[Any, Any]", entry), at, root)
            elif isinstance(entry, dict):
                self._mapping(tree, cast("dict[Any, Any]", entry), at, root)
            else:
                self.notes[f"{_where(tree, at)} is no entry of a blend: {entry!r}"] = None

    def folder(self, path: str, kind: Kind, root: str | None) -> None:
        """Take the JSONL and tars directly inside a folder."""
        lines = (".jsonl", ".json") if kind == "nemo_tar" else (".jsonl",)
        try:
            inside = [posixpath.join(path, name) for name in names_in(path)]
        except PlayheadError as error:
            self._problem(path, kind, error)
            return
        except OSError as error:
            self._missing(path, kind, f"the folder cannot be read: {error.strerror}")
            return
        wanted: dict[str, Kind] = {}
        for item in inside:
            if is_archive(item) or plain_name(item).endswith(lines):
                wanted[item] = kind if is_archive(item) else "jsonl"
        if not wanted:
            self._missing(path, kind, f"the folder holds neither {lines[0]} nor .tar files")
        for item, its_kind in wanted.items():
            self._file(item, its_kind, root)

    def _mapping(self, tree: YamlTree, node: dict[Any, Any], keys: _Keys, root: str | None) -> None:
        if not _DATA_KEYS.isdisjoint(node) and "type" in node:
            self._entry(tree, node, keys, root)
            return
        root = _root(tree, node, keys, root)
        before = self.mentions
        # `input_cfg` wins over the paths beside it, which are often placeholders.
        if node.get("input_cfg") is not None:
            self._blend(tree, node, keys, root)
        else:
            self._data(tree, node, keys, root)
        in_entry = any(isinstance(key, int) for key in keys)
        if self.mentions > before and len(self.open_files) == 1 and not in_entry:
            self.sections.append(keys)
        for key, value in node.items():
            if key not in _DATA_KEYS:
                self.visit(tree, value, (*keys, key), root)

    def _entry(self, tree: YamlTree, node: dict[Any, Any], keys: _Keys, root: str | None) -> None:
        root = _root(tree, node, keys, root)
        kind = str(tree.resolve(node["type"], (*keys, "type")))
        if kind in _BY_KEYS:
            self._data(tree, node, keys, root)
            self._blend(tree, node, keys, root)
        elif kind == "share_gpt_webdataset":
            self._webdataset(tree, node, keys, root)
        elif declared(kind) is not None:
            # There is nothing to index by itself, and a pack to build.
            self.mentions += 1
        else:
            self.unknown[kind] += 1

    def _data(self, tree: YamlTree, node: dict[Any, Any], keys: _Keys, root: str | None) -> None:
        where = _where(tree, keys)
        value = {key: tree.resolve(node.get(key), (*keys, key)) for key in _DATA_KEYS}
        for path in _flatten(value["cuts_path"], where):
            self._file(path, "jsonl", root)
        self._shar(value["shar_path"], root, where)
        manifests = _flatten(value["manifest_filepath"], where)
        for path in manifests:
            self._file(path, "jsonl", root)
        for path in _flatten(value["tarred_audio_filepaths"], where) if manifests else ():
            self._file(path, "nemo_tar", root)
        for path in _flatten(value["paths"], where):
            if is_folder(path):
                self._archives(path, root)
            else:
                self._file(path, "nemo_tar" if is_archive(path) else "jsonl", root)

    def _archives(self, folder: str, root: str | None) -> None:
        try:
            tars = archives_under(folder)
        except PlayheadError as error:
            self._problem(folder, "nemo_tar", error)
            return
        for item in tars:
            self._file(item, "nemo_tar", root)

    def _blend(self, tree: YamlTree, node: dict[Any, Any], keys: _Keys, root: str | None) -> None:
        at = (*keys, "input_cfg")
        blend = node.get("input_cfg")
        if isinstance(blend, str):
            blend = tree.resolve(blend, at)
        if isinstance(blend, str) and blend not in _UNSET:
            other = tree.refer(blend)
            if other.path in self.open_files:
                chain = " → ".join([*self.open_files, other.path])
                raise ConfigError(f"a config names itself: {chain}", where=tree.path)
            self.open_files.append(other.path)
            if isinstance(other.content, list):
                self.entries(other, other.content, (), root)
            else:
                self.visit(other, other.content, (), root)
            self.open_files.pop()
        elif isinstance(blend, (list, dict)):
            self.entries(tree, blend, at, root)

    def _shar(self, spec: Any, root: str | None, where: str) -> None:
        if isinstance(spec, dict):
            for path in _flatten(list(cast("dict[Any, Any]", spec).values()), where):
                self._file(path, "wds_tar" if is_archive(path) else "jsonl", root)
        else:
            for path in _flatten(spec, where):
                self.folder(path, "wds_tar", root)

    def _webdataset(
        self, tree: YamlTree, node: dict[Any, Any], keys: _Keys, root: str | None
    ) -> None:
        if node.get("wds_sample_index_version", 1) != 1:
            self.notes["WebDataset indexes of version 2 are not supported: none is made"] = None
            return
        where = _where(tree, keys)
        for path in _flatten(tree.resolve(node.get("data_dir"), (*keys, "data_dir")), where):
            self._shards(path, root, where)

    def _shards(self, folder: str, root: str | None, where: str) -> None:
        try:
            for item in shards_of(folder, where):
                self._file(item, "wds_tar", root)
            self._lines_in(folder, root)
        except PlayheadError as error:
            self._problem(folder, "wds_tar", error)

    def _lines_in(self, folder: str, root: str | None) -> None:
        """Take the JSONL beside shards, where their list does not lie by itself."""
        try:
            names = names_in(folder)
        except NotSupportedError:
            # A web server does not say what else it has.
            return
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            if name.endswith(".jsonl"):
                self._file(posixpath.join(folder, name), "jsonl", root)

    def _file(self, path: str, kind: Kind, root: str | None) -> None:
        self.mentions += 1
        if not has_middle(path):
            self.streams[path] = None
        else:
            self.sidecars[place(path, kind, root)] = None

    def _missing(self, path: str, kind: Kind, reason: str) -> None:
        self._problem(path, kind, SourceNotFoundError(reason, fix="Correct the path"))

    def _problem(self, path: str, kind: Kind, error: PlayheadError) -> None:
        self.mentions += 1
        self.problems.append(Problem(path=path, kind=kind, error=error))


def _root(tree: YamlTree, node: dict[Any, Any], keys: _Keys, root: str | None) -> str | None:
    if "indexes_root" not in node:
        return root
    found = tree.resolve(node["indexes_root"], (*keys, "indexes_root"))
    if found is not None and not isinstance(found, str):
        raise ConfigError(
            f"`indexes_root` is {found!r}, and has to be a folder",
            where=_where(tree, (*keys, "indexes_root")),
            fix="Write a path, in quotes if it is a number",
        )
    return found


def _where(tree: YamlTree, keys: _Keys) -> str:
    return str(Spot(tree.path, keys))


def _flatten(spec: Any, where: str) -> list[str]:
    """Expand a path, a list of paths, or of `[path, weight]`, at any depth."""
    if spec is None or (isinstance(spec, str) and spec in _UNSET):
        return []
    if isinstance(spec, str):
        return expand(spec)
    if isinstance(spec, list):
        items = cast("list[Any]", spec)
        return [
            path
            for item in items
            if not isinstance(item, (int, float))
            for path in _flatten(item, where)
        ]
    raise ConfigError(
        f"the value {spec!r} is no path", where=where, fix="Give a path or a list of paths"
    )
