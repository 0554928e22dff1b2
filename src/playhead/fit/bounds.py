"""The buckets that people give: as the guides print them, or in a YAML file of `playhead bins`."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING, Any, cast

from playhead.blend.yaml_loader import parse_yaml
from playhead.errors import ConfigError, SourceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.fit.bucket import Bound

__all__ = ["BESIDE", "GivenBuckets", "read_buckets"]

_OPTION = "--buckets"
_EXAMPLE = "Give a list such as [5,10,20] or [[5,40],[5,80],[10,60]], or a file of `playhead bins`"
_KEY = "bucket_duration_bins"
# No config has a longer list: what is given is something else.
_MOST_TEXT = 1_000_000
_MOST_SHOWN = 60
_brief = Repr()
BESIDE = (
    "use_multimodal_sampling",
    "measure_total_length",
    "token_equivalent_duration",
    "bucketing_2d_strict_mode",
    "max_duration",
    "max_tokens",
    "max_tps",
    "max_tpt",
)
"""Options that bins were made with, and that a config has to have beside them."""
_SWITCHES = {"use_multimodal_sampling", "measure_total_length", "bucketing_2d_strict_mode"}
_EACH = {"max_tps", "max_tpt"}


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenBuckets:
    """Buckets, and what a config has to say beside them."""

    bounds: tuple[Bound, ...]
    """The buckets, ascending."""
    beside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options that belong to them, of `BESIDE`, as a config has them."""

    @property
    def have_own_limits(self) -> bool:
        """Whether an option gives each of them a limit of its own."""
        return any(isinstance(value, (list, tuple)) for value in self.beside.values())


def read_buckets(given: str) -> GivenBuckets:
    """Read buckets.

    Parameters
    ----------
    given
        A Python list as the guides print it, flat or of pairs; or the path of a YAML file that has
        the key `bucket_duration_bins`, or is such a list.

    Raises
    ------
    ConfigError
        If they are no ascending positive numbers, or no ascending pairs of them.
    SourceNotFoundError
        If the file does not exist.

    Examples
    --------
    >>> read_buckets("[5, 10.5]").bounds
    (5, 10.5)
    >>> read_buckets("[[5, 40], [5, 80]]").bounds
    ((5, 40), (5, 80))
    """
    text = given.strip()
    if text.endswith((".yaml", ".yml")):
        return _of_file(text)
    try:
        items: Any = ast.literal_eval(text) if len(text) <= _MOST_TEXT else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ConfigError(
            f"{_OPTION} is {_short(text)}, which is no list", where=_OPTION, fix=_EXAMPLE
        ) from None
    return GivenBuckets(bounds=_checked(items, _OPTION))


def _of_file(path: str) -> GivenBuckets:
    try:
        content = parse_yaml(Path(path).read_bytes(), path)
    except FileNotFoundError:
        raise SourceNotFoundError(
            "the file of buckets does not exist", where=path, fix="Correct the path"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"the file of buckets cannot be read: {error.strerror}",
            where=path,
            fix="Give a file that you may read",
        ) from None
    if not isinstance(content, dict):
        return GivenBuckets(bounds=_checked(content, path))
    options = cast("dict[str, Any]", content)
    if _KEY not in options:
        raise ConfigError(f"this file has no `{_KEY}`", where=path, fix=_EXAMPLE)
    bounds = _checked(options[_KEY], f"{path}: {_KEY}")
    beside = {name: options[name] for name in BESIDE if options.get(name) is not None}
    for name, value in beside.items():
        _check_beside(name, value, path)
        if isinstance(value, list) and len(cast("list[Any]", value)) != len(bounds):
            raise ConfigError(
                f"`{name}` has {len(cast('list[Any]', value))} numbers for {len(bounds)} buckets",
                where=f"{path}: {name}",
                fix="Give one for each bucket, or a single number",
            )
    return GivenBuckets(bounds=bounds, beside=beside)


def _check_beside(name: str, value: Any, path: str) -> None:
    """Refuse what a config would not take, before a search whose profile repeats it."""
    if name in _SWITCHES:
        is_right, what = isinstance(value, bool), "neither true nor false"
    elif isinstance(value, list) and name in _EACH:
        is_right, what = all(map(_is_amount, cast("list[Any]", value))), "not all numbers above 0"
    else:
        is_right, what = _is_amount(value), "no number above 0"
    if not is_right:
        raise ConfigError(
            f"`{name}` is {_short(value)}: {what}", where=f"{path}: {name}", fix="Correct the file"
        )


def _checked(items: Any, where: str) -> tuple[Bound, ...]:
    if not isinstance(items, (list, tuple)):
        raise ConfigError(
            f"buckets are {_short(items)}, which is no list", where=where, fix=_EXAMPLE
        )
    bounds = list(cast("list[Any]", items))
    if not bounds:
        raise ConfigError("there are no buckets", where=where, fix=_EXAMPLE)
    are_pairs = [isinstance(item, (list, tuple)) for item in bounds]
    if any(are_pairs) and not all(are_pairs):
        raise ConfigError("buckets are numbers and pairs at once", where=where, fix=_EXAMPLE)
    read = [
        _pair(cast("list[Any]", item), where) if is_pair else _number(item, where)
        for item, is_pair in zip(bounds, are_pairs, strict=True)
    ]
    for before, after in pairwise(read):
        if not _is_below(before, after):
            raise ConfigError(
                f"the bucket {_shown(after)} comes after {_shown(before)}",
                where=where,
                fix="Sort the buckets, and name each once",
            )
    return tuple(read)


def _pair(item: list[Any], where: str) -> tuple[float, float]:
    if len(item) != 2:
        raise ConfigError(
            f"the bucket {_short(item)} has {len(item)} numbers", where=where, fix=_EXAMPLE
        )
    return _number(item[0], where), _number(item[1], where)


def _number(item: Any, where: str) -> float:
    if not _is_amount(item):
        raise ConfigError(
            f"the bucket {_short(item)} is no number above 0", where=where, fix=_EXAMPLE
        )
    return item


def _is_amount(item: Any) -> bool:
    is_number = isinstance(item, (int, float)) and not isinstance(item, bool)
    return is_number and 0 < item <= sys.float_info.max


def _is_below(before: Bound, after: Bound) -> bool:
    if isinstance(before, tuple) or isinstance(after, tuple):
        return cast("Any", before) < cast("Any", after)
    return before < after


def _shown(bound: Bound) -> str:
    return str(list(bound)) if isinstance(bound, tuple) else str(bound)


def _short(value: Any) -> str:
    # What a few aliases of YAML stand for may be too large to be written out.
    text = repr(value) if isinstance(value, (str, int, float)) else _brief.repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
