"""`playhead index`: write the `.idx` of every data file that is named, then the packs."""

from __future__ import annotations

import sys
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from playhead.cli import app
from playhead.cli.configs import import_all, read_named, sections
from playhead.cli.index_report import Report
from playhead.cli.machines import RayAddress, WorkerCount, machines
from playhead.cli.options import AsJson, DataBlendDir, Imports, OnlySection, SkipBadRows
from playhead.cli.parts import PartOption, share_of_option
from playhead.cli.progress import Heartbeat, say
from playhead.errors import ConfigError, NotSupportedError, PlayheadError
from playhead.paths import scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend import Blend
    from playhead.blend.leaf import Leaf
    from playhead.index.exclusions import RowName
    from playhead.index.found import Blend as NamedBlend
    from playhead.index.found import Discovery
    from playhead.index.pack import LeafPack
    from playhead.index.part_work import Share
    from playhead.index.pool import Workers
    from playhead.index.sidecars import Sidecar
    from playhead.tokens.encoding import Encoding

__all__ = ["index"]


class Kind(str, Enum):
    """What a data file is."""

    JSONL = "jsonl"
    NEMO_TAR = "nemo_tar"
    WDS_TAR = "wds_tar"


class Layout(str, Enum):
    """What one sample of a tar is."""

    NEMO = "nemo"
    SHAR = "shar"


def _share_of(part: str | None, exclude: Sequence[str] | None) -> Share | None:
    share = share_of_option(part)
    if share is not None and exclude:
        raise typer.BadParameter("--exclude needs all packs: give it once, without --part")
    return share


@app.command()
def index(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Blend configs (.yaml), data files (.jsonl, .json, .tar), Shar folders.",
            show_default=False,
        ),
    ],
    *,
    indexes_root: Annotated[
        str | None,
        typer.Option(
            help="Folder for the .idx files, of a disk or a store, which mirrors the data's paths.",
            metavar="DIR",
        ),
    ] = None,
    workers: WorkerCount = None,
    force: Annotated[bool, typer.Option("--force", help="Rebuild what is up to date too.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be built.")
    ] = False,
    kind: Annotated[
        list[Kind] | None, typer.Option(help="Only files of this kind; may be repeated.")
    ] = None,
    layout: Annotated[
        Layout | None,
        typer.Option(
            help="What a sample is in the tars and folders given here: one member (nemo) or two "
            "(shar). Without it, a tar's first two members tell, and a folder is Shar."
        ),
    ] = None,
    data_blend_dir: DataBlendDir = None,
    section: OnlySection = None,
    embed_rows: Annotated[
        bool, typer.Option("--embed-rows", help="Put the manifests' rows into the packs.")
    ] = False,
    skip_bad_rows: SkipBadRows = False,
    part: PartOption = None,
    ray: RayAddress = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Count the tokens of configs' rows: a SentencePiece model, a tokenizer.json, a "
            "folder with one, or en=PATH,de=PATH.",
            metavar="SPEC",
        ),
    ] = None,
    prompt_format: Annotated[
        str | None,
        typer.Option(
            help="Count them as this prompt writes the rows; the config's own by default.",
            metavar="NAME",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            help="Leave out for good what a loader listed as bad_samples.jsonl; may be repeated.",
            metavar="FILE",
        ),
    ] = None,
    imports: Imports = None,
    as_json: AsJson = False,
) -> None:
    """Index the data that blend configs name, or data files themselves.

    An .idx for every JSONL and tar, as Lhotse and NeMo read it; packs, and tokens, for configs.

    What is up to date is skipped, and data are never touched.
    """
    from playhead.index.sidecar_run import sidecars_of, stale_sidecars  # noqa: PLC0415

    import_all(imports or ())
    share = _share_of(part, exclude)
    encoding = _encoding(tokenizer, prompt_format)
    names = _names(exclude)
    found = _discovered(sources, indexes_root, layout, data_blend_dir, section)
    kinds = {item.value for item in kind or Kind}
    files = sorted(item for item in found.sidecars if item.kind in kinds)
    problems = found.problems
    if share is not None:
        files = sidecars_of(files, share)
        problems = problems[share.number - 1 :: share.count]
    pending = files if force else stale_sidecars(files)
    report = Report(discovered=len(files), pending=pending, share=share)
    for note in found.notes:
        report.note(note)
    report.say_discovered()
    for problem in problems:
        if problem.kind in kinds:
            say(report.fail(problem.kind, problem.path, problem.error))
    if dry_run:
        report.say_pending()
    else:
        with machines(ray, workers) as team:
            _build_sidecars(report, team)
            # Part of the files is not enough for a pack.
            blends = found.blends if kind is None else ()
            if blends and scheme(indexes_root or ""):
                report.note(
                    f"no packs are built: they are mapped into memory, and {indexes_root} is not "
                    "on a disk; `playhead prefetch --indexes-root DIR` fetches indexes to one"
                )
                blends = ()
            read = [_read(blend, data_blend_dir, report) for blend in blends]
            whole = [blend for blend in read if blend is not None]
            leaves = [leaf for blend in whole for leaf in blend.leaves]
            _build_packs(
                report,
                leaves,
                indexes_root=indexes_root,
                workers=team,
                force=force,
                embed_rows=embed_rows,
                skip_bad_rows=skip_bad_rows,
                share=share,
            )
            if encoding is not None:
                _count_tokens(
                    report, whole, leaves, encoding, workers=team, force=force, share=share
                )
            if names:
                _exclude(report, leaves, names)
            report.say_missing_parts(sys.argv[1:])
    report.say_failures()
    if as_json:
        typer.echo(report.to_json(dry_run=dry_run))
    raise typer.Exit(report.exit_code)


