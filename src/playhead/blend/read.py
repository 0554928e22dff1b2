"""From a config to a blend: section, options, leaves with their keys and shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.blend.leaf import Leaf, LeafOptions
from playhead.blend.section import Section, find_section
from playhead.blend.tree import Branch, depth_of, walk
from playhead.blend.weights import temperatures, whole_weight
from playhead.blend.yaml_tree import YamlTree, load_tree
from playhead.config import Options, read_options
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from playhead.blend.tree import Sprout

__all__ = ["Blend", "read_blend"]

_LONGEST_KEY = 24
_NAMING_LABELS = ("corpus", "language", "dataset")


@dataclass(frozen=True, kw_only=True, slots=True)
class Blend:
    """Leaves and options: all that a config says."""

    leaves: tuple[Leaf, ...]
    """The sources, in declared order."""
    options: Options
    """The options of the section."""
    section: str | None
    """What the section is called; None for a blend that stands alone."""
    finite: bool
    """Whether a pass over the data ends."""
    notes: tuple[str, ...]
    """What people should be told once."""


def read_blend(
    config: Any,
    *,
    section: str | None = None,
    strict: bool = False,
    overrides: Mapping[str, Any] | None = None,
    data_blend_dir: str | None = None,
) -> Blend:
    """Read a blend.

    Parameters
    ----------
    config
        A YAML path, a mapping, a list of entries or an OmegaConf node.
    section
        Which section of a training config; its training section by default.
    strict
        Take every unknown key for an error.
    overrides
        Options that win over the section's.
    data_blend_dir
        What `${data_blend_dir}` stands for; the config's own value by default.

    Raises
    ------
    ConfigError
        When the config cannot be used; the message names file and place.
    SourceNotFoundError
        When a YAML file does not exist.
    """
    tree = _tree(config, data_blend_dir)
    found = find_section(tree.content, section, tree.path)
    keys: tuple[str | int, ...] = found.keys
    if isinstance(tree.content, list):
        body: dict[str, Any] = {"input_cfg": tree.content}
        blend_keys: tuple[str | int, ...] = ()
    else:
        body = _below(tree.content, found.keys)
        blend_keys = (*keys, "input_cfg")
    values = {
        key: value if key == "input_cfg" else tree.resolve(value, (*keys, key))
        for key, value in body.items()
    }
    values.update(overrides or {})
    notes: list[str] = []
    where = f"{tree.path}: {found.name}" if found.keys else tree.path
    options = read_options(values, where=where, strict=strict, notes=notes)
    entries = _entries(options, where)
    if options.input_cfg is None:
        # The flat form has no entries of its own: its place is the section.
        blend_keys = ()
        tree = YamlTree(tree.path, entries, tree.data_blend_dir)
    levels = 1 if options.reweight_temperature is None else depth_of(entries, tree)
    branch = Branch(
        options=_cascade(options),
        tags={},
        labels={},
        share=1.0,
        files=(str(Path(tree.path).resolve()),),
        strict=strict,
        notes=notes,
    )
    exponents = temperatures(options.reweight_temperature, levels, where, notes)
    sprouts = list(walk(entries, tree, blend_keys, branch, exponents))
    leaves = tuple(_leaves(sprouts))
    return Blend(
        leaves=leaves,
        options=options,
        section=found.name,
        finite=_is_finite(options, found, sprouts),
        notes=tuple(notes),
    )


def _tree(config: Any, data_blend_dir: str | None) -> YamlTree:
    if isinstance(config, (str, PathLike)):
        tree = load_tree(str(config), data_blend_dir=data_blend_dir)
    else:
        tree = YamlTree("config", _plain(config), data_blend_dir)
    if tree.data_blend_dir is None and isinstance(tree.content, dict):
        own = tree.content.get("data_blend_dir")
        tree.data_blend_dir = own if isinstance(own, str) else None
    return tree


def _plain(config: Any) -> Any:
    if type(config).__module__.startswith("omegaconf"):
        from omegaconf import OmegaConf  # noqa: PLC0415  (slow, and whoever has a node has it)

        # A part of a larger config resolves against the whole, which only OmegaConf still knows.
        is_part = config._get_parent() is not None  # noqa: SLF001  (OmegaConf has no public way)
        return OmegaConf.to_container(config, resolve=is_part)
    if isinstance(config, Mapping):
        return {str(key): _plain(value) for key, value in config.items()}
    if isinstance(config, Sequence) and not isinstance(config, (str, bytes)):
        return [_plain(value) for value in config]
    if isinstance(config, PathLike):
        return str(config)
    if config is None or isinstance(config, (str, int, float, bool)):
        return config
    raise ConfigError(
        f"a config cannot hold a {type(config).__name__}",
        fix="Give a YAML path, mappings, lists, texts and numbers",
    )


def _below(content: Any, keys: Sequence[str]) -> dict[str, Any]:
    for key in keys:
        content = content[key]
    return content


def _entries(options: Options, where: str) -> Any:
    if options.input_cfg is not None:
        return options.input_cfg
    if options.cuts_path is not None:
        return [{"type": "lhotse", "cuts_path": options.cuts_path}]
    if options.manifest_filepath is not None:
        entry = {"type": "nemo", "manifest_filepath": options.manifest_filepath}
        if options.tarred_audio_filepaths is not None:
            entry["tarred_audio_filepaths"] = options.tarred_audio_filepaths
        return [entry]
    raise ConfigError(
        "no data are named", where=where, fix="Set input_cfg, manifest_filepath or cuts_path"
    )


def _cascade(options: Options) -> dict[str, Any]:
    return {
        "text_field": options.text_field,
        "lang_field": options.lang_field,
        "indexed": options.indexed,
        "indexes_root": options.indexes_root,
        "index_pack": options.index_pack,
        "index_pack_root": options.index_pack_root,
        "input_sampling_rate": options.input_sampling_rate,
        "channel_selector": options.channel_selector,
    }


def _leaves(sprouts: Sequence[Sprout]) -> list[Leaf]:
    seen: Counter[str] = Counter()
    names: dict[str, str] = {}
    leaves: list[Leaf] = []
    for sprout in sprouts:
        if sprout.name is not None and names.setdefault(sprout.name, sprout.where) != sprout.where:
            raise ConfigError(
                f"two entries have the name {sprout.name!r}: {names[sprout.name]} and another",
                where=sprout.where,
                fix="Give each its own: progress is kept under it",
            )
        base = sprout.source.identity if sprout.name is None else _short(str(sprout.name))
        seen[base] += 1
        suffix = "" if seen[base] == 1 else f"-{seen[base]}"
        labels = sprout.branch.labels
        shown = "/".join(labels[key] for key in _NAMING_LABELS if key in labels)
        leaves.append(
            Leaf(
                key=base + suffix,
                name=(sprout.name or shown or sprout.source.first) + suffix,
                type="nemo_tarred" if "tar" in sprout.source.paths else sprout.type,
                weight=whole_weight(sprout.branch.share),
                paths=sprout.source.paths,
                options=_leaf_options(sprout.branch.options, sprout.where),
                tags=sprout.branch.tags,
                labels=labels,
            )
        )
    return leaves


def _leaf_options(options: Mapping[str, Any], where: str) -> LeafOptions:
    pack, root = options["index_pack"], options["index_pack_root"]
    if pack is not None and not options["indexed"]:
        raise ConfigError(
            "index_pack is given and indexed is not true", where=where, fix="Add indexed: true"
        )
    return LeafOptions(
        text_field=options["text_field"],
        lang_field=options["lang_field"],
        indexed=options["indexed"],
        indexes_root=options["indexes_root"],
        index_pack=None if pack is None else str(Path(root or ".").absolute() / pack),
        input_sampling_rate=options["input_sampling_rate"],
        channel_selector=options["channel_selector"],
    )


def _short(name: str) -> str:
    if len(name) <= _LONGEST_KEY:
        return name
    return blake2b(name.encode(), digest_size=8).hexdigest()


def _is_finite(options: Options, section: Section, sprouts: Sequence[Sprout]) -> bool:
    if options.force_finite or section.is_evaluation:
        return True
    if len(sprouts) > 1:
        return False
    source = sprouts[0].source
    return "tar" not in source.paths and not source.is_listed
