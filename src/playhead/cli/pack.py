"""`playhead pack`: one pack for the whole blend of a config, at a path of one's choice."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from playhead.cli import app
from playhead.cli.configs import discover_configs, import_all, read_named
from playhead.cli.machines import RayAddress, WorkerCount, machines
from playhead.cli.options import AsJson, DataBlendDir, Imports, OnlySection, SkipBadRows
from playhead.cli.pack_report import print_summary, say_inputs, say_written
from playhead.cli.parts import PartOption, missing_note, share_of_option
from playhead.cli.progress import say, shares
from playhead.errors import PlayheadError, SourceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Generator

    from playhead.index.build_pace import Progress
    from playhead.index.build_pack import PackSettings
    from playhead.index.build_target import Target
    from playhead.index.found import Discovery
    from playhead.index.pack import Pack
    from playhead.index.part_work import Share
    from playhead.index.pool import Workers
    from playhead.index.sentinels import SidecarSize

__all__ = ["pack"]


@app.command()
def pack(
    config: Annotated[
        str, typer.Argument(metavar="CONFIG", help="A blend config (.yaml).", show_default=False)
    ],
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="The pack to write.", metavar="FILE"),
    ],
    indexes_root: Annotated[
        str | None,
        typer.Option(help="Folder of the .idx files, where the config names none.", metavar="DIR"),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the pack that is there.")
    ] = False,
    native_tar_paths_only: Annotated[
        bool,
        typer.Option(
            "--native-tar-paths-only",
            help="Do not open tars: a pack for training with USE_AIS_GET_BATCH=true.",
        ),
    ] = False,
    embed_rows: Annotated[
        bool, typer.Option("--embed-rows", help="Put the manifests' rows into the pack.")
    ] = False,
    rebind: Annotated[
        str | None,
        typer.Option(
            help="Take over this pack of the same data, which have moved: they are not read again.",
            metavar="OLD",
        ),
    ] = None,
    skip_bad_rows: SkipBadRows = False,
    workers: WorkerCount = None,
    part: PartOption = None,
    ray: RayAddress = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what the pack would hold.")
    ] = False,
    data_blend_dir: DataBlendDir = None,
    section: OnlySection = None,
    imports: Imports = None,
    as_json: AsJson = False,
) -> None:
    """Put everything that a loader must know of a config's data into one file.

    Configs name it with index_pack. Data are never touched.

    An .idx that does not belong to its data any more is an error, exit code 1.
    """
    from playhead.index.blend_pack import (  # noqa: PLC0415  (loads pyarrow)
        blend_target,
        build_blend_pack,
        check_output,
    )
    from playhead.index.build_pack import PackSettings  # noqa: PLC0415

    share = share_of_option(part)
    _check_rebind(
        rebind, shapes=native_tar_paths_only or embed_rows or skip_bad_rows, in_parts=share
    )
    import_all(imports or ())
    # Another part may have made it: its content tells.
    check_output(output, overwrite=overwrite or dry_run or share is not None)
    found = discover_configs(
        [config], indexes_root=indexes_root, data_blend_dir=data_blend_dir, section=section
    )
    for note in found.notes:
        say(f"Note: {note}.")
    blends = [read_named(named, data_blend_dir) for named in found.blends]
    target = blend_target(output, [leaf for blend in blends for leaf in blend.leaves])
    files = sum(len(member.paths) for member in target.members)
    say(f"Discovered {len(target.members):,} inputs with {files:,} files.")
    sizes = _sizes(found)
    failures = [size.error for size in sizes.values() if size.error is not None]
    for failure in failures:
        say(f"  [FAIL] {failure}")
    made = None
    if dry_run:
        say_inputs(target, sizes)
    elif not failures:
        settings = PackSettings(
            embed_rows=embed_rows,
            skip_bad_rows=skip_bad_rows,
            has_offsets=not native_tar_paths_only,
        )
        with _kept(failures), machines(ray, workers) as team, shares("packed") as told:
            if rebind is not None:
                made = _rebound(target, rebind, overwrite=overwrite, told=told)
            elif share is not None:
                made = _put_together(target, settings, share, overwrite=overwrite, workers=team)
            else:
                made = build_blend_pack(
                    target, settings, overwrite=overwrite, workers=team, progress=told
                )
        if made is not None:
            say_written(made, config)
    if as_json:
        print_summary(target, made, failures=list(map(str, failures)), sizes=sizes)
    raise typer.Exit(1 if failures else 0)


@contextmanager
def _kept(failures: list[PlayheadError]) -> Generator[None]:
    """Say what fails, and keep it for the summary; wrong input ends the command."""
    try:
        yield
    except PlayheadError as error:
        if error.exit_code != 1:
            raise
        failures.append(error)
        say(f"playhead: {error}")


def _check_rebind(rebind: str | None, *, shapes: bool, in_parts: Share | None) -> None:
    if rebind is None:
        return
    if shapes:
        raise typer.BadParameter("--rebind takes a pack as it is: leave out what shapes a new one")
    if in_parts is not None:
        raise typer.BadParameter("--rebind reads no data: leave out --part")


def _put_together(
    target: Target, settings: PackSettings, share: Share, *, overwrite: bool, workers: Workers
) -> Pack | None:
    """Do one part; return the pack if all are done."""
    from playhead.index.blend_pack import build_blend_share  # noqa: PLC0415  (loads pyarrow)
    from playhead.index.pack import open_pack  # noqa: PLC0415

    result = build_blend_share(target, settings, share, overwrite=overwrite, workers=workers)
    if result.error is not None:
        raise result.error
    if result.missing_parts:
        say(f"Note: {missing_note(result.missing_parts, share, sys.argv[1:])}.")
        return None
    return open_pack(result.path)


def _rebound(target: Target, old: str, *, overwrite: bool, told: Progress) -> Pack:
    from playhead.index.pack import open_pack  # noqa: PLC0415  (loads pyarrow)
    from playhead.index.rebind import rebind_pack  # noqa: PLC0415
    from playhead.paths import exists  # noqa: PLC0415
    from playhead.tokens.carried import Carried, carry_columns  # noqa: PLC0415

    if not exists(old):
        raise SourceNotFoundError("there is no such pack", where=old, fix="Correct --rebind")
    before = open_pack(old)
    after = rebind_pack(target, old, overwrite=overwrite, progress=told)
    leaves = {member.source: member.leaf for member in target.members}
    carried = carry_columns(
        [
            Carried(
                leaves[now.source],
                before.leaf(was.key, was.source),
                after.leaf(now.key, now.source),
            )
            for was, now in zip(before.leaves, after.leaves, strict=True)
        ]
    )
    if carried:
        say(f"{carried:,} files with counts of tokens were copied along.")
    return after


def _sizes(found: Discovery) -> dict[str, SidecarSize]:
    """What the `.idx` of each data file says, by the file's absolute path."""
    from playhead.index.sentinels import check_sentinels  # noqa: PLC0415  (loads NumPy)
    from playhead.paths import scheme  # noqa: PLC0415

    sizes = check_sentinels(found.sidecars)
    paths = [one.path if scheme(one.path) else os.path.abspath(one.path) for one in found.sidecars]  # noqa: PTH100 - as packs name them
    return dict(zip(paths, sizes, strict=True))
