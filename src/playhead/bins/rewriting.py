"""A config with other bins: the keys of its section replaced, all else as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from playhead.blend.read import open_config
from playhead.blend.several import section_of
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["with_bins"]

# Made for the bins that were there before.
_OF_OLD_BINS = ("bucket_batch_size",)
_LISTS_OF_OLD_BINS = ("max_tps", "max_tpt")


def with_bins(
    config: str, keys: Mapping[str, Any], *, section: str | None, data_blend_dir: str | None
) -> str:
    """Return the YAML of a config with the keys of bins in its section.

    Comments are lost. What the config refers to stays as it is written, and so do relative paths.

    Parameters
    ----------
    config
        The config.
    keys
        The keys.
    section, data_blend_dir
        As for `read_blend`.

    Raises
    ------
    ConfigError
        When it is no config, has no such section, or no room for options.
    SourceNotFoundError
        When there is no such file.
    """
    tree, _ = open_config(config, data_blend_dir)
    if isinstance(tree.content, list):
        raise ConfigError(
            "a list of entries has no room for options",
            where=config,
            fix="Put it below `input_cfg:`",
        )
    node: Any = tree.content
    for key in section_of(tree, section).keys:
        node = node[key]
    for name in (*_OF_OLD_BINS, *(one for one in _LISTS_OF_OLD_BINS if _is_list(node, one))):
        node.pop(name, None)
    node.update(keys)
    return yaml.safe_dump(
        tree.content, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )


def _is_list(node: Any, name: str) -> bool:
    return isinstance(node.get(name), list)