def _discovered(
    sources: Sequence[str],
    indexes_root: str | None,
    layout: Layout | None,
    data_blend_dir: str | None,
    section: str | None,
) -> Discovery:
    from playhead.index.arguments import discover  # noqa: PLC0415  (loads NumPy)
    from playhead.index.found import merge  # noqa: PLC0415

    found = merge(
        discover(
            [source],
            indexes_root=root or indexes_root,
            layout=None if layout is None else layout.value,
            data_blend_dir=data_blend_dir,
            section=name,
        )
        for source in sources
        for name, root in sections(source, section, data_blend_dir)
    )
    if not (found.sidecars or found.blends or found.problems):
        raise ConfigError(
            "nothing here names data", where=", ".join(sources), fix="Add entries with data"
        )
    return found


def _build_sidecars(report: Report, workers: Workers) -> None:
    from playhead.index.sidecar_run import build_sidecars  # noqa: PLC0415

    def say_death(sidecar: Sidecar, cause: str) -> None:
        heartbeat.say(f"  {sidecar.kind} {sidecar.path} is tried again: {cause}")

    with Heartbeat(len(report.pending)) as heartbeat:
        for outcome in build_sidecars(report.pending, workers=workers, on_death=say_death):
            failure = None
            if outcome.error is None:
                report.built += 1
                report.samples += outcome.result or 0
            else:
                failure = report.fail(outcome.item.kind, outcome.item.path, outcome.error)
            heartbeat.advance(failure=failure)


def _read(named: NamedBlend, data_blend_dir: str | None, report: Report) -> Blend | None:
    name = named.config if named.section is None else f"{named.config}: {named.section}"
    try:
        return read_named(named, data_blend_dir)
    except NotSupportedError as error:
        report.note(f"no packs are built for {name}: {error}")
    except PlayheadError as error:
        say(report.fail("pack", name, error))
        report.is_refused |= isinstance(error, ConfigError)
    return None


def _build_packs(
    report: Report, leaves: Sequence[Leaf], *, share: Share | None, **settings: Any
) -> None:
    if not leaves:
        return
    from playhead.index.build import build_packs  # noqa: PLC0415  (loads pyarrow)

    # What a part finds to be bad, others do not know: all parts must divide the same packs.
    failed = {failure.path for failure in report.failures} if share is None else set[str]()
    whole = [leaf for leaf in leaves if failed.isdisjoint(chain(*leaf.paths.values()))]
    if len(whole) < len(leaves):
        report.note(f"{len(leaves) - len(whole):,} packs are not built, for their files failed")
    report.packs = build_packs(whole, share=share, **settings)
    for pack in report.packs:
        if pack.error is not None:
            say(report.fail("pack", pack.path, pack.error))
    report.say_packs()


def _encoding(tokenizer: str | None, prompt_format: str | None) -> Encoding | None:
    if tokenizer is None:
        if prompt_format is not None:
            raise typer.BadParameter("--prompt-format needs --tokenizer")
        return None
    from playhead.cli.index_tokens import encoding_of  # noqa: PLC0415  (loads libraries)

    return encoding_of(tokenizer, prompt_format)


def _count_tokens(
    report: Report,
    blends: Sequence[Blend],
    leaves: Sequence[Leaf],
    encoding: Encoding,
    *,
    workers: Workers,
    force: bool,
    share: Share | None,
) -> None:
    from playhead.cli.index_tokens import (  # noqa: PLC0415  (loads pyarrow)
        count_tokens,
        measured_as_trained,
        packs_of,
        say_tokens,
    )

    if not leaves:
        report.note("no tokens are counted, for no config is named whose packs are there")
        return
    try:
        packs = packs_of(leaves, report.packs)
    except PlayheadError as error:
        say(report.fail("tokens", "the config", error))
        return
    todo: list[tuple[Leaf, LeafPack, Encoding]] = []
    for blend in blends:
        try:
            todo += measured_as_trained(blend, packs, encoding)
        except PlayheadError as error:  # noqa: PERF203 - one config's fault is not the others'
            say(report.fail("tokens", blend.section or "the config", error))
    waiting = sum(pack.status == "waiting" for pack in report.packs)
    if waiting:
        report.note(
            f"the tokens of {waiting} packs cannot be counted before all parts of these are done: "
            "run every part once more then"
        )
    report.tokens = count_tokens(todo, workers=workers, force=force, share=share)
    for result in report.tokens:
        if result.error is not None:
            say(report.fail("tokens", result.path, result.error))
    say_tokens(report.tokens)


def _names(files: Sequence[str] | None) -> list[RowName]:
    if not files:
        return []
    from playhead.cli.index_exclude import read_names  # noqa: PLC0415  (loads pyarrow)

    return read_names(files)


def _exclude(report: Report, leaves: Sequence[Leaf], names: Sequence[RowName]) -> None:
    from playhead.cli.index_exclude import exclude, say_exclusions  # noqa: PLC0415  (loads pyarrow)
    from playhead.cli.index_tokens import packs_of  # noqa: PLC0415

    try:
        result = exclude(packs_of(leaves, report.packs), names)
    except PlayheadError as error:
        say(report.fail("exclusions", "--exclude", error))
        return
    report.excluded = result.to_json()
    say_exclusions(result)
