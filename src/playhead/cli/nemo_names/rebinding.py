"""The script that gives a pack the keys of another config."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from playhead.cli.nemo_names.converting import collections_of
from playhead.cli.nemo_names.script import (
    Script,
    captured_command,
    kept,
    passed,
    refused,
)
from playhead.cli.progress import say
from playhead.cli.same_file import is_same
from playhead.errors import ConfigError, SourceNotFoundError
from playhead.paths import exists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.cli.nemo_names.script import Given
    from playhead.index.pack import Pack

__all__ = ["REBIND"]


def _rebind(given: Given) -> None:
    """Write a pack with other keys, and print what the guide shows of it."""
    old, output = given.required("--source-pack"), given.required("--output")
    report = given.value("--report")
    is_moved = "--relocate-paths" in given.kept
    _check_together(given.kept, is_moved=is_moved)
    _check_places([old, *given.arguments], output, report)
    from playhead.index.pack import open_pack  # noqa: PLC0415  (loads pyarrow)

    if not exists(old):
        raise SourceNotFoundError("there is no such pack", where=old, fix="Correct --source-pack")
    before = open_pack(old)
    is_verified = "--skip-payload-verification" not in given.kept
    if is_verified:
        _verify(before)
    arguments = [*given.arguments, "--rebind", old, "--output", output, "--json"]
    code, printed = captured_command(arguments)
    if code:
        sys.exit(code)
    after = open_pack(output)
    told = _told(before, after, json.loads(printed)["inputs"], output)
    told["payloads_verified"] = is_verified
    if is_moved:
        pairs = zip(before.shards.uris, after.shards.uris, strict=True)
        told["paths_changed"] = sum(was != now for was, now in pairs)
        told["relocation_trusted"] = False
    typer.echo(json.dumps({"source": old, "output": output, **told}, ensure_ascii=False))
    if report is not None:
        from playhead.storage.access import write  # noqa: PLC0415  (only where asked)

        text = json.dumps({"source": old, "output": output, **told}, indent=2)
        write(report, f"{text}\n".encode())


def _check_together(kept: Mapping[str, Sequence[str]], *, is_moved: bool) -> None:
    """Refuse options that make no sense together.

    Raises
    ------
    ConfigError
        Naming them.
    """
    if is_moved and "--skip-payload-verification" in kept:
        raise ConfigError(
            "--skip-payload-verification does not go with --relocate-paths", fix="Leave one out"
        )
    if "--trust-relocated-payloads" in kept:
        if not is_moved:
            raise ConfigError(
                "--trust-relocated-payloads is for --relocate-paths", fix="Give both, or none"
            )
        say("note: --trust-relocated-payloads: moved files are compared with the pack all the same")


def _check_places(read: Sequence[str], output: str, report: str | None) -> None:
    """Refuse to write over what is read, or two things into one file.

    Raises
    ------
    ConfigError
        Naming it.
    """
    others = {output: read} if report is None else {output: read, report: [*read, output]}
    for path, names in others.items():
        if report == output or any(is_same(path, name) for name in names):
            raise ConfigError(
                "this file would be written, and is read or written for something else too",
                where=path,
                fix="Give another name",
            )


def _verify(pack: Pack) -> None:
    """Compare every column of a pack with its checksum.

    Raises
    ------
    IndexFileError
        If one is damaged.
    """
    import numpy as np  # noqa: PLC0415  (--help needs none of it)

    from playhead.index.columns import COLUMNS  # noqa: PLC0415

    for name in COLUMNS:
        pack.column(name)
    pack.parts(np.empty(0, np.int64))
    if any(entry.embedded and entry.num_rows for entry in pack.leaves):
        pack.row_bytes(0)


def _told(
    before: Pack, after: Pack, inputs: Sequence[Mapping[str, Any]], output: str
) -> dict[str, Any]:
    """What became of a pack."""
    from playhead.cli.pack_report import layout_of  # noqa: PLC0415  (--help needs none of it)

    changed = {
        now.key for was, now in zip(before.leaves, after.leaves, strict=True) if was.key != now.key
    }
    collections = list(collections_of(inputs))
    with Path(output).open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return {
        "collections": len(collections),
        "keys_changed": sum(key in changed for key, _, _ in collections),
        "segments": len(after.shards),
        "layout_sha256": layout_of(after),
        "output_size": Path(output).stat().st_size,
        "output_sha256": digest.hexdigest(),
    }


REBIND: Final = Script(
    about="Give a pack the keys of another config of the same data, wherever they lie by now.",
    usage="INPUT_CFG",
    command=("pack",),
    run=_rebind,
    options=(
        kept("--source-pack", required=True),
        kept("--output", required=True),
        passed("--data-blend-dir"),
        kept("--report"),
        kept("--skip-payload-verification", takes=0),
        kept("--relocate-paths", takes=0),
        refused(
            "--path-prefix-map",
            takes=2,
            why="the config says where data are by now. Correct its paths, and leave it out.",
        ),
        kept("--trust-relocated-payloads", takes=0),
    ),
)
