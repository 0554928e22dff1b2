"""What the pre-flight finds: how bad, what, where, why it matters, and the change to make."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["SEVERITIES", "Finding", "Severity"]

Severity: TypeAlias = Literal["fail", "warning", "note"]
"""`fail`: training would fail, or train on something else than was meant; `warning`: it may;
`note`: good to know."""

SEVERITIES: tuple[Severity, ...] = ("fail", "warning", "note")
"""The worst first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that a rule has found."""

    rule: str
    """Id of the rule."""
    severity: Severity
    """How bad it is."""
    saw: str
    """What was seen, a sentence without its full stop."""
    why: str
    """Why it matters, a sentence without its full stop."""
    where: str | None = None
    """The place: file and way to the value, or a path."""
    change: tuple[str, ...] = ()
    """What to change in the config, as lines of a diff; empty where it is not the config."""
    advice: str | None = None
    """What to do, a sentence without its full stop."""
    hosts: tuple[str, ...] = ()
    """The nodes that it was found on, where it was not found on all; empty for all."""
    ignored: bool = False
    """Whether the rule was to be ignored: then it does not count."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {**asdict(self), "change": list(self.change), "hosts": list(self.hosts)}
