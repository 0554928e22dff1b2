"""One source as a config of NeMo names it: its name, share and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from playhead.blend.leaf import Leaf

__all__ = ["PATH_KEYS", "DeclaredSource", "first_text", "number_of"]

PATH_KEYS: Final = (
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
"""Keys of entries that name files, in the order in which they are asked for totals."""


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
    part: str = ""
    """The blend that it is of, among several (`multi_config`)."""
    leaf: Leaf | None = None
    """What the rest of Playhead makes of it; None where it makes nothing."""


def number_of(value: Any) -> float | None:
    """Return a value as a finite number; None where it is none.

    Examples
    --------
    >>> number_of("0.5"), number_of(2), number_of("much"), number_of("inf"), number_of(None)
    (0.5, 2.0, None, None, None)
    """
    try:
        number = None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and isfinite(number) else None


def first_text(spec: Any) -> str:
    """Return the first path of a pattern, a list, lists with weights, or paths by field.

    Examples
    --------
    >>> first_text([["a.jsonl", 0.5], ["b.jsonl", 0.5]]), first_text({"cuts": "c"}), first_text([])
    ('a.jsonl', 'c', '')
    """
    while isinstance(spec, (list, tuple, Mapping)) and spec:
        items = spec.values() if isinstance(spec, Mapping) else spec
        spec = next(iter(cast("Any", items)))
    return spec if isinstance(spec, str) else ""
