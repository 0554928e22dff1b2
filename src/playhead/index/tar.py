"""What a tar archive's `.idx` holds, for both layouts, and the members themselves."""

from __future__ import annotations

from array import array
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from playhead.errors import ArchiveError
from playhead.index.tarhop import Archive
from playhead.storage.tarheader import BLOCK

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.index.tarhop import Member

__all__ = [
    "Layout",
    "TarMembers",
    "guess_layout",
    "head_offsets",
    "iter_tar_offsets",
    "scan_tar",
    "tar_offsets",
]

Layout: TypeAlias = Literal["nemo", "shar"]
"""`nemo`: one member a sample. `shar`: two members a sample, the data and their JSON."""

# `tarfile` reads a stream in records of this size, which is where Lhotse's sentinel stops.
_RECORD = 20 * BLOCK
_PIECE = 1 << 16
# Three headers are looked at in each of very many archives.
_HEAD_BLOCK = 16 << 10
_AS_NEMO = "If one member is one sample, index it with `--layout nemo`"
_METADATA = (".json", ".nometa")


@dataclass(frozen=True, kw_only=True, slots=True)
class TarMembers:
    """The regular members of an archive, as columns of N entries."""

    path: str
    """The archive."""
    names: list[str]
    """Complete names; bytes that are not UTF-8 are surrogates."""
    header: NDArray[np.int64]
    """(N,) first byte of each member's first header block, extension headers included."""
    payload: NDArray[np.int64]
    """(N,) first byte of each payload."""
    size: NDArray[np.int64]
    """(N,) bytes of payload."""
    end: int
    """First byte after the last member: where the end mark begins, if there is one."""
    file_size: int
    """Bytes of the file, everything behind the end mark included."""


def scan_tar(path: str | os.PathLike[str]) -> TarMembers:
    """Find every regular member of an archive.

    Parameters
    ----------
    path
        An archive: a path or a URI. Where it is compressed, offsets are those of the tar.

    Raises
    ------
    SourceNotFoundError
        There is no such file.
    ArchiveError
        The archive is damaged, cut short or of a kind that cannot be read member by member; the
        message names the member and the byte.
    """
    archive = Archive(path)
    names: list[str] = []
    header, payload, size = array("q"), array("q"), array("q")
    for member in archive.hop():
        names.append(member.name)
        header.append(member.header)
        payload.append(member.payload)
        size.append(member.size)
    return TarMembers(
        path=archive.path,
        names=names,
        header=np.array(header, np.int64),
        payload=np.array(payload, np.int64),
        size=np.array(size, np.int64),
        end=archive.end,
        file_size=archive.size,
    )


def tar_offsets(members: TarMembers, layout: Layout) -> NDArray[np.uint64]:
    """Make the entries of an archive's `.idx`.

    Parameters
    ----------
    members
        What `scan_tar` found.
    layout
        `nemo`: an entry per member, then the size of the file. `shar`: an entry per pair of
        members, then the sentinel of Lhotse 2.0, which is the size of the file or, where the end
        mark lies across two 10,240-byte records, one record less.

    Returns
    -------
    NDArray[np.uint64]
        Shape (samples + 1,).

    Raises
    ------
    ArchiveError
        The layout is `shar` and the members are no pairs.
    """
    if layout == "nemo":
        starts = members.header
    else:
        _check_pairs(members.path, members.names, 0)
        _check_even(members.path, len(members.names))
        starts = members.header[::2]
    sentinel = _sentinel(members.end, members.file_size, layout)
    return np.append(starts, sentinel).astype(np.uint64)


def iter_tar_offsets(path: str | os.PathLike[str], layout: Layout) -> Iterator[NDArray[np.uint64]]:
    """Give the entries of an archive's `.idx` in pieces: memory does not grow with the archive.

    Parameters
    ----------
    path
        An archive that is not compressed.
    layout
        As for `tar_offsets`.

    Yields
    ------
    NDArray[np.uint64]
        The next entries; the last entry of the last piece is the sentinel.

    Raises
    ------
    SourceNotFoundError, ArchiveError
        As for `scan_tar` and `tar_offsets`.
    """
    archive = Archive(path)
    seen = 0
    with closing(archive.hop()) as members:
        while piece := list(islice(members, _PIECE)):
            starts = np.fromiter((member.header for member in piece), np.uint64, len(piece))
            if layout == "shar":
                _check_pairs(archive.path, [member.name for member in piece], seen)
                starts = starts[::2]
            seen += len(piece)
            yield starts
    if layout == "shar":
        _check_even(archive.path, seen)
    yield np.array([_sentinel(archive.end, archive.size, layout)], np.uint64)


def head_offsets(path: str | os.PathLike[str], layout: Layout) -> tuple[int, ...]:
    """Say what the first two entries of an archive's `.idx` have to be, from three headers.

    An `.idx` of the other layout has the right size and sentinel: its second entry gives it away.

    Parameters
    ----------
    path
        An archive that is not compressed.
    layout
        As for `tar_offsets`.

    Returns
    -------
    tuple[int, ...]
        At most two entries, without the sentinel: fewer if there are fewer samples.
    """
    members = _first_members(path)
    step = 1 if layout == "nemo" else 2
    return tuple(member.header for member in members[::step])[:2]


def guess_layout(path: str | os.PathLike[str]) -> Layout:
    """Tell from the first two members what one sample of an archive is.

    Parameters
    ----------
    path
        An archive that is not compressed.

    Returns
    -------
    Layout
        `shar` if they are one sample's data and JSON, else `nemo`.
    """
    members = _first_members(path)
    return "shar" if len(members) > 1 and _are_pair(members[0].name, members[1].name) else "nemo"


def _first_members(path: str | os.PathLike[str]) -> list[Member]:
    with closing(Archive(path, _HEAD_BLOCK).hop()) as members:
        return list(islice(members, 3))


def _sentinel(end: int, file_size: int, layout: Layout) -> int:
    if layout == "nemo":
        return file_size
    return min(file_size, -(-(end + BLOCK) // _RECORD) * _RECORD)


def _check_pairs(path: str, names: Sequence[str], first: int) -> None:
    for i, (one, other) in enumerate(zip(names[::2], names[1::2], strict=False)):
        if not _are_pair(one, other):
            raise ArchiveError(
                f"the members {first + 2 * i} and {first + 2 * i + 1} are not one sample: "
                f"{one!r} and {other!r}",
                where=path,
                fix=_AS_NEMO,
            )


def _check_even(path: str, members: int) -> None:
    if members % 2:
        raise ArchiveError(
            f"the archive holds {members:,} members, which are not pairs", where=path, fix=_AS_NEMO
        )


def _are_pair(one: str, other: str) -> bool:
    if one.endswith(_METADATA) == other.endswith(_METADATA):
        return False
    return one.rpartition(".")[0] == other.rpartition(".")[0] or _key(one) == _key(other)


def _key(name: str) -> str:
    """Cut a name at the first dot behind its folder, as WebDataset does."""
    folder, slash, base = name.rpartition("/")
    return folder + slash + base.partition(".")[0]
