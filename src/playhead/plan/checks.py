"""Blends from which nothing could be trained, named before a plan is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import PlanError, PositionError
from playhead.plan.effort import Effort
from playhead.plan.explain import length_text, why_nothing
from playhead.plan.filters import leaf_facts, with_exclusions
from playhead.plan.items import needed_columns
from playhead.plan.verdicts import side_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.plan.batching import Batching
    from playhead.plan.columns import LeafColumns
    from playhead.plan.settings import Shape

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
        row or no row that is kept, a finite pass has no row at all, a sample is above the limit and
        `oversize` is `error` or samples are packed, columns that an option looks at are missing, or
        texts are measured in seconds.
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
    if batching.in_tokens and not shape.multimodal:
        raise PlanError(
            "batches are made by tokens, and the samples are not measured in tokens",
            fix="Set use_multimodal_sampling, or limit batches by batch_duration",
        )
    if batching.needs_answers and shape.tokens is None:
        raise PlanError(
            "batches are made by tokens (2-D bins, or max_tps or max_tpt per bin), and none are"
            " counted",
            fix="Give a tokenizer, or bins of length alone",
        )
    shape = with_exclusions(shape, leaves)
    drawn = [leaf for leaf in leaves if shape.finite or leaf.weight]
    kept = [_check_leaf(leaf, shape, batching) for leaf in drawn]
    if shape.finite and not any(kept):
        raise PlanError(
            "no row of any leaf is kept: "
            + "; ".join(why_nothing(leaf, shape, batching) for leaf in drawn[:5]),
            fix="Add data, or widen the limits",
        )


def _check_leaf(leaf: LeafColumns, shape: Shape, batching: Batching) -> bool:
    """Whether any sample of a leaf is kept."""
    _check_kind(leaf, shape, batching)
    _check_sides(leaf, shape, batching)
    _check_longest(leaf, shape, batching)
    kept = leaf_facts(leaf, shape, batching).accepted > 0
    if not kept and not shape.finite and not leaf.num_rows:
        raise PlanError(
            f"leaf {leaf.name!r} has a weight and no row to draw: its manifests hold no rows",
            where=leaf.key,
            fix="Restore its data, or give the leaf the weight 0",
        )
    if not kept and not shape.finite:
        raise PlanError(
            f"leaf {leaf.name!r} has a weight and no row to draw:"
            f" {why_nothing(leaf, shape, batching)}",
            where=leaf.key,
            fix="Widen that limit, or give the leaf the weight 0",
        )
    return kept


def _check_kind(leaf: LeafColumns, shape: Shape, batching: Batching) -> None:
    """Refuse what cannot be measured: audio in tokens, or texts in tokens or in seconds."""
    if shape.multimodal and leaf.kind == "cut" and shape.audio_tokens is None:
        raise PlanError(
            f"leaf {leaf.name!r} has audio, and nothing says how many tokens that takes",
            where=leaf.key,
            fix="Set token_equivalent_duration or audio_token_estimator",
        )
    if shape.multimodal and leaf.kind != "cut" and shape.tokens is None:
        raise PlanError(
            f"leaf {leaf.name!r} has texts, and nothing counts their tokens",
            where=leaf.key,
            fix="Give a tokenizer",
        )
    seconds = not batching.in_tokens and (batching.limit is not None or batching.sizes)
    if seconds and leaf.kind != "cut" and bool((leaf.duration_us <= 0).any()):
        raise PlanError(
            f"leaf {leaf.name!r} has samples without audio, and batches are limited by the duration"
            " of audio",
            where=leaf.key,
            fix="Set use_multimodal_sampling and batch_tokens instead of batch_duration",
        )


def _check_sides(leaf: LeafColumns, shape: Shape, batching: Batching) -> None:
    """Refuse a leaf whose side files do not hold what is asked of them."""
    asked: list[tuple[str | None, str]] = [
        (shape.tokens, name) for name in needed_columns(shape, [batching])
    ]
    if shape.max_cer is not None:
        asked.append((shape.fields, "cer"))
    if shape.min_similarity is not None:
        asked.append((shape.fields, "similarity"))
    if shape.excluded_speakers:
        asked.append((shape.fields, "speaker"))
    try:
        for digest, name in asked:
            side_column(leaf, digest or "", name)
    except PositionError as error:
        raise PlanError(
            f"an option looks at {', '.join(name for _, name in asked)} of rows, and leaf"
            f" {leaf.name!r} has no such columns",
            where=leaf.key,
            fix="Give the tokenizer or the fields to count them with, or take the option out",
        ) from error


def _check_longest(leaf: LeafColumns, shape: Shape, batching: Batching) -> None:
    longest = Effort.of(batching).longest
    strict = batching.oversize == "error" or (batching.packed and batching.oversize != "drop")
    if not strict or longest is None:
        return
    facts = leaf_facts(leaf, shape, in_tokens=batching.in_tokens)
    if facts.longest <= longest:
        return
    limit, most = (
        ("batch_tokens", "max_tokens (of cuts, max_duration)")
        if batching.in_tokens
        else ("batch_duration", "max_duration")
    )
    raise PlanError(
        f"the longest sample of leaf {leaf.name!r}, {length_text(facts.longest, batching)}, is"
        f" above the batch limit, which allows {length_text(longest, batching)}",
        where=f"row {facts.longest_row}",
        fix=f"Raise {limit}, lower {most}, or set oversize to "
        + ("drop" if batching.packed else "alone or drop"),
    )
