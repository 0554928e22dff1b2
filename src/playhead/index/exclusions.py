"""Rows that are left out for good: a side file of each pack, which rebuilding the pack keeps."""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from playhead.errors import IndexFileError
from playhead.index.lock import build_lock
from playhead.storage.atomic import atomic_write
from playhead.storage.seal import OPEN_SEAL, SEAL_KEY, sealed, why_broken

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.index.pack import LeafPack

__all__ = [
    "Exclusion",
    "Exclusions",
    "Matches",
    "RowName",
    "add_exclusions",
    "exclusions_path",
    "find_exclusions",
    "match_rows",
    "moved_exclusions",
    "newest_exclusion",
    "now_ms",
]

_VERSION_KEY, _VERSION = b"playhead.exclusions", b"2"
_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("shard", pa.string()),
        ("offset", pa.int64()),
        ("crc", pa.uint32()),
        ("reason", pa.string()),
        ("at", pa.int64()),
    ],
    metadata={_VERSION_KEY: _VERSION},
)
_WAIT_SECONDS = 60.0


class RowName(msgspec.Struct, frozen=True):
    """What names a row whatever its number: a line of `bad_samples.jsonl`, as far as it matters."""

    shard: str
    """Path of the manifest that holds it."""
    byte: int
    """Where it begins there."""
    row_crc: int
    """CRC-32 of its bytes."""
    reason: str = ""
    """Why it is left out."""
    leaf: str = ""
    """Key of the leaf that it was found in."""
    id: str = ""
    """What the sample is called."""


class Exclusion(NamedTuple):
    """A row that is left out; one row of the side file."""

    source: str
    """Identity of the leaf's files in the pack."""
    shard: str
    """Path of the manifest that holds it."""
    offset: int
    """Where it begins there."""
    crc: int
    """CRC-32 of its bytes: a row that has changed is not left out."""
    reason: str
    """Why it is left out."""
    at: int
    """When it was, in milliseconds since 1970; later than all that were left out before."""


class Exclusions(NamedTuple):
    """The rows of a leaf that are left out."""

    rows: NDArray[np.int64]
    """Shape (K,), ascending."""
    at: NDArray[np.int64]
    """When each was left out, `Exclusion.at`, shape (K,)."""
    stale: int
    """Rows that were left out and are other rows by now, which are not."""


class Matches(NamedTuple):
    """Which rows of a leaf some names mean."""

    rows: list[list[int]]
    """For each name the rows; several where a manifest is declared twice."""
    changed: list[bool]
    """For each name whether there is a row at its place and it is another one."""


def exclusions_path(pack: str | Path) -> Path:
    """Name the side file of a pack.

    Examples
    --------
    >>> print(exclusions_path("/indexes/train.idxpack"))
    /indexes/train.idxpack.excluded.arrow
    """
    return Path(f"{pack}.excluded.arrow")


def find_exclusions(leaf: LeafPack) -> Exclusions | None:
    """Return the rows of a leaf that are left out; None where there is none.

    Raises
    ------
    IndexFileError
        If the side file is damaged.
    """
    found = _read(leaf.path).get(leaf.entry.source)
    if not found:
        return None
    names = [RowName(one.shard, one.offset, one.crc) for one in found]
    matches = match_rows(leaf, names)
    first: dict[int, int] = {}
    for rows, one in zip(matches.rows, found, strict=True):
        for row in rows:
            first[row] = min(one.at, first.get(row, one.at))
    ordered = sorted(first)
    return Exclusions(
        rows=np.array(ordered, np.int64),
        at=np.array([first[row] for row in ordered], np.int64),
        stale=sum(not rows for rows in matches.rows),
    )


def match_rows(leaf: LeafPack, names: Sequence[RowName]) -> Matches:
    """Find rows by manifest, place and checksum.

    Parameters
    ----------
    leaf
        Where to look.
    names
        What to look for.
    """
    wanted: dict[tuple[str, int], list[int]] = {}
    for number, name in enumerate(names):
        wanted.setdefault((name.shard, name.byte), []).append(number)
    matches = Matches([[] for _ in names], [False] * len(names))
    uris = leaf.shards.uris
    manifests = {shard for shard, _ in wanted}
    shards = [number for number, uri in enumerate(uris) if uri in manifests]
    if not shards:
        return matches
    offsets = np.array(sorted({offset for _, offset in wanted}), np.int64)
    candidates = np.flatnonzero(np.isin(leaf.shard, shards))
    candidates = candidates[np.isin(leaf.row_offset[candidates], offsets)]
    facts = zip(
        candidates.tolist(),
        leaf.shard[candidates].tolist(),
        leaf.row_offset[candidates].tolist(),
        leaf.row_crc[candidates].tolist(),
        strict=True,
    )
    for row, shard, offset, crc in facts:
        for number in wanted.get((uris[shard], offset), ()):
            if names[number].row_crc == crc:
                matches.rows[number].append(row)
            else:
                matches.changed[number] = True
    return matches


