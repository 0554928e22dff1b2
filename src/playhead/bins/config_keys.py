"""Bins as the keys of a config."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.bins.result import Bins
    from playhead.config import Options

__all__ = ["keys_of", "lines_of", "yaml_of"]


def keys_of(bins: Bins, options: Options) -> dict[str, Any]:
    """Return what a config says to be batched by bins.

    Parameters
    ----------
    bins
        The bins.
    options
        The options that lengths depend on.
    """
    bounds = [list(bound) if isinstance(bound, tuple) else bound for bound in bins.bounds]
    keys: dict[str, Any] = {
        "use_bucketing": True,
        "num_buckets": len(bounds),
        "bucket_duration_bins": bounds,
    }
    if not bins.in_tokens:
        keys["max_duration"] = bins.longest
    else:
        keys["max_tokens"] = int(bins.longest)
        keys["use_multimodal_sampling"] = True
        keys["measure_total_length"] = options.measure_total_length
        if options.token_equivalent_duration is not None:
            keys["token_equivalent_duration"] = options.token_equivalent_duration
    if bins.ratios is not None:
        keys["max_tpt" if bins.in_tokens else "max_tps"] = list(bins.ratios)
    if isinstance(bins.bounds[0], tuple) and not options.bucketing_2d_strict_mode:
        # In the strict mode, which is the default, a sample may find none of these bins.
        keys["bucketing_2d_strict_mode"] = False
    return keys


def lines_of(keys: Mapping[str, Any]) -> list[str]:
    """Return the keys as `key=value`, as overrides on a command line take them.

    Examples
    --------
    >>> lines_of({"use_bucketing": True, "bucket_duration_bins": [[2.5, 9], [4.0, 12]]})
    ['use_bucketing=1', 'bucket_duration_bins=[[2.5,9],[4.0,12]]']
    """
    return [f"{key}={_text(value, ',')}" for key, value in keys.items()]


def yaml_of(keys: Mapping[str, Any], header: Sequence[str] = ()) -> str:
    """Return the keys as YAML, below comments.

    Examples
    --------
    >>> print(yaml_of({"use_bucketing": True, "max_duration": 4.0}, ["Of train.yaml"]), end="")
    # Of train.yaml
    use_bucketing: true
    max_duration: 4.0
    """
    said = [f"# {line}" for text in header for line in text.splitlines()]
    lines = [f"{key}: {_yaml(value)}" for key, value in keys.items()]
    return "\n".join([*said, *lines]) + "\n"


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else _text(value, ", ")


def _text(value: Any, separator: str) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        return f"[{separator.join(_text(item, separator) for item in value)}]"  # pyright: ignore[reportUnknownVariableType]  (any list)
    # Never with an exponent, which some readers of YAML take for a text.
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) else str(value)
