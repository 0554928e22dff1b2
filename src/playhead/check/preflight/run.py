"""Looking at everything before training, without stopping at the first thing that is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from playhead.check.preflight.exchange import find_exchange, find_node
from playhead.check.preflight.files import without_secrets
from playhead.check.preflight.finding import SEVERITIES, Finding
from playhead.check.preflight.report import NotRun, Report
from playhead.check.preflight.rule import CannotRun, Rule, rules
from playhead.errors import PlayheadError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.check.preflight.subject import Subject

__all__ = ["look_at_all", "preflight"]


def preflight(
    subject: Subject,
    *,
    ignored: frozenset[str] = frozenset(),
    exchange_folder: str | None = None,
) -> Report | None:
    """Look at everything before training, on every node of the job once.

    Parameters
    ----------
    subject
        The config. Its fact `fetch` says what to fetch, if anything.
    ignored
        Ids of rules that do not count.
    exchange_folder
        A folder by which nodes hear of each other; torch.distributed where torchrun has started
        this if None.

    Returns
    -------
    Report or None
        What was found on all nodes; None in all processes but one.

    Raises
    ------
    ConfigError
        If the folder cannot be used.
    """
    node = find_node(subject.environment)
    subject.facts["nodes"] = node.nodes
    if not node.speaks and exchange_folder is not None:
        return None
    with find_exchange(node, exchange_folder, subject.environment) as exchange:
        if not node.speaks:
            if exchange is not None:
                for about in _ABOUT:
                    exchange.gather(about, None)
            return None
        subject.facts["exchange"] = exchange
        findings, not_run = look_at_all(subject)
        if exchange is not None:
            said = exchange.gather(_ABOUT[1], [one.to_json() for one in findings])
            findings = _merged(findings, said)
    if node.number and exchange is not None:
        return None
    return _report(subject, findings, not_run, ignored)


_ABOUT = ("files", "findings")


def _merged(own: list[Finding], said: Mapping[str, list[dict[str, Any]] | None]) -> list[Finding]:
    """What was found on any node, once, with the nodes where it was not found on all."""
    places: dict[tuple[str, str | None], dict[str, Finding]] = {}
    for name, findings in said.items():
        for one in findings or ():
            finding = msgspec.convert(one, Finding)
            places.setdefault((finding.rule, finding.where), {}).setdefault(name, finding)
    there = [name for name, findings in said.items() if findings is not None]
    merged = {
        key: replace(
            next(iter(by_host.values())),
            hosts=() if len(by_host) == len(there) else tuple(by_host),
        )
        for key, by_host in places.items()
    }
    # What this node saw several times in one place is said as often.
    seen = {(one.rule, one.where) for one in own}
    kept = [replace(one, hosts=merged[one.rule, one.where].hosts) for one in own]
    return kept + [finding for key, finding in merged.items() if key not in seen]


def look_at_all(subject: Subject) -> tuple[list[Finding], list[NotRun]]:
    """Look at a config by every rule.

    Parameters
    ----------
    subject
        The config.

    Returns
    -------
    tuple
        What the rules saw, and which of them had nothing to look at.
    """
    findings: list[Finding] = []
    not_run: list[NotRun] = []
    for rule in rules():
        try:
            findings += _findings(rule, subject)
        except CannotRun as reason:  # noqa: PERF203 - each rule by itself
            not_run.append(NotRun(rule.id, str(reason)))
        except (PlayheadError, OSError) as error:
            findings.append(
                Finding(
                    rule=rule.id,
                    severity=rule.severity,
                    saw=f"it could not be looked at: {without_secrets(str(error))}".rstrip("."),
                    why=rule.why,
                )
            )
    return findings, not_run


def _findings(rule: Rule, subject: Subject) -> list[Finding]:
    return [
        Finding(
            rule=rule.id,
            severity=seen.severity or rule.severity,
            saw=without_secrets(seen.saw),
            why=rule.why,
            where=None if seen.where is None else without_secrets(seen.where),
            change=tuple(map(without_secrets, seen.change)),
            advice=None if seen.advice is None else without_secrets(seen.advice),
        )
        for seen in rule.look(subject)
    ]


def _report(
    subject: Subject,
    findings: Sequence[Finding],
    not_run: Sequence[NotRun],
    ignored: frozenset[str],
) -> Report:
    marked = [replace(one, ignored=one.rule in ignored) for one in findings]
    hosts = subject.facts.get("hosts", ())
    return Report(
        config=subject.config,
        section=subject.section_name,
        leaves=len(subject.leaves),
        rules=sum(1 for _ in rules()),
        findings=tuple(sorted(marked, key=lambda one: SEVERITIES.index(one.severity))),
        not_run=tuple(not_run),
        hosts=hosts if len(hosts) > 1 else (),
        fetched=subject.facts.get("fetched"),
    )
