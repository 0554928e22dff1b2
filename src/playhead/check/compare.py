"""The first thing in which two batches differ, and how."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from playhead.check.facts import Fact, Facts

__all__ = ["first_difference"]


def first_difference(one: Facts, other: Facts) -> tuple[str, str] | None:
    """Find where two batches differ first.

    Parameters
    ----------
    one, other
        What they hold, as `facts_of` takes it down.

    Returns
    -------
    tuple[str, str] or None
        The place, such as `batch["audio"][3]`, and how they differ there; None where all bits are
        the same. What cannot be compared does not count.

    Examples
    --------
    >>> from playhead.check.facts import facts_of
    >>> first_difference(facts_of({"n": [1, 2]}), facts_of({"n": [1, 3]}))
    ('batch["n"][1]', '2 became 3')
    """
    for path, before in one.items():
        after = other.get(path)
        if after is None:
            return path, f"{_shown(before)} is missing"
        if before.kind != after.kind:
            return path, f"{before.kind} became {after.kind}"
        if before.data != after.data:
            return _unlike(path, before, after)
    for path, added in other.items():
        if path not in one:
            return path, f"{_shown(added)} was added"
    return None


def _unlike(path: str, before: Fact, after: Fact) -> tuple[str, str]:
    elements = math.prod(before.shape or ())
    if before.shape and elements and len(before.data) == len(after.data):
        one, two = (
            np.frombuffer(fact.data, np.uint8).reshape(elements, -1) for fact in (before, after)
        )
        unlike = np.flatnonzero((one != two).any(axis=1))
        first = np.unravel_index(int(unlike[0]), before.shape)
        place = ", ".join(str(int(number)) for number in first)
        # The outermost number is the sample, which is what one looks for.
        if len(before.shape) > 1:
            path += f"[{int(first[0])}]"
        return path, f"{len(unlike)} of {elements} elements differ, the first at [{place}]"
    return path, f"{_shown(before)} became {_shown(after)}"


def _shown(fact: Fact) -> str:
    return fact.shown or fact.kind
