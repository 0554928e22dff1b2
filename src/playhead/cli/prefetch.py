"""`playhead prefetch`: copy what is known of data to the disk of a machine; nothing is built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from playhead.cli import app
from playhead.cli.configs import discover_configs, import_all, read_named
from playhead.cli.options import AsJson, DataBlendDir, Imports, OnlySection
from playhead.cli.progress import Heartbeat, say
from playhead.cli.repeated import without_repeats
from playhead.errors import ConfigError, NotSupportedError
from playhead.paths import scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.index.build_target import LeafSources
    from playhead.index.found import Discovery
    from playhead.storage.copying import Copied, Copy

__all__ = ["prefetch"]


@app.command()
def prefetch(
    configs: Annotated[
        list[str],
        typer.Argument(metavar="CONFIG...", help="Blend configs (.yaml).", show_default=False),
    ],
    *,
    indexes_root: Annotated[
        str, typer.Option(help="Folder to copy to, which mirrors the data's paths.", metavar="DIR")
    ],
    source_indexes_root: Annotated[
        str | None,
        typer.Option(
            help="Where indexes and packs are, if not beside the data and in your cache; may be a"
            " URL.",
            metavar="DIR",
        ),
    ] = None,
    manifests: Annotated[bool, typer.Option("--manifests", help="Copy the manifests too.")] = False,
    workers: Annotated[int, typer.Option(help="Threads.", metavar="N")] = 8,
    force: Annotated[bool, typer.Option("--force", help="Copy what is there already too.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be copied.")
    ] = False,
    data_blend_dir: DataBlendDir = None,
    section: OnlySection = None,
    imports: Imports = None,
    as_json: AsJson = False,
) -> None:
    """Copy the indexes and packs of configs' data to a disk, as a loader finds them there.

    What is there is skipped, so a run that was stopped goes on where it was.
    """
    from playhead.index.staging import plan_staging  # noqa: PLC0415  (loads pyarrow)
    from playhead.storage.copying import look_at  # noqa: PLC0415

    import_all(imports or ())
    _check_root(indexes_root)
    found = discover_configs(
        configs,
        indexes_root=source_indexes_root,
        data_blend_dir=data_blend_dir,
        section=section,
    )
    staging = plan_staging(
        found.sidecars,
        _leaves(found, data_blend_dir),
        root=indexes_root,
        source_root=source_indexes_root,
        manifests=manifests,
    )
    threads = max(1, workers)
    wanted = list(staging.wanted.values())
    optional = list(staging.optional.values())
    looks = look_at([*wanted, *optional], workers=threads, force=force)
    known = [
        (copy, look)
        for number, (copy, look) in enumerate(zip([*wanted, *optional], looks, strict=True))
        if number < len(wanted) or look.size is not None
    ]
    pending = [copy for copy, look in known if not look.is_done]
    say(
        f"Discovered {len(known)} sidecars ({len(known) - len(pending)} already present locally, "
        f"{len(pending)} to copy)."
    )
    failures: list[Copied] = []
    if dry_run:
        for source, target in pending:
            say(f"  {source}  ->  {target}")
    else:
        failures = _copy(pending, threads)
    if failures:
        say(f"\n{len(failures)} copy operation(s) failed:")
        for line in without_repeats((_line(failure), _reason(failure)) for failure in failures):
            say(line)
    if as_json:
        summary = {
            "dry_run": dry_run,
            "discovered": len(known),
            "present": len(known) - len(pending),
            "to_copy": [copy._asdict() for copy in pending],
            "copied": 0 if dry_run else len(pending) - len(failures),
            "failures": [
                {**failure.copy._asdict(), "error": _said(failure)} for failure in failures
            ],
        }
        typer.echo(json.dumps(summary, ensure_ascii=False))
    raise typer.Exit(1 if failures else 0)


def _check_root(root: str) -> None:
    if scheme(root):
        raise ConfigError(
            "indexes are copied to a disk", where=root, fix="Give a folder as --indexes-root"
        )
    if Path(root).exists() and not Path(root).is_dir():
        raise ConfigError("this is not a folder", where=root, fix="Give a folder")


def _leaves(found: Discovery, data_blend_dir: str | None) -> list[LeafSources]:
    from playhead.index.build_target import leaf_sources  # noqa: PLC0415  (loads pyarrow)

    leaves: list[LeafSources] = []
    for named in found.blends:
        try:
            blend = read_named(named, data_blend_dir)
        except NotSupportedError as error:
            say(f"Note: no packs are looked for: {error}")
            continue
        leaves += [leaf_sources(leaf) for leaf in blend.leaves]
    return leaves


def _copy(pending: Sequence[Copy], threads: int) -> list[Copied]:
    from playhead.storage.copying import copy_all  # noqa: PLC0415

    failures: list[Copied] = []
    with Heartbeat(len(pending), "copied") as heartbeat:
        for done in copy_all(pending, workers=threads):
            if done.error is not None:
                failures.append(done)
            heartbeat.advance(
                failure=None if done.error is None else f"  [FAIL] {_line(done).strip()}"
            )
    return failures


def _line(failure: Copied) -> str:
    source, target = failure.copy
    return f"  {source}  ->  {target}: {_said(failure)}"


def _said(failure: Copied) -> str:
    """Why a copy failed; an index that is not there was never made, so nobody can restore it."""
    if failure.copy.source.endswith(".idx") and isinstance(failure.error, FileNotFoundError):
        return "The index does not exist. Make it with `playhead index`, and start again."
    return str(failure.error)


def _reason(failure: Copied) -> str:
    text = _said(failure)
    for path in failure.copy:
        text = text.replace(path, "")
    return text
