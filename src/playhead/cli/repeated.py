"""Failures of many files, of which most fail for one reason."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["without_repeats"]

_SHOWN: Final = 3


def without_repeats(failures: Iterable[tuple[str, str]]) -> list[str]:
    """Give the first three lines for each reason, and how many more there are.

    Parameters
    ----------
    failures
        The line for each and its reason, which is the same text for all that share it.

    Examples
    --------
    >>> without_repeats([(f"  {name}.tar: no space", "no space") for name in "abcde"])[2:]
    ['  c.tar: no space', '  … and 2 more, for the same reason']
    """
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for line, reason in failures:
        lines[reason].append(line)
    shown: list[str] = []
    for alike in lines.values():
        shown += alike[:_SHOWN]
        if len(alike) > _SHOWN:
            shown.append(f"  … and {len(alike) - _SHOWN:,} more, for the same reason")
    return shown
