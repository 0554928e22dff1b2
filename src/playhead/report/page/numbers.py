"""Numbers as people read them, with their units."""

from __future__ import annotations

import math

__all__ = [
    "count",
    "counted",
    "exact",
    "hours",
    "length",
    "number",
    "precise",
    "ratio",
    "share",
    "span",
    "volume",
]

NOTHING = "-"
_SECONDS = ((86400, "d"), (3600, "h"), (60, "min"))
_BYTES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def number(value: float | None, *, digits: int = 3) -> str:
    """Write a number with some digits that matter, and all that are before the point.

    Examples
    --------
    >>> number(29.97, digits=4), number(123.456, digits=4)
    ('29.97', '123.5')
    >>> number(1234.5), number(12.345), number(0.01234), number(3.0), number(None)
    ('1,234', '12.3', '0.0123', '3', '-')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    decimals = min(8, max(0, digits - 1 - math.floor(math.log10(abs(value)))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: int | None) -> str:
    """Write how many there are.

    Examples
    --------
    >>> count(12345), count(None)
    ('12,345', '-')
    """
    return NOTHING if value is None else f"{value:,}"


def counted(many: int, one: str, several: str | None = None) -> str:
    """Write how many of something there are.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(2, "batch", "batches")
    ('1 row', '2,000 rows', '2 batches')
    """
    return f"{many:,} {one if many == 1 else several or one + 's'}"


def share(value: float | None) -> str:
    """Write a share as percent.

    Examples
    --------
    >>> share(0.5), share(0.01234), share(0.00001), share(0.0), share(1.0), share(0.99999)
    ('50 %', '1.23 %', '<0.01 %', '0 %', '100 %', '>99.9 %')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    percent = 100 * value
    if 0 < percent < 0.01:
        return "<0.01 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{number(float(f'{percent:.1f}') if percent >= 10 else percent)} %"


def exact(value: float | None) -> str | None:
    """Write a number so that a program reads the very same one; None for none.

    Examples
    --------
    >>> exact(0.1), exact(12), exact(None)
    ('0.1', '12', None)
    """
    if value is None:
        return None
    return repr(float(value)) if isinstance(value, float) else str(int(value))


def hours(value: float | None) -> str:
    """Write hours of audio.

    Examples
    --------
    >>> hours(1234.5), hours(12.345), hours(0.5), hours(None)
    ('1,234 h', '12.3 h', '30 min', '-')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    return span(3600 * value) if 0 < value < 1 else f"{number(value)} h"


def precise(value: float | None) -> str:
    """Write a length without its unit, with four digits that matter.

    Examples
    --------
    >>> precise(29.97)
    '29.97'
    """
    return number(value, digits=4)


def length(value: float | None, unit: str) -> str:
    """Write a length of samples.

    Examples
    --------
    >>> length(12.346, "seconds"), length(120.0, "tokens")
    ('12.35 s', '120 tokens')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{precise(value)} {'s' if unit == 'seconds' else unit}"


def ratio(value: float) -> str:
    """Write how many times the mean something is.

    Examples
    --------
    >>> ratio(1.00349), ratio(12.0)
    ('1.003', '12')
    """
    return f"{value:.3f}" if value < 10 else number(value)


def span(seconds: float | None) -> str:
    """Write how long something takes, in its two largest units.

    Examples
    --------
    >>> span(90061), span(3600), span(59.96), span(2.34), span(0.002), span(None)
    ('1 d 1 h', '1 h', '1 min', '2.34 s', '0.002 s', '-')
    """
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 59.95:
        return f"{number(seconds)} s"
    smaller, small = 1, "s"
    for size, name in reversed(_SECONDS):
        if round(seconds / smaller) * smaller < _next(size):
            whole, rest = divmod(round(seconds / smaller) * smaller, size)
            return f"{whole:,} {name}" + (f" {rest // smaller} {small}" if rest else "")
        smaller, small = size, name
    raise AssertionError(seconds)


def _next(size: int) -> float:
    larger = [one for one, _ in _SECONDS if one > size]
    return min(larger, default=math.inf)


def volume(value: float | None) -> str:
    """Write bytes.

    Examples
    --------
    >>> volume(1234567), volume(12.0), volume(None)
    ('1.23 MB', '12 B', '-')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    for size, name in _BYTES:
        if value >= size:
            return f"{number(value / size)} {name}"
    return f"{number(value)} B"
