"""The script that puts the indexes of a config's data into a pack."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import typer

from playhead.cli.nemo_names.script import (
    Script,
    captured_command,
    idle,
    kept,
    passed,
    refused,
    run_command,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.cli.nemo_names.script import Given

__all__ = ["CONVERT", "collections_of"]

_TAKEN_OVER: Final = (
    "a pack is taken over as a whole. Give it to rebind_idxpack_collections.py as --source-pack."
)
_FALLBACK: Final = "--fallback-native-tar-indexes-root"
_ROW_WORKERS, _TAR_WORKERS = "--record-validation-workers", "--native-tar-route-workers"


def _convert(given: Given) -> None:
    """Write a pack, and print what the guide shows of it."""
    output = given.required("--output")
    arguments = [*given.arguments, "--output", output]
    if "--json" in arguments:
        run_command(arguments)
        return
    code, printed = captured_command([*arguments, "--json"])
    if printed:
        has_offsets = "--native-tar-paths-only" not in arguments
        for line in _lines(json.loads(printed), output, has_offsets=has_offsets):
            typer.echo(line)
    sys.exit(code)


def _lines(summary: Mapping[str, Any], output: str, *, has_offsets: bool) -> Iterator[str]:
    """What the guide shows of a pack that was written, or would be."""
    collections = list(collections_of(summary["inputs"]))
    paths = sum(one["files"] for _, _, one in collections)
    yield f"Discovered {len(collections)} collections with {paths} ordered paths."
    if summary["written"]:
        yield (
            f"Wrote {output}: collections={len(collections)} segments={summary['files']}"
            f" layout={summary['layout']}"
        )
    elif not summary["failures"]:
        for key, role, one in collections:
            offsets = has_offsets or not one["kind"].endswith("_tar")
            yield (
                f"  role={role} kind={one['kind']} paths={one['files']} offsets={offsets} key={key}"
            )


def collections_of(inputs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    """Key, role and files of everything that an entry of a blend declares."""
    for leaf in inputs:
        for role, one in leaf["roles"].items():
            yield leaf["key"], role, one


CONVERT: Final = Script(
    about="Put all that a loader must know of a config's data into one pack.",
    usage="INPUT_CFG",
    command=("pack",),
    run=_convert,
    options=(
        kept("--output", required=True),
        passed("--indexes-root"),
        passed("--overwrite", takes=0),
        passed("--native-tar-paths-only", takes=0),
        passed("--dry-run", takes=0),
        passed("--data-blend-dir"),
        refused(
            "--accept-trailing-zero-tar-padding",
            takes=0,
            why="an .idx ends where its archive does. Run build_indexes.py --force.",
        ),
        refused(
            "--repair-stale-local-native-tar-sidecars-root",
            why="an .idx that is out of date is never passed over. Run build_indexes.py --force, "
            "with --indexes-root DIR where the data are not yours.",
        ),
        idle(_FALLBACK, reasons={None: f"{_FALLBACK}: archives without an .idx are read instead"}),
        passed(
            "--record-validation-workers", "--native-tar-route-workers", "--workers", default="1"
        ),
        refused("--reuse-native-tar-routes-source-input-cfg", why=_TAKEN_OVER),
        refused("--reuse-native-tar-routes-source-pack", why=_TAKEN_OVER),
        refused("--reuse-native-tar-routes-source-pack-sha256", why=_TAKEN_OVER),
    ),
)
