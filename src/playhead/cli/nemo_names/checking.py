"""The script that looks at a config before anything runs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from playhead.cli.nemo_names.script import Script, captured_command, idle, kept, passed
from playhead.cli.progress import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.cli.nemo_names.script import Given

__all__ = ["PRE_VALIDATION"]

_FILE: Final = "pre_validation.json"
_STATUSES: Final = {"fail": "FAIL", "warning": "WARN", "note": "PASS"}
_WORST_FIRST: Final = ("FAIL", "WARN", "PASS")
# What the checks of the guides are called here; none where nothing can be wrong.
_NAMES_HERE: Final[Mapping[str, tuple[str, ...]]] = {
    "bucketer-buffer": (),
    "constant-time-leaves": (),
    "cut-map-fns-vs-indexed": ("cut-map-fns",),
    "idx-files-present": ("index-missing", "index-stale"),
    "indexed-implies-root": ("indexes-root-unset",),
    "indexes-root-exists": ("indexes-root-missing",),
    "lambda-in-pipeline": (),
    "multi-config-flags": ("multi-config",),
    "mux-seed-not-randomized": (),
    "mux-weights-sum": ("weights",),
    "seed-int": ("seed-drawn",),
    "shard-seed-int": (),
    "slice-length-vs-indexed": (),
    "stateful-on": (),
    "text-fields": ("text-field",),
    "world-size-divides-workers": (),
}


def _check(given: Given) -> None:
    """Check a config, and write what was found as the guide's script does."""
    config, folder = given.required("--config"), given.required("--output-dir")
    ignored = [name for asked in given.kept.get("--ignore-fail", ()) for name in _here(asked)]
    asked = [word for name in ignored for word in ("--ignore", name)]
    command, *others = given.arguments
    code, printed = captured_command([command, config, *others, *asked, "--json"])
    if not printed:
        sys.exit(code)
    found = _as_the_guide(json.loads(printed))
    for name, one in found["checks"].items():
        if one["status"] in {"FAIL", "WARN"}:
            typer.echo(f"  {one['status']}  {name}: {one['detail']}")
    summary = ", ".join(f"{count} {status}" for status, count in found["summary"].items())
    typer.echo(f"{config}: {summary}")
    from playhead.storage.access import write  # noqa: PLC0415  (--help needs none of it)

    path = str(Path(folder) / _FILE)
    write(path, f"{json.dumps(found, indent=2, ensure_ascii=False)}\n".encode())
    say(f"Wrote {path}.")
    sys.exit(code)


def _here(name: str) -> tuple[str, ...]:
    """What a check is called here, by its name here or in the guides."""
    here = _NAMES_HERE.get(name)
    if here is None:
        return (name,)
    called = f"is called {' and '.join(here)} here" if here else "is not needed here"
    say(f"note: the check {name} {called}")
    return here


def _as_the_guide(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report of `playhead check` under the keys of the guide."""
    from playhead.check.preflight.rule import rules  # noqa: PLC0415  (imports torch)

    skipped = {one["rule"]: one["reason"] for one in report["not_run"]}
    seen: dict[str, list[tuple[str, Any]]] = {}
    for one in report["findings"]:
        status = "WARN" if one["ignored"] else _STATUSES[one["severity"]]
        seen.setdefault(one["rule"], []).append((status, one))
    checks: dict[str, Any] = {}
    for rule in rules():
        found = sorted(seen.get(rule.id, ()), key=lambda one: _WORST_FIRST.index(one[0]))
        told = "; ".join(
            f"{one['saw']} ({one['where']})" if one["where"] else one["saw"] for _, one in found
        )
        status = found[0][0] if found else "SKIP" if rule.id in skipped else "PASS"
        checks[rule.id] = {
            "status": status,
            "severity": rule.severity,
            "detail": told or skipped.get(rule.id, ""),
            "why": rule.why,
            "findings": [one for _, one in found],
        }
    count = Counter(one["status"] for one in checks.values())
    parts = {status.lower(): count[status] for status in ("PASS", "WARN", "FAIL", "SKIP")}
    return {"checks": checks, "summary": {"total": len(checks), **parts}}


PRE_VALIDATION: Final = Script(
    about="Look at a config, its data and this machine before anything runs.",
    usage="",
    command=("check",),
    run=_check,
    options=(
        kept("--config", required=True),
        passed("--data-blend-dir"),
        passed("--section"),
        kept("--output-dir", required=True),
        kept("--ignore-fail"),
        idle("-v", takes=0, reasons={None: ""}),
    ),
)
