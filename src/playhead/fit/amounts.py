"""Amounts of memory as people write and read them."""

from __future__ import annotations

import re

from playhead.errors import ConfigError

__all__ = ["read_amount", "shown_amount"]

_UNITS = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kib": 1 << 10,
    "m": 1 << 20,
    "mib": 1 << 20,
    "g": 1 << 30,
    "gib": 1 << 30,
    "t": 1 << 40,
    "tib": 1 << 40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_STEP = 1024
# Above it no memory is, and below it no model.
_MOST = 1 << 60


def read_amount(text: str, where: str) -> int:
    """Read an amount of memory.

    Parameters
    ----------
    text
        A number and a unit: `80GiB`, `512 MiB`, `24GB` (powers of ten), `80G` (as `80GiB`).
    where
        Who says it, for messages.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    ConfigError
        If it is no amount of at least a byte.

    Examples
    --------
    >>> read_amount("1.5GiB", "--memory"), read_amount("24GB", "--memory")
    (1610612736, 24000000000)
    """
    found = _AMOUNT.fullmatch(text.strip().lower())
    unit = None if found is None else _UNITS.get(found[2])
    amount = 0.0 if found is None or unit is None else float(found[1]) * unit
    if not 1 <= amount <= _MOST:
        raise ConfigError(
            f"{text!r} is no amount of memory", where=where, fix="Write it as 80GiB or 512MiB"
        )
    return int(amount)


def shown_amount(amount: int) -> str:
    """Return an amount of memory for people.

    Parameters
    ----------
    amount
        Bytes.

    Examples
    --------
    >>> shown_amount(3 << 29), shown_amount(700)
    ('1.50 GiB', '700 B')
    """
    if amount < _STEP:
        return f"{amount} B"
    value, units = float(amount), iter(("KiB", "MiB", "GiB", "TiB"))
    unit = "B"
    # What is rounded to 1024.00 is 1.00 of the next unit.
    while round(value, 2) >= _STEP and (larger := next(units, None)) is not None:
        value, unit = value / _STEP, larger
    return f"{value:.2f} {unit}"
