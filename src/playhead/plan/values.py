"""What the settings of a plan may be: checks of one value each, which name the option."""

from __future__ import annotations

from dataclasses import fields
from math import isfinite
from typing import Any

from playhead.errors import PlanError

__all__ = ["at_least", "changed_fields", "finite", "one_of", "text", "true_or_false"]

_NEVER_NONE = (
    "cache_bytes",
    "exclusions",
    "keep",
    "micro_batches_per_step",
    "num_classes",
    "text_overhead",
)


def changed_fields(value: Any, base: Any) -> dict[str, Any]:
    """Return the fields of a settings object that differ from another's, as JSON types."""
    changed: dict[str, Any] = {}
    for item in fields(value):
        mine = getattr(value, item.name)
        if mine != getattr(base, item.name):
            changed[item.name] = list(mine) if isinstance(mine, tuple) else mine
    return changed


def at_least(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number from `least` on; None means that there is none."""
    if value is None and name not in _NEVER_NONE:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise PlanError(
            f"the option {name} is {value}", fix=f"Give a whole number of at least {least}"
        )


def text(name: str, value: Any) -> None:
    """Refuse what is no text."""
    if not isinstance(value, str) and not (value is None and name not in _NEVER_NONE):
        raise PlanError(f"the option {name} is {value!r}", fix="Give a text")


def finite(name: str, value: Any) -> None:
    """Refuse what is no finite number; None means that there is none."""
    if value is None:
        return
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not isfinite(value):
        raise PlanError(f"the option {name} is {value}", fix="Give a number, or leave it out")


def true_or_false(name: str, value: Any) -> None:
    """Refuse what is neither."""
    if not isinstance(value, bool):
        raise PlanError(f"the option {name} is {value!r}", fix="Give true or false")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse what is not among the allowed values."""
    if value not in allowed:
        raise PlanError(f"the option {name} is {value!r}", fix=f"Use one of {', '.join(allowed)}")
