"""From a config to a blend: section, options, leaves with their keys and shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from playhead.blend.entry import Remarks
from playhead.blend.interpolation import plain
from playhead.blend.leaves import check_joined, is_stream, leaves_of
from playhead.blend.mixture import Twig, spread
from playhead.blend.section import GROUP_OF_SETS, INPUTS, Section, find_section
from playhead.blend.tree import plant
from playhead.blend.weights import temperatures
from playhead.blend.yaml_loader import refuse_circles
from playhead.blend.yaml_tree import YamlTree, load_tree
from playhead.config import Options, Spot, read_options
from playhead.config.faults import collected
from playhead.errors import ConfigError, NotSupportedError, UnknownOptionError

if TYPE_CHECKING:
    from playhead.blend.leaf import Leaf
    from playhead.config.faults import Faults

__all__ = ["Blend", "open_config", "read_blend", "read_section"]

_STAND_ALONE = (*INPUTS, GROUP_OF_SETS, "multi_config")

_IN_MEMORY = "config"


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
    spots: tuple[Spot, ...]
    """For each leaf its entry."""


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
        Which section of a training config, by its dotted path or the end of that; its training
        section by default.
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
    tree, own_name = open_config(config, data_blend_dir)
    found = find_section(tree.content, section or own_name, Spot(tree.path))
    return read_section(tree, found, strict=strict, overrides=overrides or {})


def read_section(
    tree: YamlTree,
    found: Section,
    *,
    strict: bool,
    overrides: Mapping[str, Any],
    faults: Faults | None = None,
) -> Blend:
    """Read the blend of one section.

    Parameters
    ----------
    tree
        The config.
    found
        The section.
    strict, overrides
        As for `read_blend`.
    faults
        Gets what is refused, and the rest is read all the same; None raises the first.

    Raises
    ------
    ConfigError
        When the config cannot be used; the message names file and place. Of a config without any
        entries that is so with `faults` too.
    """
    where = Spot(tree.path, found.keys)
    notes: list[str] = []
    values = {**_body(tree, found), **overrides}
    _check_overrides(overrides)
    options = read_options(values, where=where, strict=strict, notes=notes, faults=faults)
    entries, way = _entries(options, where, notes)
    keys = () if isinstance(tree.content, list) else (*found.keys, *way)
    remarks = Remarks(strict=strict)
    mixture = plant(entries, tree, keys, options, remarks, faults=faults)
    exponents = [1.0] * mixture.depth
    with collected(faults):
        exponents = temperatures(
            options.reweight_temperature, mixture.depth, where.at("reweight_temperature")
        )
    twigs = list(spread(mixture, exponents, faults=faults))
    for twig, _ in twigs:
        with collected(faults):
            check_joined(twig)
    finite = True
    with collected(faults):
        finite = _is_finite(options, found, [twig for twig, _ in twigs])
    if finite and any(share * len(twigs) != 1 for _, share in twigs):
        notes.append(
            "a pass that ends takes every sample once: weights mean nothing to it, but for 0, which"
            " leaves data out"
        )
        twigs = [(twig, share) for twig, share in twigs if share]
    leaves = leaves_of(twigs, options, faults)
    return Blend(
        leaves=tuple(leaf for leaf, _ in leaves),
        options=options,
        section=found.name,
        finite=finite,
        notes=(*notes, *remarks.notes()),
        spots=tuple(spot for _, spot in leaves),
    )


def open_config(config: Any, data_blend_dir: str | None) -> tuple[YamlTree, str | None]:
    """Open a config; what it is called, where it is a part of a larger one, comes with it.

    Parameters
    ----------
    config, data_blend_dir
        As for `read_blend`.

    Raises
    ------
    ConfigError
        When it is no config.
    SourceNotFoundError
        When there is no such file.
    """
    if isinstance(config, (str, PathLike)):
        return load_tree(str(config), data_blend_dir=data_blend_dir), None
    name = None
    if type(config).__module__.startswith("omegaconf"):
        config, name = _from_omegaconf(config)
    refuse_circles(config, _IN_MEMORY)
    content = _plain(config)
    if isinstance(content, dict) and "type" in content:
        content = [content]
    if isinstance(content, dict) and not any(key in content for key in _STAND_ALONE):
        # It has sections of its own, and its name is that of none of them.
        name = None
    if not isinstance(content, (list, dict)):
        raise ConfigError(
            f"a config cannot be a {type(config).__name__}",
            fix="Give a YAML path, a mapping or a list of entries",
        )
    return YamlTree(_IN_MEMORY, content, data_blend_dir), name


def _from_omegaconf(config: Any) -> tuple[Any, str | None]:
    from omegaconf import OmegaConf  # noqa: PLC0415  (slow, and whoever has a node has it)
    from omegaconf.errors import OmegaConfBaseException  # noqa: PLC0415

    if config._get_parent() is None:  # noqa: SLF001  (OmegaConf has no public way)
        return OmegaConf.to_container(config, resolve=False), None
    # A part of a larger config resolves against the whole, which only OmegaConf still knows.
    name = str(config._get_full_key(None))  # noqa: SLF001  (same)
    try:
        return plain(config), name
    except OmegaConfBaseException as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"the config cannot be resolved: {reason}", where=name, fix="Set what it refers to"
        ) from None


def _plain(config: Any) -> Any:
    if isinstance(config, Mapping):
        items = cast("Mapping[Any, Any]", config).items()
        return {str(key): _plain(value) for key, value in items}
    if isinstance(config, Sequence) and not isinstance(config, (str, bytes)):
        return [_plain(value) for value in cast("Sequence[Any]", config)]
    if isinstance(config, PathLike):
        return str(cast("PathLike[str]", config))
    return config


def _body(tree: YamlTree, found: Section) -> dict[str, Any]:
    """The keys of a section, with those that its sibling data sets share."""
    if isinstance(tree.content, list):
        return {"input_cfg": tree.content}
    shared = {} if found.shared_keys is None else _resolved(tree, found.shared_keys)
    return {**shared, **_resolved(tree, found.keys)}


def _resolved(tree: YamlTree, keys: tuple[str, ...]) -> dict[str, Any]:
    section = tree.content
    for key in keys:
        section = section[key]
    # The entries of the blend are resolved one by one, where they stand.
    return {
        key: value if key in ("input_cfg", "datasets") else tree.resolve(value, (*keys, key))
        for key, value in section.items()
    }


def _check_overrides(overrides: Mapping[str, Any]) -> None:
    known = Options.__dataclass_fields__
    for name in overrides:
        if name not in known:
            read_options({name: None}, where=Spot("argument"), strict=True, notes=[])
            raise UnknownOptionError(f"there is no option `{name}`", fix="Remove the argument")


def _entries(options: Options, where: Spot, notes: list[str]) -> tuple[Any, tuple[str, ...]]:
    """The entries of a section and the way to them in it; a flat form is one entry."""
    forms = {
        "input_cfg": options.input_cfg,
        "shar_path": options.shar_path,
        "cuts_path": options.cuts_path,
        "manifest_filepath": options.manifest_filepath,
    }
    given = [name for name, value in forms.items() if value is not None]
    if not given:
        raise ConfigError(
            "no data are named",
            where=str(where),
            fix="Set input_cfg, manifest_filepath, cuts_path or shar_path",
        )
    if len(given) > 1:
        notes.append(f"{given[0]} of {where} wins over {' and '.join(given[1:])}")
    if given[0] == "input_cfg":
        return options.input_cfg, ("input_cfg",)
    if given[0] == "shar_path":
        return {"type": "lhotse_shar", "shar_path": options.shar_path}, ()
    if given[0] == "cuts_path":
        return {"type": "lhotse", "cuts_path": options.cuts_path}, ()
    entry = {
        "type": "nemo",
        "manifest_filepath": options.manifest_filepath,
        "tarred_audio_filepaths": options.tarred_audio_filepaths,
    }
    return entry, ()


def _is_finite(options: Options, section: Section, twigs: Sequence[Twig]) -> bool:
    if options.force_finite or options.metadata_only or section.is_evaluation:
        return True
    ending = [twig for twig in twigs if twig.branch.options["force_finite"]]
    if ending and len(ending) < len(twigs):
        raise NotSupportedError(
            "`force_finite` of a part of a blend is not supported yet",
            where=str(ending[0].where.at("force_finite")),
            fix="Set it for the whole section, or remove it",
        )
    if ending:
        return True
    alone = len(twigs) == 1 and not twigs[0].source.is_listed
    return alone and not is_stream(twigs[0])
