"""From the keys of a section to checked options."""

from __future__ import annotations

from itertools import pairwise
from math import isfinite, isinf
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from playhead.config.faults import collected
from playhead.config.keys import refuse_misspelt
from playhead.config.options import Options
from playhead.config.status import STATUS, Status
from playhead.config.values import MISSING, convert
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.config.faults import Faults
    from playhead.config.spot import Spot

__all__ = ["convert_option", "read_options", "without_missing"]

_HINTS = get_type_hints(Options)
_KNOWN = frozenset(_HINTS)
# Keys that belong to a section and say nothing to a loader.
_SILENT = frozenset({"use_lhotse", "data_blend_dir", "datasets", "defaults", "name"})
_LEAST = {
    "bucket_batch_size": 1,
    "cache_bytes": 1,
    "batch_size": 1,
    "batch_tokens": 1,
    "cut_text_into_windows_tokens": 1,
    "input_sampling_rate": 1,
    "micro_batches_per_step": 1,
    "num_buckets": 1,
    "num_workers": 0,
    "prefetch_factor": 1,
    "reweight_temperature": 0,
    "pad_min_duration": 0,
    "sample_rate": 1,
    "slice_length": 1,
    "window_draws": 1,
}
_ABOVE_ZERO = frozenset(
    {
        "batch_duration",
        "bucket_duration_bins",
        "cut_into_windows_duration",
        "cut_into_windows_hop",
        "quadratic_duration",
        "quadratic_factor",
        "token_equivalent_duration",
        "truncate_duration",
    }
)
# What the plan's arithmetic in whole microseconds can hold, and a machine's memory can.
_MOST_SECONDS = 1_000_000_000
_SECONDS = {
    "batch_duration": 0.001,
    "bucket_duration_bins": 0.000001,
    "cut_into_windows_duration": 0.001,
    "cut_into_windows_hop": 0.001,
    "max_duration": 0.0,
    "quadratic_duration": 0.001,
    "token_equivalent_duration": 0.000001,
    "truncate_duration": 0.001,
}
_MOST = {
    "batch_size": 10_000_000,
    "batch_tokens": 10_000_000_000,
    "bucket_batch_size": 10_000_000,
    "micro_batches_per_step": 131_072,
    "min_duration": _MOST_SECONDS,
    "num_buckets": 10_000,
    "num_workers": 4096,
    "pad_min_duration": 100_000,
    "prefetch_factor": 4096,
    "window_draws": 100_000_000,
}
# Least seconds and tokens of a two-dimensional bin.
_PAIR = (0.000001, 1)
_MAY_BE_INFINITE = frozenset({"max_duration"})
_DRAWN_SEEDS = ("trng", "randomized")


def read_options(
    section: Mapping[str, Any],
    *,
    where: Spot,
    strict: bool,
    notes: list[str],
    faults: Faults | None = None,
) -> Options:
    """Check the keys of a section.

    Parameters
    ----------
    section
        Keys and values as the YAML has them.
    where
        The section, for messages.
    strict
        Take every unknown key for an error.
    notes
        Gets what people should be told once.
    faults
        Gets what is refused, and the rest is read all the same; None raises the first.

    Raises
    ------
    ConfigError
        When a value is impossible or a key looks misspelt.
    """
    given = without_missing(section)
    unknown = [key for key in given if key not in _KNOWN and key not in _SILENT]
    idle: list[str] = []
    for keys in [unknown] if faults is None else [[key] for key in unknown]:
        with collected(faults):
            refuse_misspelt(keys, _KNOWN, where, strict=strict)
            idle += keys
    if idle:
        notes.append(f"keys of {where} that mean nothing here: {', '.join(idle)}")
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in _KNOWN:
            with collected(faults):
                values[name] = convert_option(name, value, where)
    if values.get("bucket_duration_bins") is not None or values.get("bucket_batch_size"):
        values["use_bucketing"] = True
    for check in (_check_bins, _check_sizes, _check_limits, _check_packed):
        with collected(faults):
            check(values, where)
    _note(values, where, notes)
    return Options(**values)


