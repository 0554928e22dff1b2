"""What one question of a validation comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["MOST_EXAMPLES", "Answer", "QuestionId", "Status", "said"]

QuestionId = Literal["Q1", "Q2", "Q3", "Q4", "Q5"]
Status = Literal["PASS", "WARN", "FAIL", "SKIP"]

MOST_EXAMPLES = 5
"""Examples that an answer has at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What one question comes to."""

    question: QuestionId
    """Which one."""
    status: Status
    """`PASS`, `WARN` where it holds as far as could be judged, `FAIL`, or `SKIP`: not judged."""
    tag: str | None = None
    """What kind of failure it is, for scripts."""
    detail: str
    """What was found, or why nothing could be judged: a line for people."""
    examples: Sequence[Any] = ()
    """Some of what is wrong, JSON types; at most `MOST_EXAMPLES`."""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Numbers of this question, JSON types, by name."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        facts: dict[str, Any] = {"status": self.status, "tag": self.tag, "detail": self.detail}
        if self.examples:
            facts["examples"] = list(self.examples)
        return {**facts, **self.more}

    def __str__(self) -> str:
        """A line of the report.

        Examples
        --------
        >>> print(Answer(question="Q2", status="FAIL", tag="skip", detail="2 samples are missing"))
          FAIL  Q2 [skip]: 2 samples are missing
        """
        mark = "skip" if self.status == "SKIP" else self.status
        tag = "" if self.tag is None else f" [{self.tag}]"
        return f"  {mark}  {self.question}{tag}: {self.detail}"


def said(number: int, what: str, *, several: str | None = None) -> str:
    """Count something in words.

    Examples
    --------
    >>> said(1, "batch", several="batches"), said(1200, "sample")
    ('1 batch', '1,200 samples')
    """
    return f"{number:,} {what if number == 1 else several or what + 's'}"
