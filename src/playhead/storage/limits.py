"""How long one waits for a store, how often one asks, and how much at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final

from playhead.errors import ConfigError

__all__ = ["Limits", "limits"]


# Seconds of eleven days: what waits for a file or a lock counts milliseconds in 32 bits.
_MOST: Final = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What holds for every store that is not a disk."""

    deadline_seconds: float = 120.0
    """The most that one call may take, all tries and pauses included."""
    request_seconds: float = 30.0
    """The most that one try may take without a byte arriving."""
    tries: int = 16
    """The most tries of one request within the deadline."""
    concurrency: int = 64
    """Requests under way at once in one process."""
    unreached_seconds: float = 0.0
    """How long a call waits for a server to which it gets no connection, and for how long further
    calls then try it once; 0: as long as for a server that fails otherwise."""


@lru_cache(maxsize=1)
def limits() -> Limits:
    """Return the limits of this process, from `PLAYHEAD_STORAGE_` and the name of the field.

    Raises
    ------
    ConfigError
        If a variable is not a positive number, or one that no clock can count to.

    Examples
    --------
    >>> limits().tries
    16
    """
    defaults = Limits()
    given: dict[str, Any] = {}
    for field in fields(Limits):
        name = f"PLAYHEAD_STORAGE_{field.name.upper()}"
        text = os.environ.get(name)
        if text is None:
            continue
        default = getattr(defaults, field.name)
        try:
            value = type(default)(text)
        except ValueError:
            value = -1
        if value != default and not 0 < value <= _MOST:
            raise ConfigError(
                f"{name} is {text!r}, which is not a positive number up to {_MOST:,}",
                fix=f"Give a number, or leave it out for {default}",
            )
        given[field.name] = value
    return replace(defaults, **given)
