"""Packs of NeMo that a config names: sources of offsets, checked against the data."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import IndexFileError, StaleIndexError
from playhead.index.idxpack2 import IDXPACK_FIX, IdxPack, open_idxpack
from playhead.index.pack_kind import kind_of_pack
from playhead.index.source import stamps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.formats import SourcePair
    from playhead.index.idxpack2 import Segment

__all__ = ["check_foreign", "is_foreign", "member_offsets"]


def is_foreign(pack: str) -> bool:
    """Whether there is a pack of NeMo's kind; false for what does not exist."""
    try:
        stat = Path(pack).stat()
    except (OSError, ValueError):
        return False
    return _is_foreign(pack, stat.st_ino, stat.st_size, stat.st_mtime_ns)


# Very many leaves may name one pack.
@lru_cache(maxsize=64)
def _is_foreign(pack: str, *identity: int) -> bool:  # noqa: ARG001 - the key
    try:
        return kind_of_pack(pack) == "nemo"
    except OSError:
        return False


def check_foreign(pack: str, pairs: Sequence[SourcePair], leaf: str) -> None:
    """Check that a pack of NeMo knows the files of a leaf, as they are now.

    Parameters
    ----------
    pack
        The pack.
    pairs
        The leaf's files.
    leaf
        Its name, for messages.

    Raises
    ------
    IndexFileError
        If it cannot be used: of another version, damaged, without offsets of members, or for other
        data.
    StaleIndexError
        If a file has another size.
    """
    opened = open_idxpack(pack)
    tars = {path for pair in pairs for path in pair.tars}
    paths = [path for pair in pairs for path in (pair.manifest, *pair.tars)]
    known = [(path, segment) for path in paths if (segment := _find(opened, path)) is not None]
    if len(known) < len(paths):
        missing = next(path for path in paths if _find(opened, path) is None)
        raise IndexFileError(
            f"the pack of NeMo does not hold {missing} of leaf {leaf}", where=pack, fix=IDXPACK_FIX
        )
    for (path, segment), now in zip(known, stamps(paths), strict=True):
        if path in tars and not segment.has_offsets:
            raise IndexFileError(
                f"the pack of NeMo has no member offsets for {path} of leaf {leaf}",
                where=pack,
                fix="Build one with `playhead pack --native-tar-paths-only` for batch requests, or"
                " without that option, and name it as index_pack",
            )
        if segment.has_offsets and segment.size != now.size:
            raise StaleIndexError(
                f"the pack of NeMo was made for {segment.size:,} bytes of {path}, which has"
                f" {now.size:,}",
                where=pack,
                fix=IDXPACK_FIX,
            )


def member_offsets(pack: str, path: str) -> NDArray | None:
    """Return where the members of an archive begin, headers included; None if it is not known."""
    opened = open_idxpack(pack)
    segment = _find(opened, path)
    return None if segment is None or not segment.has_offsets else opened.offsets(segment)


def _find(pack: IdxPack, path: str) -> Segment | None:
    """What a pack knows of a file, whose path may be written there as it stands in a config."""
    return pack.find(path) or pack.find(os.path.relpath(path))
