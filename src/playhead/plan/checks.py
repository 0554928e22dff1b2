"""Blends from which nothing could be trained, named before a plan is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import PlanError
from playhead.plan.effort import longest_allowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.plan.columns import LeafColumns, LeafFacts
    from playhead.plan.settings import Batching, Shape

__all__ = ["check_blend"]


def check_blend(leaves: Sequence[LeafColumns], shape: Shape, batching: Batching) -> None:
    """Refuse blends that give nothing, or less than they promise.

    Parameters
    ----------
    leaves
        The leaves of the blend.
    shape, batching
        The settings.

    Raises
    ------
    PlanError
        When there is no leaf, two have one key, no weight is positive, a leaf with a weight has no
        row or no row that is kept, a finite pass has no row at all, or `oversize` is `error` and a
        sample is above the limit.
    """
    if not leaves:
        raise PlanError("the blend has no leaves", fix="Name at least one dataset")
    names: dict[str, str] = {}
    for leaf in leaves:
        if leaf.key in names:
            raise PlanError(
                f"the leaves {names[leaf.key]!r} and {leaf.name!r} have the same key {leaf.key!r}",
                fix="Give them different names",
            )
        names[leaf.key] = leaf.name
        if leaf.weight < 0:
            raise PlanError(
                f"leaf {leaf.name!r} has the weight {leaf.weight}", fix="Give it 0 or more"
            )
    if not shape.finite and not any(leaf.weight for leaf in leaves):
        raise PlanError("every weight of the blend is 0", fix="Give one leaf a positive weight")
    drawn = [leaf for leaf in leaves if shape.finite or leaf.weight]
    kept = [_check_leaf(leaf, shape, batching) for leaf in drawn]
    if shape.finite and not any(kept):
        raise PlanError(
            "no row of any leaf is kept: "
            + "; ".join(_why(leaf, shape, batching) for leaf in drawn[:5]),
            fix="Add data, or widen the limits",
        )


def _check_leaf(leaf: LeafColumns, shape: Shape, batching: Batching) -> bool:
    """Whether any row of a leaf is kept."""
    low, high = shape.min_duration_us, shape.max_duration_us
    facts = leaf.facts(low, high)
    _check_longest(leaf, facts, batching)
    kept = facts.accepted > 0
    cap = _dropped_above(batching)
    if kept and cap is not None and facts.longest_us > cap:
        kept = leaf.facts(low, cap).accepted > 0
    if not kept and not shape.finite:
        raise PlanError(
            f"leaf {leaf.name!r} has a weight and no row to draw: {_why(leaf, shape, batching)}",
            where=leaf.key,
            fix="Widen that limit, or give the leaf the weight 0",
        )
    return kept


def _dropped_above(batching: Batching) -> int | None:
    """Return the length (µs) above which batching drops samples."""
    caps: list[int] = []
    if batching.sizes and batching.bins_us:
        caps.append(batching.bins_us[-1])
    longest = longest_allowed(batching)
    if batching.oversize == "drop" and longest is not None:
        caps.append(longest)
    return min(caps, default=None)


def _check_longest(leaf: LeafColumns, facts: LeafFacts, batching: Batching) -> None:
    longest = longest_allowed(batching)
    if batching.oversize != "error" or longest is None or facts.longest_us <= longest:
        return
    raise PlanError(
        f"the longest sample of leaf {leaf.name!r}, {_seconds(facts.longest_us)}, is above the"
        f" batch limit, which allows {_seconds(longest)}",
        where=f"row {facts.longest_row}",
        fix="Raise batch_duration, lower max_duration, or set oversize to alone or drop",
    )


def _why(leaf: LeafColumns, shape: Shape, batching: Batching) -> str:
    """Which option keeps no row of a leaf."""
    if not leaf.num_rows:
        return f"{leaf.name!r} is empty"
    low, high = int(leaf.duration_us.min()), int(leaf.duration_us.max())
    span = f"the durations of {leaf.name!r} range from {_seconds(low)} to {_seconds(high)}"
    for option, value, all_refused in (
        ("min_duration", shape.min_duration_us, lambda v: high < v),
        ("max_duration", shape.max_duration_us, lambda v: low > v),
        ("the last of the bins", (batching.bins_us or (None,))[-1], lambda v: low > v),
        ("the batch limit", longest_allowed(batching), lambda v: low > v),
    ):
        if value is not None and all_refused(value):
            return f"{option} is {_seconds(value)} and {span}"
    return f"min_duration and max_duration leave a gap, and {span}"


def _seconds(us: int) -> str:
    return f"{us / 1_000_000:g} s"
