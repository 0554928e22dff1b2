"""Changes of a config as lines of a diff; the config itself is never written."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from playhead.blend.yaml_tree import load_tree
from playhead.config import Spot
from playhead.errors import PlayheadError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NOTHING", "diff", "spot_of", "written"]

_LONGEST = 160
_PLACE = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
NOTHING: Final = object()
"""What stands where nothing is written."""


def diff(
    spot: Spot, *, remove: tuple[str, ...] = (), add: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Return the change of one mapping of a config; none where a list stands.

    Parameters
    ----------
    spot
        The mapping.
    remove
        Keys to take out; those that it does not have are passed over.
    add
        Keys and values to put in; a key that it has gets the value.

    Examples
    --------
    >>> diff(Spot("blend.yaml", ("input_cfg", 3)), add={"type": "nemo_tarred"})
    ('@@ blend.yaml: input_cfg[3] @@', '+ type: nemo_tarred')
    """
    if isinstance(written(spot), list):
        # A list of entries has no room for keys.
        return ()
    lines = [f"@@ {spot} @@"]
    added = dict(add or {})
    for key in dict.fromkeys((*remove, *added)):
        old = written(spot.at(key))
        if old is not NOTHING:
            lines.append(f"- {key}: {_shown(old)}")
        if key in added:
            lines.append(f"+ {key}: {_shown(added[key])}")
    return tuple(lines)


def written(spot: Spot) -> Any:
    """Return what stands at a place of a config, as it is written there; `NOTHING` for nothing."""
    try:
        found = Path(spot.file).absolute().stat()
        node = _content(str(Path(spot.file).absolute()), found.st_mtime_ns, found.st_size)
        for key in spot.keys:
            node = node[key]
    except (PlayheadError, OSError, KeyError, IndexError, TypeError):
        return NOTHING
    return node


def spot_of(where: str | None) -> Spot | None:
    """Read a place of a config from a message; None where it is none.

    Examples
    --------
    >>> spot_of("blend.yaml: input_cfg[3].type")
    Spot(file='blend.yaml', keys=('input_cfg', 3, 'type'))
    """
    file, colon, place = (where or "").rpartition(": ")
    if not colon or " " in place:
        return None
    keys = [int(number) if number else name for number, name in _PLACE.findall(place)]
    return Spot(file, tuple(keys))


@lru_cache(maxsize=64)
def _content(file: str, mtime_ns: int, size: int) -> Any:
    del mtime_ns, size  # another file by then
    return load_tree(file, data_blend_dir=None).content


def _shown(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9, allow_unicode=True)
    text = text.removesuffix("\n").removesuffix("\n...")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
