"""The blends of the configs that a command is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import ConfigError
from playhead.user_code import load_module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend import Blend
    from playhead.index.found import Blend as NamedBlend
    from playhead.index.found import Discovery

__all__ = ["discover_configs", "import_all", "read_named", "sections"]


def import_all(names: Sequence[str]) -> None:
    """Import modules that register input types or prompts, as `--import` names them."""
    for name in names:
        load_module(name, "--import")


def sections(
    source: str, section: str | None, data_blend_dir: str | None
) -> Sequence[tuple[str | None, str | None]]:
    """What a section of a config consists of, with where indexes belong; files have none."""
    from playhead.index.arguments import is_config  # noqa: PLC0415  (loads NumPy)

    if section is None or not is_config(source):
        return [(section, None)]
    from playhead.blend.several import sections_of  # noqa: PLC0415  (loads what reads YAML)

    return sections_of(source, section, data_blend_dir=data_blend_dir)


def discover_configs(
    configs: Sequence[str],
    *,
    indexes_root: str | None,
    data_blend_dir: str | None,
    section: str | None,
) -> Discovery:
    """Find the data files and the blends of configs.

    Raises
    ------
    ConfigError
        If an argument is no config, or a config cannot be used or names no data.
    SourceNotFoundError
        If a file or folder is named that does not exist.
    """
    from playhead.index.arguments import discover, is_config  # noqa: PLC0415  (loads NumPy)
    from playhead.index.found import merge  # noqa: PLC0415

    for config in configs:
        if not is_config(config):
            raise ConfigError(
                "this is no config", where=config, fix="Give the .yaml or .yml file of a blend"
            )
    found = merge(
        discover(
            [config],
            indexes_root=root or indexes_root,
            data_blend_dir=data_blend_dir,
            section=name,
        )
        for config in configs
        for name, root in sections(config, section, data_blend_dir)
    )
    for problem in found.problems:
        raise ConfigError(f"{problem.path} is named, and cannot be used: {problem.error}")
    if not found.blends:
        raise ConfigError(
            "nothing here names data", where=", ".join(configs), fix="Add entries with data"
        )
    return found


def read_named(named: NamedBlend, data_blend_dir: str | None) -> Blend:
    """Read one of the blends that a search found.

    Raises
    ------
    PlayheadError
        If it cannot be read.
    """
    from playhead.blend.several import read_blends  # noqa: PLC0415

    read = read_blends(
        named.config,
        section=named.section,
        data_blend_dir=data_blend_dir,
        # A list of entries need not say how large a batch is before it is indexed.
        overrides={"batch_size": 1},
    )
    # A part of several is named by itself, with what it gets from them.
    return next(iter(read.parts.values()))
