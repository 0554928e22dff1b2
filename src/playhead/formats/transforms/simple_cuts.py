"""Serialised cuts with something changed, and the samples that they are then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.formats.base import BadRowError
from playhead.formats.cut_rows import cut_example
from playhead.formats.transforms.steps import Said

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Example
    from playhead.formats.transforms.speech import Supervision

__all__ = ["changed", "check_simple", "with_supervisions", "with_task"]


def check_simple(example: Example, transform: str) -> None:
    """Refuse cuts that are mixed of others.

    Raises
    ------
    BadRowError
        If the sample is a mixed cut.
    """
    if example.cut_data is not None and example.cut_data["type"] == "MixedCut":
        raise BadRowError(
            f"{transform} takes one recording a cut, and the row is a MixedCut",
            fix="Write the mixed audio to files of its own, and cuts of those",
        )


def changed(leaf: Leaf, example: Example, custom: Mapping[str, Any], **fields: Any) -> Example:
    """Return the sample of a cut with other fields, and more custom ones.

    Parameters
    ----------
    leaf
        The source.
    example
        A sample with `cut_data`, which stays as it is.
    custom
        Custom fields to add; the leaf's tags win over them.
    fields
        The other fields; None takes one away.

    Raises
    ------
    ManifestError
        If that is no cut any more.
    """
    data = {**(example.cut_data or {}), **fields}
    data = {key: value for key, value in data.items() if value is not None}
    data["custom"] = {**(data.get("custom") or {}), **custom}
    made = cut_example(leaf, example.place, data, example.in_memory)
    return replace(made, cut_steps=example.cut_steps)


def with_task(leaf: Leaf, example: Example, task: str) -> dict[str, Any]:
    """Return the custom fields of a sample with a task, unless a tag gives it another."""
    return {**example.custom, "task": task, **leaf.tags}


def with_supervisions(
    leaf: Leaf, example: Example, said: Sequence[Supervision], task: str
) -> Example:
    """Return a sample with other supervisions, and a task.

    Its text is theirs, joined by a space.
    """
    if example.cut_data is not None and not example.cut_steps:
        return changed(leaf, example, {"task": task}, supervisions=list(said))
    texts = [one["text"] for one in said if one.get("text") is not None]
    return replace(
        example,
        text=" ".join(texts) if texts else None,
        custom=with_task(leaf, example, task),
        cut_steps=(*example.cut_steps, Said(tuple(said))),
    )
