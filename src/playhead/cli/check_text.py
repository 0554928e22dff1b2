"""What `playhead check` says to people."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import typer

from playhead.check.preflight.finding import SEVERITIES
from playhead.check.preflight.modes import MODES
from playhead.check.preflight.unnecessary import UNNECESSARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.check import Repeatability
    from playhead.check.preflight.fetching import Fetched, LeafFetch
    from playhead.check.preflight.finding import Finding, Severity
    from playhead.check.preflight.report import Report

__all__ = ["say_repeatability", "say_report"]

_COLOURS: dict[Severity, str] = {"fail": "red", "warning": "yellow", "note": "cyan"}
_TITLES: dict[Severity, tuple[str, str]] = {
    "fail": ("failure", "failures"),
    "warning": ("warning", "warnings"),
    "note": ("note", "notes"),
}
_MOST_OF_A_RULE = 5


def say_report(report: Report) -> None:
    """Print a report to stdout, the worst first; in colours where that is a terminal."""
    of = "" if report.section is None else f", section {report.section}"
    nodes = f", {len(report.hosts)} nodes: {', '.join(report.hosts)}" if report.hosts else ""
    typer.echo(
        f"{report.config}{of}: {_number(report.leaves, 'source', 'sources')},"
        f" {report.rules} rules{nodes}"
    )
    for severity in SEVERITIES:
        found = [one for one in report.findings if one.severity == severity and not one.ignored]
        if found:
            typer.echo()
            title = _number(len(found), *_TITLES[severity])
            typer.secho(title.upper(), fg=_COLOURS[severity], bold=True)
            _say_findings(found, severity)
    if report.fetched is not None:
        _say_fetched(report.fetched)
    typer.echo()
    _say_rest(report)
    _say_verdict(report)


def _say_findings(found: Sequence[Finding], severity: Severity) -> None:
    by_rule: dict[str, list[Finding]] = {}
    for one in found:
        by_rule.setdefault(one.rule, []).append(one)
    for rule, findings in by_rule.items():
        head = typer.style(rule, fg=_COLOURS[severity])
        typer.echo(f"  {head}  {findings[0].why}.")
        for one in findings[:_MOST_OF_A_RULE]:
            _say_finding(one)
        if len(findings) > _MOST_OF_A_RULE:
            typer.echo(f"    … and {len(findings) - _MOST_OF_A_RULE:,} more (--json has all)")


def _say_finding(one: Finding) -> None:
    hosts = f" [{', '.join(one.hosts)}]" if one.hosts else ""
    saw = one.saw[:1].upper() + one.saw[1:] if not one.saw.startswith("`") else one.saw
    typer.echo(f"    {saw}.{hosts}")
    if one.where is not None and not one.change:
        typer.echo(f"      at {one.where}")
    for line in one.change:
        colour = {"-": "red", "+": "green"}.get(line[:1])
        typer.echo("      " + (typer.style(line, fg=colour) if colour else line))
    if one.advice is not None:
        typer.echo(f"      {one.advice}.")


def _say_fetched(fetched: Fetched) -> None:
    typer.echo()
    typer.secho("FETCHED", bold=True)
    for one in fetched.leaves:
        _say_leaf(one)
    rate = fetched.hours_per_second
    if rate:
        typer.echo(f"  one worker gives {3600 * rate:,.0f} hours of audio an hour")
    if fetched.workers is not None:
        typer.echo(
            f"  num_workers: {fetched.workers} keep a GPU busy that trains on"
            f" {fetched.hours_per_hour:,.0f} hours of audio an hour"
        )


def _say_leaf(one: LeafFetch) -> None:
    facts = one.to_json()
    typer.echo(
        f"  {one.leaf}, by {MODES[one.mode]}: {one.fetched} of {one.asked} samples"
        + "".join(
            f", {count} {what}"
            for count, what in (
                (one.bad_audio, "with bad audio"),
                (one.bad_data, "that could not be made"),
                (one.failed, "that did not come"),
                (one.not_tried, "not tried"),
            )
            if count
        )
    )
    if one.seconds:
        typer.echo(
            f"    {facts['requests']} requests of {one.batch}: p50"
            f" {1000 * facts['p50_seconds']:.1f} ms, p95 {1000 * facts['p95_seconds']:.1f} ms;"
            f" {facts['samples_per_second']:,.0f} samples/s,"
            f" {facts['audio_hours_per_second']:.3f} hours of audio/s,"
            f" {facts['megabytes_per_second']:,.1f} MB/s"
        )
        if one.mode == "shards":
            typer.echo(f"    before these, {one.first_seconds:.1f} s to fetch whole shards")
    for said in one.failures[:_MOST_OF_A_RULE]:
        typer.echo(f"    {said}")


def _say_rest(report: Report) -> None:
    for one in report.not_run:
        typer.echo(f"not run: {one.rule}, as {one.reason}")
    ignored = sorted({one.rule for one in report.findings if one.ignored})
    if ignored:
        count = sum(one.ignored for one in report.findings)
        typer.echo(f"ignored: {_number(count, 'finding', 'findings')} of {', '.join(ignored)}")
    typer.echo("not needed here:")
    for about, why in UNNECESSARY.values():
        typer.echo(f"  {about}: {why}")


def _say_verdict(report: Report) -> None:
    counts = report.counts()
    said = ", ".join(_number(counts[one], *_TITLES[one]) for one in SEVERITIES)
    section = "" if report.section is None else f" --section {report.section}"
    again = f"playhead check {shlex.quote(report.config)}{section}"
    if report.fails:
        typer.secho(f"NOT ready: {said}.", fg="red", bold=True)
        typer.echo(f"Next: make the changes above, then `{again}`")
        return
    typer.secho(f"Ready: {said}.", fg="green", bold=True)
    commands = {
        command
        for one in report.findings
        if one.rule in ("pack-not-built", "pack-outdated") and one.advice
        for command in one.advice.split("`")[1:2]
    }
    if commands and report.fetched is None:
        typer.echo(f"Next: `{min(commands)}`")
    elif report.fetched is None:
        typer.echo(f"Next: `{again} --fetch 32 --hours-per-hour X`, or train")
    else:
        typer.echo("Next: train")


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def say_repeatability(result: Repeatability) -> None:
    """Print whether batches were the same whenever they were made, and where they were not."""
    elsewhere = f" and in {result.workers} fresh process{'es'[: 2 * (result.workers > 1)]}"
    typer.echo(
        f"\n{result.batches} batches were made twice here{elsewhere if result.workers else ''}."
    )
    if result.generators:
        typer.echo("Random generators in reach of the dataset:")
    for generator in result.generators:
        why = generator.why_not_seeded
        state = "seeded before each batch" if why is None else f"NOT SEEDED: {why}"
        typer.echo(f"  {generator.path}  {generator.kind}  {state}")
    for place in result.not_compared:
        typer.echo(f"Cannot be compared: {place}")
    for note in result.notes:
        typer.echo(f"Note: {note}")
    for difference in result.differences:
        typer.echo(
            f"Batch {difference.batch}, {difference.when}, differs at {difference.where}:"
            f" {difference.how}."
        )
    if result.advice is not None:
        typer.echo(f"{result.advice}.")
    typer.echo("Repeatable." if result.repeatable else "NOT repeatable.")
