"""Rules on the files that a blend names."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from playhead.check.preflight.changes import diff, written
from playhead.check.preflight.files import lost_files, without_secrets
from playhead.check.preflight.packs import pack_states
from playhead.check.preflight.reading import faults_of
from playhead.check.preflight.rule import Seen, rule
from playhead.errors import PlayheadError
from playhead.index.source import stamps
from playhead.paths import scheme
from playhead.storage import access
from playhead.storage.access import OBJECT_SCHEMES
from playhead.storage.compression import has_middle, is_archive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.check.preflight.subject import Named, Subject
    from playhead.index.build_target import LeafSources
    from playhead.index.pack import Pack

__all__: list[str] = []

_BLOCK = 512


@rule("entry-type", "fail", "The type of an entry says how its files are read", 20)
def entry_type(subject: Subject) -> Iterator[Seen]:
    """Types that are unknown, or that do not go with the keys beside them."""
    yield from faults_of(subject, "entry-type")


@rule("nemo-with-tars", "warning", "Who reads the config takes the entry for plain files", 20)
def nemo_with_tars(subject: Subject) -> Iterator[Seen]:
    """Entries of type `nemo` that are read as `nemo_tarred`."""
    for named in subject.leaves:
        if "tar" in named.leaf.paths and written(named.spot.at("type")) == "nemo":
            yield Seen(
                f"leaf {named.leaf.name} has the type `nemo` and names tars",
                str(named.spot.at("type")),
                diff(named.spot, add={"type": "nemo_tarred"}),
            )


@rule("source-missing", "fail", "Training ends at the first file that is not there")
def source_missing(subject: Subject) -> Iterator[Seen]:
    """Files that do not exist or cannot be looked at."""
    yield from faults_of(subject, "source-missing")
    asked = [(named, _files_of(named, sources)) for named, sources in subject.sources]
    # All at once, which is quick where nothing is missing: objects are asked for side by side.
    if lost_files([*dict.fromkeys(path for _, paths in asked for path in paths)]) is None:
        return
    for named, paths in asked:
        lost = lost_files(paths)
        if lost is not None:
            more = f" ({lost.lost} of {lost.of} files of the leaf are so)" if lost.of > 1 else ""
            what = str(lost.error).partition(" (")[0].rstrip(".")
            yield Seen(
                f"{what[:1].lower()}{what[1:]}: {lost.first}{more}",
                str(_place_of(named, lost.first)),
                advice=lost.error.advice,
            )


def _files_of(named: Named, sources: LeafSources) -> list[str]:
    extra = [field.path for field in named.leaf.extra_fields]
    paths = dict.fromkeys([*sources.paths, *extra])
    return [path for path in paths if not path.startswith("pipe:")]


def _place_of(named: Named, path: str) -> object:
    for role, paths in named.leaf.paths.items():
        if any(path.endswith(one) for one in paths):
            return named.place(role)
    return named.place()


@rule(
    "shard-pairing", "fail", "A manifest without its archive, or the other way, trains on less", 21
)
def shard_pairing(subject: Subject) -> Iterator[Seen]:
    """Manifests and archives whose counts or numbers differ."""
    yield from faults_of(subject, "shard-pairing")
    for named, error in subject.unpaired:
        what = str(error).partition(f" ({error.where})")[0].rstrip(".")
        role = "tar" if "tar" in named.leaf.paths else None
        yield Seen(what, str(named.place(role)), advice=error.advice)


@rule("empty-manifest", "warning", "A manifest that lost its rows takes its archive with it")
def empty_manifest(subject: Subject) -> Iterator[Seen]:
    """Manifests without rows: by its pack where that is up to date, else files without bytes."""
    packs = {
        id(named): state.pack
        for state in pack_states(subject)
        if state.state == "fresh"
        for named, _ in state.members
    }
    for named, sources in subject.sources:
        manifests, pack = [pair.manifest for pair in sources.pairs], packs.get(id(named))
        empty = _without_bytes(manifests) if pack is None else _without_rows(pack, sources)
        if empty:
            is_whole = len(empty) == len(manifests)
            yield Seen(
                f"{len(empty)} of {len(manifests)} manifests of leaf {named.leaf.name} hold no"
                f" rows: {empty[0]}",
                str(named.place()),
                advice="Restore them, or give the leaf the weight 0"
                if is_whole
                else "Restore them, or leave them and their archives out of the blend",
                severity="fail" if is_whole and named.leaf.weight else None,
            )


def _without_rows(pack: Pack, sources: LeafSources) -> list[str]:
    leaf = pack.leaf(sources.leaf.key, sources.source)
    table = leaf.shards
    return [table.uris[place] for place in leaf.entry.manifests if not table.rows[place]]


def _without_bytes(manifests: list[str]) -> list[str]:
    files = [path for path in manifests if not path.startswith("pipe:")]
    try:
        return [path for path, one in zip(files, stamps(files), strict=True) if not one.size]
    except PlayheadError:
        # Another rule says which file is missing.
        return []


@rule("tar-cut-short", "warning", "Members are missing behind the place where an archive is cut")
def tar_cut_short(subject: Subject) -> Iterator[Seen]:
    """Archives without an end mark, of leaves whose packs do not know their sizes."""
    unknown = [
        named
        for state in pack_states(subject)
        if state.state == "missing"
        for named, _ in state.members
    ]
    for named in unknown:
        tars = [path for path in named.leaf.paths.get("tar", ()) if has_middle(path)]
        for path in dict.fromkeys([*tars[:1], *tars[-1:]]):
            if not _has_end_mark(path):
                yield Seen(
                    f"the archive of leaf {named.leaf.name} does not end as one does: {path}",
                    str(named.place("tar")),
                    advice=f"Compare its size with the original, or run `playhead index"
                    f" {subject.command}`, which reads the headers of all members",
                )


def _has_end_mark(path: str) -> bool:
    try:
        size = access.size(path)
        last = access.read_ranges(path, [max(size - _BLOCK, 0)], [min(size, _BLOCK)])[0]
    except (PlayheadError, OSError):
        # What cannot be read is missing, which another rule says.
        return True
    return size % _BLOCK == 0 and not any(last)


@rule("cut-map-fns", "fail", "The samples would not be what the functions make of them", 3)
def cut_map_fns(subject: Subject) -> Iterator[Seen]:
    """Functions on cuts, which nothing calls."""
    for named in subject.leaves:
        if "cut_map_fns" in named.leaf.labels:
            yield Seen(
                "`cut_map_fns` is kept as a label: nothing calls it",
                str(named.spot.at("cut_map_fns")),
                diff(named.spot, remove=("cut_map_fns",)),
                "Do it in the dataset, or register an input type of your own",
            )


@rule("compression-unknown", "fail", "Nothing reads a file that is compressed in such a way", 4)
def compression_unknown(subject: Subject) -> Iterator[Seen]:
    """Files compressed by something else than gzip, bzip2, xz or zstd."""
    for named in subject.leaves:
        for role, paths in named.leaf.paths.items():
            bad = [path for path in paths if path.endswith(".lz4")]
            if bad:
                yield Seen(
                    f"{len(bad)} files are compressed by lz4, such as {bad[0]}",
                    str(named.place(role)),
                    advice="Decompress them, or compress them by gzip, bzip2, xz or zstd",
                )


@rule("without-middle", "warning", "Each archive has to be read whole to come to one sample", 4, 6)
def without_middle(subject: Subject) -> Iterator[Seen]:
    """Compressed archives and pipes, which are read from their start."""
    for named in subject.leaves:
        for role, paths in named.leaf.paths.items():
            whole = [path for path in paths if is_archive(path) and not has_middle(path)]
            if not whole:
                continue
            by_rows = named.options.locality == "rows"
            what = "pipes" if whole[0].startswith("pipe:") else "compressed archives"
            yield Seen(
                f"{len(whole)} {what} of leaf {named.leaf.name} have no byte offsets, such as"
                f" {whole[0]}"
                + (
                    ", and `locality` is rows: nearly every sample needs another one"
                    if by_rows
                    else ""
                ),
                str(named.place(role)),
                diff(subject.section, add={"locality": "shards"}) if by_rows else (),
                "Unpack them where space allows; else they are read whole into the cache on disk",
                "fail" if by_rows else None,
            )


@rule("server-ranges", "warning", "A server that ignores ranges sends whole files", 7)
def server_ranges(subject: Subject) -> Iterator[Seen]:
    """Servers of objects that give no parts of them."""
    asked: set[str] = set()
    for named in subject.leaves:
        for role, paths in named.leaf.paths.items():
            server = paths[0].split("/", 3)[2] if scheme(paths[0]) in OBJECT_SCHEMES else ""
            if not server or server in asked:
                continue
            asked.add(server)
            try:
                if access.has_ranges(paths[0]):
                    continue
            except (PlayheadError, OSError):
                # What cannot be looked at is missing, which another rule says.
                continue
            by_rows = named.options.locality == "rows"
            yield Seen(
                f"the server {server.rpartition('@')[2]} answers with whole files where parts"
                " are asked for",
                str(named.place(role)),
                diff(subject.section, add={"locality": "shards"}) if by_rows else (),
                "Use a server that knows ranges; else shards are read whole into the cache on disk",
                "fail" if by_rows else None,
            )


@rule("secret-in-path", "warning", "Packs, logs and reports hold the paths as they are written")
def secret_in_path(subject: Subject) -> Iterator[Seen]:
    """Passwords and signatures in URLs."""
    for named in subject.leaves:
        for role, paths in named.leaf.paths.items():
            shown = next((path for path in paths if without_secrets(path) != path), None)
            if shown is not None:
                yield Seen(
                    f"a URL of leaf {named.leaf.name} holds a secret: {without_secrets(shown)}",
                    str(named.place(role)),
                    advice="Give it by environment variables, such as AWS_ACCESS_KEY_ID",
                )


@rule("listed-twice", "note", "Data that are listed twice are drawn twice as often")
def listed_twice(subject: Subject) -> Iterator[Seen]:
    """Leaves of the same files."""
    count = Counter(sources.source for _, sources in subject.sources)
    for named, sources in subject.sources:
        if count[sources.source] > 1:
            yield Seen(
                f"the blend has the files of leaf {named.leaf.name} {count[sources.source]} times",
                str(named.place()),
            )
            count[sources.source] = 0
