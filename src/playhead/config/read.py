"""From the keys of a section to checked options."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from playhead.config.keys import refuse_misspelt
from playhead.config.options import Options
from playhead.config.status import STATUS, Status, is_off
from playhead.errors import ConfigError, NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["read_options", "refuse_unbuilt"]

_FIELDS = {item.name: item for item in fields(Options)}
_POSITIVE = (
    "batch_duration",
    "batch_size",
    "cache_bytes",
    "input_sampling_rate",
    "micro_batches_per_step",
    "num_buckets",
    "prefetch_factor",
    "quadratic_duration",
    "sample_rate",
    "window_draws",
)
# Keys that belong to a section and say nothing to a loader.
_SILENT = frozenset({"use_lhotse", "data_blend_dir", "defaults"})


def read_options(
    section: Mapping[str, Any], *, where: str, strict: bool, notes: list[str]
) -> Options:
    """Check the keys of a section.

    Parameters
    ----------
    section
        Keys and values as the YAML has them.
    where
        File and place of the section, for messages.
    strict
        Take every unknown key for an error.
    notes
        Gets what people should be told once.

    Raises
    ------
    ConfigError
        When a value is impossible, a key looks misspelt, or an option is not built yet.
    """
    unknown = [str(key) for key in section if key not in _FIELDS and key not in _SILENT]
    refuse_misspelt(unknown, _FIELDS, where, strict=strict)
    if unknown:
        notes.append(f"keys of {where} that mean nothing here: {', '.join(unknown)}")
    values: dict[str, Any] = {}
    for name, value in section.items():
        if name in _FIELDS:
            values[name] = _converted(name, value, where)
    refuse_unbuilt(values, where)
    _note_the_meaningless(values, where, notes)
    if values.get("bucket_duration_bins") is not None or values.get("bucket_batch_size"):
        values["use_bucketing"] = True
    _check_together(values, where)
    return Options(**values)


def refuse_unbuilt(values: Mapping[str, Any], where: str) -> None:
    """Raise for the first option that is switched on and not built yet.

    Raises
    ------
    NotSupportedError
        Naming it.
    """
    for name, value in values.items():
        if STATUS.get(name) is Status.NOT_YET and not is_off(name, value):
            raise NotSupportedError(
                f"the option {name!r} is not supported yet",
                where=f"{where}.{name}",
                fix="Remove it, or switch it off",
            )


def _note_the_meaningless(values: Mapping[str, Any], where: str, notes: list[str]) -> None:
    given = [name for name in values if STATUS[name] is Status.MEANINGLESS]
    if given:
        notes.append(
            f"options of {where} that are accepted and have no meaning here: {', '.join(given)}"
        )
    if values.get("use_stateful_dataloader") is False:
        notes.append(
            "use_stateful_dataloader is false: a checkpoint will not be offered to frameworks that"
            " ask for one, though state_dict() works"
        )


def _converted(name: str, value: Any, where: str) -> Any:
    kind = str(_FIELDS[name].type)
    if kind == "Any":
        return _any(name, value, where)
    if value is None:
        if kind.endswith("| None"):
            return None
        raise _wrong(name, value, kind, where)
    base = kind.removesuffix(" | None")
    if base == "bool":
        if isinstance(value, bool):
            return value
        raise _wrong(name, value, "true or false", where)
    if base.startswith("Literal"):
        choices = re.findall(r'"(\w+)"|\'(\w+)\'', base)
        return _chosen(name, value, ["".join(choice) for choice in choices], where)
    if base == "str":
        if isinstance(value, str):
            return value
        raise _wrong(name, value, "a text", where)
    return _number(name, value, base, where)


def _number(name: str, value: Any, base: str, where: str) -> int | float:
    what = "a whole number" if base == "int" else "a number"
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise _wrong(name, value, what, where) from None
    if isinstance(value, bool) or math.isnan(number):
        raise _wrong(name, value, what, where)
    if base == "int":
        if not math.isfinite(number) or number != int(number):
            raise _wrong(name, value, what, where)
        number = int(value) if isinstance(value, int) else int(number)
    if name in _POSITIVE and not (number > 0 and math.isfinite(number)):
        raise _wrong(name, value, f"{what} above 0", where)
    if name == "num_workers" and number < 0:
        raise _wrong(name, value, "a whole number of at least 0", where)
    return number


def _any(name: str, value: Any, where: str) -> Any:
    if value is None:
        return None
    if name == "seed":
        return value if value in ("trng", "randomized") else _number(name, value, "int", where)
    if name == "bucket_duration_bins":
        return _bins(value, where)
    if name == "bucket_batch_size":
        return tuple(_positive(name, size, "int", where) for size in _list(name, value, where))
    if name == "channel_selector" and not isinstance(value, str):
        return _number(name, value, "int", where)
    return value


def _bins(value: Any, where: str) -> tuple[float, ...]:
    name = "bucket_duration_bins"
    edges = _list(name, value, where)
    if any(isinstance(edge, (list, tuple)) for edge in edges):
        raise NotSupportedError(
            "two-dimensional bucket_duration_bins are not supported yet",
            where=f"{where}.{name}",
            fix="Give a list of durations",
        )
    bins = tuple(float(_positive(name, edge, "float", where)) for edge in edges)
    if not bins or any(b <= a for a, b in pairwise(bins)):
        raise ConfigError(
            f"bucket_duration_bins is {list(bins)}, which is not ascending",
            where=f"{where}.{name}",
            fix="Sort the bins, and name each once",
        )
    return bins


def _positive(name: str, value: Any, base: str, where: str) -> int | float:
    number = _number(name, value, base, where)
    if not (number > 0 and math.isfinite(number)):
        raise _wrong(name, value, "numbers above 0", where)
    return number


def _list(name: str, value: Any, where: str) -> Sequence[Any]:
    if isinstance(value, (list, tuple)):
        return value
    raise _wrong(name, value, "a list", where)


def _chosen(name: str, value: Any, choices: Sequence[str], where: str) -> str:
    if value not in choices:
        raise _wrong(name, value, f"one of {', '.join(choices)}", where)
    return value


def _wrong(name: str, value: Any, wanted: str, where: str) -> ConfigError:
    return ConfigError(
        f"{name} is {value!r}, and has to be {wanted}", where=f"{where}.{name}", fix="Correct it"
    )


def _check_together(values: Mapping[str, Any], where: str) -> None:
    bins, sizes = values.get("bucket_duration_bins"), values.get("bucket_batch_size")
    if sizes and not bins:
        raise ConfigError(
            "bucket_batch_size is given without bucket_duration_bins",
            where=where,
            fix="Give one bin per size",
        )
    if sizes and bins and len(sizes) != len(bins):
        raise ConfigError(
            f"there are {len(sizes)} sizes in bucket_batch_size and {len(bins)} in"
            " bucket_duration_bins",
            where=where,
            fix="Give one size per bin",
        )
    if not sizes and not values.get("batch_size") and not values.get("batch_duration"):
        raise ConfigError(
            "nothing limits a batch",
            where=where,
            fix="Set batch_duration (seconds), batch_size, or bucket_duration_bins with"
            " bucket_batch_size",
        )
    low, high = values.get("min_duration"), values.get("max_duration")
    if low is not None and high is not None and low > high:
        raise ConfigError(
            f"min_duration {low} is above max_duration {high}", where=where, fix="Exchange them"
        )