def newest_exclusion(packs: Iterable[str]) -> int:
    """Return when the last row of some packs was left out; 0 where none was."""
    return max(
        (one.at for pack in packs for found in _read(pack).values() for one in found), default=0
    )


def add_exclusions(
    pack: str, exclusions: Iterable[Exclusion], *, wait_seconds: float = _WAIT_SECONDS
) -> int:
    """Leave out more rows; those that are left out already keep their time.

    Parameters
    ----------
    pack
        The pack whose rows they are.
    exclusions
        The rows. `at` is raised where it is not later than what is there.
    wait_seconds
        How long to wait for a process that holds the pack's lock.

    Returns
    -------
    int
        How many are new.

    Raises
    ------
    BuildError
        If another process holds the lock for too long, or the folder cannot be written.
    IndexFileError
        If the side file is damaged.
    """
    with build_lock(Path(pack), wait_seconds=wait_seconds):
        old = [one for found in _read(pack).values() for one in found]
        known = {one[:4] for one in old}
        last = max((one.at for one in old), default=0)
        new: list[Exclusion] = []
        for one in exclusions:
            if one[:4] not in known:
                known.add(one[:4])
                new.append(one._replace(at=max(one.at, last + 1)))
        if new:
            _write(exclusions_path(pack), old + new)
    return len(new)


def moved_exclusions(old: LeafPack, source: str, uris: Sequence[str]) -> list[Exclusion]:
    """Return what is left out of a leaf, as it is called where its data lie now.

    Parameters
    ----------
    old
        The leaf where the data were.
    source, uris
        Identity and paths of the same files where they are now.
    """
    now = dict(zip(old.shards.uris, uris, strict=True))
    return [
        one._replace(source=source, shard=now[one.shard])
        for one in _read(old.path).get(old.entry.source, [])
        if one.shard in now
    ]


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _write(path: Path, rows: Sequence[Exclusion]) -> None:
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)
    ]
    schema = _SCHEMA.with_metadata({**_SCHEMA.metadata, SEAL_KEY: OPEN_SEAL})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as out:
        out.write_batch(pa.record_batch(columns, schema=schema))
    with atomic_write(path) as file:
        file.writelines(sealed(memoryview(sink.getvalue())))


def _read(pack: str) -> Mapping[str, list[Exclusion]]:
    """Return all that is left out of a pack, by source."""
    path = exclusions_path(pack)
    try:
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return _read_once(str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns)


# A pack of many leaves is asked for each of them.
@lru_cache(maxsize=64)
def _read_once(path: str, *identity: int) -> Mapping[str, list[Exclusion]]:  # noqa: ARG001 - the key
    try:
        data = Path(path).read_bytes()
        why = why_broken(memoryview(data))
        if why is not None:
            raise _unreadable(path, why)
        with pa.ipc.open_file(pa.py_buffer(data)) as reader:
            schema = reader.schema
            is_ours = _version_of(schema) == _version_of(_SCHEMA) and schema.equals(_SCHEMA)
            rows = reader.read_all().to_pylist() if is_ours else []
    except IndexFileError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    if not is_ours:
        version = _version_of(schema)
        raise _unreadable(path, f"it is of version {version!r}" if version else "it is not ours")
    found: dict[str, list[Exclusion]] = {}
    for row in rows:
        one = Exclusion(**row)
        found.setdefault(one.source, []).append(one)
    return found


def _version_of(schema: pa.Schema) -> bytes | None:
    return (schema.metadata or {}).get(_VERSION_KEY)


def _unreadable(path: str, why: str) -> IndexFileError:
    return IndexFileError(
        f"the list of rows that are left out cannot be read: {why}",
        where=path,
        fix="Restore it, or remove it and run `playhead index --exclude` again",
    )
