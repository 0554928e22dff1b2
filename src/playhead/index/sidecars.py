"""Sidecars: which data file has which `.idx`, whether it is up to date, and how it is built."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from playhead.errors import BuildError, NotSupportedError, PlayheadError, StorageError
from playhead.index.idx import IdxSummary, summarize_idx, write_idx_blocks
from playhead.index.jsonl import iter_jsonl_offsets
from playhead.index.source import check_unchanged, stamp
from playhead.index.tar import Layout, head_offsets, iter_tar_offsets
from playhead.index.tarhop import is_zero_from
from playhead.storage import access
from playhead.storage.compression import has_middle

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Kind", "Sidecar", "build_sidecar", "ends_right", "is_fresh"]

Kind: TypeAlias = Literal["jsonl", "nemo_tar", "wds_tar"]
"""What a data file is: lines, a tar with a member a sample, or a tar with two (data and JSON)."""

_LAYOUTS: Mapping[Kind, Layout] = {"nemo_tar": "nemo", "wds_tar": "shar"}
# Where Lhotse's sentinel of a tar is not the file's size, it is a multiple of this.
_RECORD = 10240


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Sidecar:
    """A data file and the `.idx` that belongs to it."""

    path: str
    """The data file."""
    kind: Kind
    """What it is."""
    idx: str
    """Where its `.idx` is, or will be."""


def is_fresh(sidecar: Sidecar) -> bool:
    """Say whether an `.idx` exists, is whole, and belongs to the data as they are now.

    Its offsets increase, its sentinel is the size of the data file, it is not older than that
    file where both are local, and its first entries are where the samples begin: an `.idx` that
    pairs the members of a tar that has one member a sample does not pass.

    Parameters
    ----------
    sidecar
        The data file and its `.idx`.

    Raises
    ------
    StorageError
        If a store cannot be asked: nobody knows then.
    """
    try:
        if _is_older(sidecar):
            return False
        summary = summarize_idx(sidecar.idx)
        return ends_right(sidecar, summary.sentinel, access.size(sidecar.path)) and _begins_right(
            sidecar, summary
        )
    except StorageError:
        raise
    except (OSError, ValueError):
        return False


def build_sidecar(sidecar: Sidecar) -> int:
    """Write the `.idx` of a data file, in bounded memory, whole or not at all.

    Parameters
    ----------
    sidecar
        The data file and its `.idx`.

    Returns
    -------
    int
        The number of samples.

    Raises
    ------
    SourceNotFoundError
        There is no such data file.
    NotSupportedError
        It is compressed, or a pipe.
    ConfigError
        It is a folder or a pipe, or cannot be a path.
    ArchiveError
        It is a tar that cannot be indexed.
    BuildError
        It changed meanwhile, or the `.idx` cannot be written.
    """
    path = sidecar.path
    if not has_middle(path):
        raise NotSupportedError(
            "a compressed file or a pipe has no byte offsets",
            where=path,
            fix="Decompress it, or write what comes out of the pipe into a file",
        )
    before = stamp(path)
    try:
        if sidecar.kind == "jsonl":
            blocks = iter_jsonl_offsets(path)
        else:
            blocks = iter_tar_offsets(path, _LAYOUTS[sidecar.kind])
        records = write_idx_blocks(sidecar.idx, blocks)
    except PlayheadError:
        raise
    except OSError as error:
        if error.filename == path:
            raise BuildError(f"the file cannot be read: {error.strerror}", where=path) from error
        raise BuildError(
            f"the index cannot be written: {error.strerror}",
            where=sidecar.idx,
            fix="Give `--indexes-root DIR`, a folder with space left that you may write to",
        ) from error
    check_unchanged(path, before)
    # A source from a machine whose clock is ahead would look newer than its index for ever.
    if _are_local(sidecar) and os.stat(sidecar.idx).st_mtime_ns < before.mtime_ns:  # noqa: PTH116
        os.utime(sidecar.idx, ns=(before.mtime_ns, before.mtime_ns))
    return records


def _are_local(sidecar: Sidecar) -> bool:
    return not access.is_remote(sidecar.path) and not access.is_remote(sidecar.idx)


def _is_older(sidecar: Sidecar) -> bool:
    """Whether an `.idx` is older than its file; clocks of stores and disks are not compared."""
    if not _are_local(sidecar):
        return False
    written = os.stat(sidecar.idx).st_mtime_ns  # noqa: PTH116  (there are 100,000 of them)
    return os.stat(sidecar.path).st_mtime_ns > written  # noqa: PTH116


def ends_right(sidecar: Sidecar, sentinel: int, size: int) -> bool:
    """Say whether the last entry of an `.idx` belongs to its data file.

    Parameters
    ----------
    sidecar
        The data file and its `.idx`.
    sentinel
        The last entry.
    size
        Bytes of the data file as it is now. Lhotse's entry for a tar of pairs may be short of it
        by zeros that end the tar.

    Raises
    ------
    StorageError, OSError
        If the end of the tar cannot be read.
    """
    if sentinel == size:
        return True
    return (
        sidecar.kind == "wds_tar"
        and sentinel < size
        and sentinel % _RECORD == 0
        and is_zero_from(sidecar.path, sentinel)
    )


def _begins_right(sidecar: Sidecar, summary: IdxSummary) -> bool:
    head = summary.head[: summary.records]
    if sidecar.kind != "jsonl":
        return head == head_offsets(sidecar.path, _LAYOUTS[sidecar.kind])
    if not head:
        return summary.sentinel == 0
    if len(head) == 1:
        return head[0] == 0
    return head[0] == 0 < head[1] and access.read_ranges(sidecar.path, [head[1] - 1], [1]) == [
        b"\n"
    ]
