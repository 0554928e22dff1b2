"""All that a pre-flight found, for people and for scripts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.check.preflight.finding import SEVERITIES
from playhead.check.preflight.unnecessary import UNNECESSARY

if TYPE_CHECKING:
    from playhead.check.preflight.fetching import Fetched
    from playhead.check.preflight.finding import Finding

__all__ = ["NotRun", "Report"]


@dataclass(frozen=True, slots=True)
class NotRun:
    """A rule that had nothing to look at."""

    rule: str
    """Its id."""
    reason: str
    """Why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What a pre-flight found."""

    config: str
    """The YAML file."""
    section: str | None
    """The section; None for a blend that stands alone."""
    leaves: int
    """Sources that could be read."""
    rules: int
    """Rules that were looked at."""
    findings: tuple[Finding, ...]
    """What they saw, the worst first."""
    not_run: tuple[NotRun, ...]
    """Rules that had nothing to look at."""
    hosts: tuple[str, ...] = ()
    """The nodes that were compared; empty where there is one."""
    fetched: Fetched | None = None
    """What was fetched, where that was asked for."""

    @property
    def fails(self) -> bool:
        """Whether anything fails."""
        return any(one.severity == "fail" and not one.ignored for one in self.findings)

    def counts(self) -> dict[str, int]:
        """How many findings count, by severity."""
        found = Counter(one.severity for one in self.findings if not one.ignored)
        return {severity: found[severity] for severity in SEVERITIES}

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "config": self.config,
            "section": self.section,
            "passed": not self.fails,
            "counts": self.counts(),
            "leaves": self.leaves,
            "rules": self.rules,
            "findings": [one.to_json() for one in self.findings],
            "not_run": [{"rule": one.rule, "reason": one.reason} for one in self.not_run],
            "hosts": list(self.hosts),
            "fetch": None if self.fetched is None else self.fetched.to_json(),
            "unnecessary": [
                {"rule": number, "about": about, "why": why}
                for number, (about, why) in UNNECESSARY.items()
            ],
        }