def without_missing(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping without the values that were left for somebody else to fill in."""
    return {key: value for key, value in mapping.items() if value != MISSING}


def convert_option(name: str, value: Any, where: Spot) -> Any:
    """Check the value of one option and give it the option's type.

    Raises
    ------
    ConfigError
        When the value is impossible.
    """
    try:
        converted = convert(value, _HINTS[name])
    except ValueError as error:
        raise _impossible(name, value, str(error), where) from None
    for item in cast(
        "tuple[Any, ...]", converted if isinstance(converted, tuple) else (converted,)
    ):
        wanted = _wanted(name, item)
        if wanted is not None:
            raise _impossible(name, value, wanted, where)
    return converted


def _wanted(name: str, value: Any) -> str | None:
    """What a value of the right type should have been; None where it is possible."""
    if name in ("seed", "shard_seed"):
        if isinstance(value, str) and value not in _DRAWN_SEEDS:
            return f"a whole number, {' or '.join(_DRAWN_SEEDS)}"
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        return _wanted_number(name, value)
    return None


def _wanted_number(name: str, value: float) -> str | None:
    if name in _ABOVE_ZERO and not (value > 0 and isfinite(value)):
        return "a number above 0"
    if name in ("min_duration", "max_duration") and isinf(value):
        return None if name in _MAY_BE_INFINITE and value > 0 else "a finite number"
    if name in _SECONDS and not _SECONDS[name] <= value <= _MOST_SECONDS:
        return f"from {_SECONDS[name]} to {_MOST_SECONDS:,} seconds"
    if name in _LEAST and not (value >= _LEAST[name] and isfinite(value)):
        return f"at least {_LEAST[name]}"
    return f"at most {_MOST[name]:,}" if value > _MOST.get(name, value) else None


def _impossible(name: str, value: Any, wanted: str, where: Spot) -> ConfigError:
    shown = "null" if value is None else repr(value)
    return ConfigError(
        f"`{name}` is {shown}, and has to be {wanted}",
        where=str(where.at(name)),
        fix=f"Correct it, or leave it out for its default, {_default(name)}",
    )


def _default(name: str) -> str:
    default = Options.__dataclass_fields__[name].default
    if default is None:
        return "none"
    return str(default).lower() if isinstance(default, bool) else str(default)


def _check_bins(values: Mapping[str, Any], where: Spot) -> None:
    bins = values.get("bucket_duration_bins")
    if bins is not None and any(isinstance(item, tuple) for item in bins):
        _check_pairs(bins, where)
    if bins is not None and (not bins or any(b <= a for a, b in pairwise(bins))):
        raise ConfigError(
            f"`bucket_duration_bins` is {list(bins)}, which is not ascending",
            where=str(where.at("bucket_duration_bins")),
            fix="Sort the bins, and name each once",
        )


def _check_sizes(values: Mapping[str, Any], where: Spot) -> None:
    bins, sizes = values.get("bucket_duration_bins"), values.get("bucket_batch_size")
    if sizes is not None and bins is None:
        raise ConfigError(
            "`bucket_batch_size` is given without `bucket_duration_bins`",
            where=str(where.at("bucket_batch_size")),
            fix="Give one bin per size",
        )
    if sizes is not None and bins is not None and len(sizes) != len(bins):
        raise ConfigError(
            f"`bucket_batch_size` has {len(sizes)} numbers and `bucket_duration_bins` {len(bins)}",
            where=str(where.at("bucket_batch_size")),
            fix="Give one size per bin",
        )
    if sizes is not None and any(b > a for a, b in pairwise(sizes)):
        raise ConfigError(
            f"`bucket_batch_size` is {list(sizes)}, which grows with the length",
            where=str(where.at("bucket_batch_size")),
            fix="Give longer bins the same size or a smaller one",
        )


def _check_limits(values: Mapping[str, Any], where: Spot) -> None:
    for least, most in (
        ("min_duration", "max_duration"),
        ("min_tokens", "max_tokens"),
        ("min_tpt", "max_tpt"),
    ):
        low, high = values.get(least), values.get(most)
        if low is not None and isinstance(high, (int, float)) and low > high:
            raise ConfigError(
                f"`{least}` {low} is above `{most}` {high}: nothing would be kept",
                where=str(where.at(least)),
                fix="Exchange or widen them",
            )


def _check_packed(values: Mapping[str, Any], where: Spot) -> None:
    if values.get("use_packed_sequence_sampling") and not (
        values.get("use_multimodal_sampling") and values.get("batch_tokens")
    ):
        raise ConfigError(
            "`use_packed_sequence_sampling` packs samples by their tokens, and nothing measures or"
            " limits these",
            where=str(where.at("use_packed_sequence_sampling")),
            fix="Set use_multimodal_sampling: true and batch_tokens",
        )


def _check_pairs(bins: tuple[Any, ...], where: Spot) -> None:
    for item in bins:
        if len(item) != len(_PAIR) or not all(
            least <= number <= _MOST_SECONDS for number, least in zip(item, _PAIR, strict=True)
        ):
            raise ConfigError(
                f"`bucket_duration_bins` has the bin {list(item)}",
                where=str(where.at("bucket_duration_bins")),
                fix="Give each bin as [length, tokens], both above 0",
            )


_OF_TOKENS = ("batch_tokens", "quadratic_factor", "cut_text_into_windows_tokens")


def _idle(values: Mapping[str, Any]) -> list[str]:
    """Options that are given and have no effect without another, each in a sentence."""
    said: list[str] = []
    for name in ("max_tps", "max_tpt"):
        if not isinstance(values.get(name), tuple):
            continue
        if not values.get("bucket_batch_size"):
            said.append(f"{name} is a list, which has no effect without bucket_batch_size")
        elif values.get("bucketing_2d_strict_mode") is False:
            said.append(f"{name} is a list, which has no effect in lenient bins")
    if values.get("use_multimodal_sampling"):
        idle, needed = ("batch_duration", "quadratic_duration"), "with use_multimodal_sampling"
    else:
        idle, needed = _OF_TOKENS, "without use_multimodal_sampling"
    given = [name for name in idle if values.get(name) not in (None, False, -1, float("inf"))]
    if given:
        said.append(f"{' and '.join(given)}: no effect {needed}")
    said += _without(values)
    hop, window = values.get("cut_into_windows_hop"), values.get("cut_into_windows_duration")
    if hop is not None and window is None:
        said.append("cut_into_windows_hop has no effect without cut_into_windows_duration")
    elif hop is not None and window is not None and hop > window:
        said.append(f"the hop of {hop:g} s leaves out audio between windows of {window:g} s")
    if values.get("rir_path") is not None and not values.get("rir_enabled"):
        said.append("rir_path has no effect without rir_enabled")
    return said


def _without(values: Mapping[str, Any]) -> list[str]:
    """Options of lengths in tokens and of buckets, where there is no such thing."""
    limits = ("min_tokens", "max_tokens", "min_tpt", "max_tpt")
    limited = any(values.get(name) not in (None, -1, float("inf")) for name in limits)
    usual: dict[str, dict[str, Any]] = {}
    if not (values.get("use_multimodal_sampling") or limited):
        of_tokens = {"audio_token_estimator": None, "measure_total_length": True}
        usual["as nothing is measured in tokens"] = of_tokens
    if values.get("use_packed_sequence_sampling") and not values.get("bucket_batch_size"):
        of_buckets = {"bucket_duration_bins": None, "num_buckets": None}
        usual["with use_packed_sequence_sampling, unless bucket_batch_size is given"] = of_buckets
    said: list[str] = []
    for why, options in usual.items():
        given = [name for name, value in options.items() if values.get(name, value) != value]
        if given:
            said.append(f"{' and '.join(given)}: no effect {why}")
    return said


def _note(values: Mapping[str, Any], where: Spot, notes: list[str]) -> None:
    given = [name for name in values if STATUS[name] is Status.MEANINGLESS]
    if given:
        notes.append(f"options of {where} that have no meaning here: {', '.join(given)}")
    if values.get("use_stateful_dataloader") is False:
        notes.append(
            "use_stateful_dataloader is false: a checkpoint will not be offered to frameworks that"
            " ask for one, though state_dict() works"
        )
    notes.extend(_idle(values))
    bins, high = values.get("bucket_duration_bins"), values.get("max_duration")
    longest = bins[-1] if bins else None
    longest = longest[0] if isinstance(longest, tuple) else longest
    in_tokens = values.get("use_multimodal_sampling")
    unit, high = ("tokens", None) if in_tokens else ("s", high)
    if longest and values.get("bucket_batch_size") and (high is None or high > longest):
        notes.append(
            f"samples longer than the last of bucket_duration_bins, {longest:g} {unit}, are"
            " dropped, for bucket_batch_size gives them no size"
        )
