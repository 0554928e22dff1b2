"""Rules on `.idx` files and packs: where they are, and whether they belong to the data."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from playhead.check.preflight.changes import diff
from playhead.check.preflight.packs import pack_states
from playhead.check.preflight.reading import faults_of
from playhead.check.preflight.rule import CannotRun, Seen, rule
from playhead.errors import PlayheadError, SourceNotFoundError
from playhead.index.build_demand import sidecars_of
from playhead.index.build_pace import PATIENCE_SECONDS
from playhead.index.build_target import why_declared_is_stale
from playhead.index.found import owners
from playhead.index.pack import open_pack
from playhead.paths import exists, scheme
from playhead.storage import access
from playhead.storage.compression import has_middle
from playhead.storage.get_batch import wants_get_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.check.preflight.subject import Named, Subject
    from playhead.index.pack import LeafPack
    from playhead.index.sidecars import Sidecar

__all__: list[str] = []

_THREADS = 16
_RECORD = 10240
_LOCAL = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/scratch", "/local", "/localscratch")  # noqa: S108


@rule(
    "indexes-root-unset",
    "warning",
    "Each node makes its own indexes of remote data at its start",
    10,
)
def indexes_root_unset(subject: Subject) -> Iterator[Seen]:
    """Remote data without a place for their indexes."""
    for named in subject.leaves:
        options = named.leaf.options
        is_remote = any(scheme(path) for paths in named.leaf.paths.values() for path in paths)
        if is_remote and options.indexes_root is None and options.index_pack is None:
            yield Seen(
                f"leaf {named.leaf.name} is remote, and there is neither indexes_root nor"
                " index_pack",
                str(subject.section.at("indexes_root")),
                diff(subject.section, add={"indexes_root": "/shared/indexes"}),
                "Name a folder on a file system that all nodes share",
                "fail" if options.indexed else None,
            )
            return


@rule("indexes-root-missing", "warning", "Indexes that were made elsewhere are not found", 11)
def indexes_root_missing(subject: Subject) -> Iterator[Seen]:
    """Folders of indexes that are not there."""
    for root, named in _roots(subject).items():
        if scheme(root) or Path(root).is_dir():
            continue
        if exists(root):
            yield Seen(
                f"{root} is not a folder",
                str(named.spot.at("indexes_root")),
                advice="Name a folder",
                severity="fail",
            )
            continue
        yield Seen(
            f"the folder {root} does not exist here",
            str(named.spot.at("indexes_root")),
            advice=f"Mount it, or make it by `playhead index {subject.command}`",
            severity="fail" if named.leaf.options.indexed else None,
        )


@rule("indexes-root-local", "warning", "A folder of one node is empty on all others", 11)
def indexes_root_local(subject: Subject) -> Iterator[Seen]:
    """Folders of indexes that look as if each node had its own."""
    places = {*_LOCAL, tempfile.gettempdir()}
    for root, named in _roots(subject).items():
        inside = [place for place in places if Path(place) in (Path(root), *Path(root).parents)]
        if inside and not scheme(root):
            yield Seen(
                f"indexes_root {root} lies in {max(inside, key=len)}: each node has its own",
                str(named.spot.at("indexes_root")),
                advice=f"Use a shared folder, or stage it on every node at the start of each job:"
                f" `playhead prefetch --indexes-root {root} --source-indexes-root SHARED"
                f" {subject.config}`",
            )


@rule("indexes-root-remote", "fail", "Packs are mapped into memory, which no store can do")
def indexes_root_remote(subject: Subject) -> Iterator[Seen]:
    """Folders of indexes in a store."""
    for root, named in _roots(subject).items():
        if scheme(root):
            yield Seen(
                f"indexes_root {root} is not on a disk",
                str(named.spot.at("indexes_root")),
                advice=f"Run `playhead prefetch --indexes-root DIR {subject.command}`, and set"
                " indexes_root to DIR",
            )


@rule("index-shared", "fail", "Two files with one index are read by the offsets of one of them")
def index_shared(subject: Subject) -> Iterator[Seen]:
    """Sources that would have the same `.idx`, or one outside its root."""
    try:
        owners(sidecar for named, _ in subject.sources for sidecar in sidecars_of(named.leaf))
    except PlayheadError as error:
        what = str(error).partition(f" ({error.where})")[0].rstrip(".")
        yield Seen(what, error.where, advice=error.advice)


def _roots(subject: Subject) -> dict[str, Named]:
    roots: dict[str, Named] = {}
    for named in subject.leaves:
        root = named.leaf.options.indexes_root
        if root is not None:
            roots.setdefault(root, named)
    return roots


@rule("index-missing", "fail", "`indexed: true` demands offsets that were built before", 12)
def index_missing(subject: Subject) -> Iterator[Seen]:
    """Leaves with `indexed: true`, no pack, and no `.idx`."""
    yield from _sidecars(subject, "missing")
    for named in _without_packs(subject):
        whole = [path for path in named.leaf.paths.get("tar", ()) if not has_middle(path)]
        if whole:
            yield Seen(
                f"leaf {named.leaf.name} is indexed: true and has no pack, and {whole[0]} can have"
                " no .idx",
                str(named.place("tar")),
                diff(named.spot, remove=("indexed",)),
                f"Run `playhead index {subject.command}`, which builds its pack",
            )


@rule("index-stale", "fail", "Offsets of another file lead into the middle of records", 12)
def index_stale(subject: Subject) -> Iterator[Seen]:
    """`.idx` files whose last entry is not the size of the data as they are now."""
    yield from _sidecars(subject, "stale")


def _sidecars(subject: Subject, wanted: Literal["missing", "stale"]) -> Iterator[Seen]:
    for named, states in _sidecar_states(subject):
        bad = [(path, why) for path, (state, why) in states.items() if state == wanted]
        if bad:
            path, why = bad[0]
            yield Seen(
                f"{len(bad)} of {len(states)} indexes of leaf {named.leaf.name} are {wanted}:"
                f" {path}{why}",
                str(named.place()),
                advice=f"Run `playhead index {'--force ' * (wanted == 'stale')}{subject.command}`",
            )


def _sidecar_states(subject: Subject) -> list[tuple[Named, dict[str, tuple[str, str]]]]:
    known = subject.facts.get("sidecars")
    if known is None:
        known = subject.facts["sidecars"] = []
        with ThreadPoolExecutor(_THREADS) as pool:
            for named in _without_packs(subject):
                # What is asked for by name needs no offsets.
                some = [
                    one for one in _named_by(named) if one.kind == "jsonl" or not wants_get_batch()
                ]
                found = pool.map(_look, some)
                known.append(
                    (named, {one.idx: state for one, state in zip(some, found, strict=True)})
                )
    return known


def _without_packs(subject: Subject) -> list[Named]:
    """Leaves that say `indexed: true` and have no pack that is up to date."""
    return [
        named
        for state in pack_states(subject)
        if state.state in ("missing", "outdated")
        for named, _ in state.members
        if named.leaf.options.indexed
    ]


def _named_by(named: Named) -> list[Sidecar]:
    try:
        return list(sidecars_of(named.leaf))
    except PlayheadError:
        # Another rule says that one would lie outside its root.
        return []


def _look(sidecar: Sidecar) -> tuple[str, str]:
    """The state of an `.idx`, by its last entry alone: `fresh`, `missing`, `stale` or `unknown`."""
    try:
        count = access.size(sidecar.idx)
    except SourceNotFoundError:
        return "missing", ""
    except (PlayheadError, OSError) as error:
        return "unknown", str(error)
    if count < 8 or count % 8:
        return "stale", f" has {count} bytes, which are not whole entries"
    try:
        last = access.read_ranges(sidecar.idx, [count - 8], [8])[0]
        size = access.size(sidecar.path)
    except (PlayheadError, OSError) as error:
        return "unknown", str(error)
    sentinel = int(np.frombuffer(last, "<u8")[0])
    padded = sidecar.kind != "jsonl" and sentinel < size and sentinel % _RECORD == 0
    if sentinel == size or padded:
        return "fresh", ""
    return "stale", f" was made when {sidecar.path} had {sentinel} bytes; it has {size} now"


@rule(
    "index-time",
    "fail",
    "A training job does not wait for minutes of indexing unless it is asked to",
    29,
)
def index_time(subject: Subject) -> Iterator[Seen]:
    """Packs that would be built at the start for too long."""
    states = [state for state in pack_states(subject) if state.state in ("missing", "outdated")]
    seconds = sum(state.seconds for state in states)
    patient = any(options.auto_index for _, options, _, _ in subject.parts)
    if seconds > PATIENCE_SECONDS and not patient:
        yield Seen(
            f"{len(states)} packs are not built, which would take about {seconds / 60:.0f} minutes"
            " at the start",
            str(subject.section),
            advice=f"Run `playhead index {subject.command}` once",
        )


@rule("pack-not-built", "note", "The first start takes as long as building its packs")
def pack_not_built(subject: Subject) -> Iterator[Seen]:
    """Packs that training would build first."""
    missing = [state for state in pack_states(subject) if state.state == "missing"]
    if missing:
        seconds = sum(state.seconds for state in missing)
        yield Seen(
            f"{len(missing)} packs are not built yet, about {max(1, round(seconds))} s of work for"
            " the first process that starts",
            str(missing[0].target.path),
            advice=f"Run `playhead index {subject.command}` once",
        )


@rule("pack-outdated", "warning", "Data that changed are another training set than the one before")
def pack_outdated(subject: Subject) -> Iterator[Seen]:
    """Packs whose data changed since they were built."""
    for state in pack_states(subject):
        if state.state == "outdated":
            named = state.members[0][0]
            yield Seen(
                f"the files of leaf {named.leaf.name} changed since its pack"
                f" {state.target.path} was built",
                str(named.place()),
                advice=f"Run `playhead index {subject.command}`; a run that resumes says what"
                " changed",
            )


@rule("pack-damaged", "fail", "A pack is replaced whole, so damage comes from the disk", 13)
def pack_damaged(subject: Subject) -> Iterator[Seen]:
    """Packs that cannot be read."""
    for state in pack_states(subject):
        if state.state == "damaged" and state.error is not None:
            what = str(state.error).partition(" (")[0]
            yield Seen(
                what,
                str(state.target.path),
                advice=f"Remove it, and run `playhead index {subject.command}`",
            )


@rule("pack-undeclared", "fail", "A pack is used where `indexed` is true", 13)
def pack_undeclared(subject: Subject) -> Iterator[Seen]:
    """`index_pack` without `indexed: true`."""
    yield from faults_of(subject, "pack-undeclared")


@rule("pack-missing", "fail", "A declared pack is the only place that offsets come from", 13)
def pack_missing(subject: Subject) -> Iterator[Seen]:
    """Declared packs that are not there, or that nobody can read."""
    for named, error in _declared(subject)[1]:
        path = named.leaf.options.index_pack
        what = str(error).partition(f" ({error.where})")[0]
        advice = f"Run `playhead pack -o {path} {subject.command}`"
        if exists(path or ""):
            advice = (
                f"If its data are the same at other paths, run `playhead pack --rebind {path} -o"
                f" NEW {subject.command}` and name NEW; else `playhead pack --overwrite -o {path}"
                f" {subject.command}`"
            )
        yield Seen(
            f"leaf {named.leaf.name}: {what[:1].lower()}{what[1:]}: {path}",
            str(named.spot.at("index_pack")),
            advice=advice,
        )


@rule("pack-stale", "fail", "Offsets of other data lead to other samples", 14)
def pack_stale(subject: Subject) -> Iterator[Seen]:
    """Declared packs that do not belong to the data as they are now."""
    sources = {id(named.leaf): found for named, found in subject.sources}
    for named, pack in _declared(subject)[0]:
        found = sources.get(id(named.leaf))
        if found is None:
            continue
        try:
            why = why_declared_is_stale(pack, found)
        except PlayheadError as error:
            why = str(error)
        if why is not None:
            yield Seen(
                f"the pack of leaf {named.leaf.name} does not belong to its data: {why}",
                str(named.spot.at("index_pack")),
                advice=f"Run `playhead pack --overwrite -o {pack.path} {subject.command}`",
            )


@rule(
    "pack-without-offsets", "fail", "Without offsets members are fetched by their names alone", 16
)
def pack_without_offsets(subject: Subject) -> Iterator[Seen]:
    """Packs that name archives only, without batch requests."""
    packs = dict.fromkeys(
        pack.path for _, pack in _declared(subject)[0] if not pack.entry.has_offsets
    )
    for path in packs:
        if not wants_get_batch():
            yield Seen(
                f"the pack {path} has no offsets of members, and USE_AIS_GET_BATCH is not true",
                path,
                advice="Set USE_AIS_GET_BATCH=true for all processes, or build it again with"
                f" `playhead pack --overwrite -o {path} {subject.command}`, without"
                " --native-tar-paths-only",
            )


def _declared(
    subject: Subject,
) -> tuple[list[tuple[Named, LeafPack]], list[tuple[Named, PlayheadError]]]:
    """Declared packs that can be opened, and why others cannot."""
    known = subject.facts.get("declared")
    if known is None:
        known = subject.facts["declared"] = ([], [])
        for named, sources in subject.sources:
            path = sources.declared_pack
            if path is None:
                continue
            try:
                known[0].append((named, open_pack(path).leaf(named.leaf.key, sources.source)))
            except PlayheadError as error:
                known[1].append((named, error))
        if not subject.sources and subject.leaves:
            raise CannotRun("no leaf's files pair")
    return known
