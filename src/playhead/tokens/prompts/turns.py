"""From the tokens of two turns to what a training batch holds of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.formats.example import Example

__all__ = ["field_of", "joined_turns"]


def joined_turns(
    context: list[int], answer: list[int], *, unasked: int = 0
) -> dict[str, list[Any]]:
    """Join what is asked and what is answered.

    Parameters
    ----------
    context
        Tokens of all before the answer.
    answer
        Tokens of the answer.
    unasked
        Tokens at the end of the answer that `answer_ids` leaves out.

    Examples
    --------
    >>> joined_turns([1, 2], [3, 4], unasked=1)["answer_ids"]
    [3]
    >>> joined_turns([1, 2], [3, 4])["mask"]
    [False, False, True, True]
    """
    return {
        "input_ids": context + answer,
        "context_ids": context,
        "answer_ids": answer[: len(answer) - unasked],
        "mask": [False] * len(context) + [True] * len(answer),
    }


def field_of(example: Example, name: str) -> str | None:
    """Return a field of the sample as text; None where it has none."""
    value: Any = example.custom.get(name)
    return None if value is None else str(value)
