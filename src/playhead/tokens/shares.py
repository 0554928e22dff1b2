"""Side files whose rows are looked at by many machines; the one that is last puts them together."""

from __future__ import annotations

import math
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

from playhead.index.build import WAIT_SECONDS
from playhead.index.lock import build_lock
from playhead.index.partials import remove_partials
from playhead.tokens.jobs import Stretch
from playhead.tokens.partials import gaps, stored_stretches, write_stretch
from playhead.tokens.side_columns import (
    find_columns,
    known_rows,
    measure_rows,
    named_os_errors,
    new_columns,
    open_columns,
    side_path,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.blend.leaf import Leaf
    from playhead.index.build_pace import Progress
    from playhead.index.pack import LeafPack
    from playhead.index.part_work import Share
    from playhead.index.pool import Workers
    from playhead.tokens.side_columns import Measure

__all__ = ["measure_share", "pieces"]

# Starting takes longer than to look at fewer.
_PIECE_BYTES = 4 << 20


def pieces(pack: LeafPack, path: Path, count: int) -> dict[int, Stretch]:
    """Divide the rows of a leaf among parts: the rows of each that has any, by its number.

    Leaves of few rows are not divided; which part has them depends on their names.

    Parameters
    ----------
    pack
        The leaf's columns.
    path
        The side file.
    count
        How many parts there are.
    """
    num_rows = pack.num_rows
    size = int(pack.row_size.sum(dtype="int64"))
    wanted = max(1, min(count, num_rows, math.ceil(size / _PIECE_BYTES)))
    first = zlib.crc32(path.name.encode())
    return {
        (first + place) % count + 1: Stretch(
            num_rows * place // wanted, num_rows * (place + 1) // wanted
        )
        for place in range(wanted)
    }


def measure_share(
    leaf: Leaf,
    pack: LeafPack,
    measure: Measure,
    share: Share,
    *,
    workers: Workers = 1,
    progress: Progress | None = None,
    force: bool = False,
    wait_seconds: float = WAIT_SECONDS,
) -> tuple[int, ...]:
    """Do one part of a leaf's side file, and write it if all parts are done.

    Parameters
    ----------
    leaf
        The source.
    pack
        Its columns.
    measure
        What is found out of each row.
    share
        Which part this is.
    workers
        How many threads or processes may work; or a cluster.
    progress
        Told the leaf's name, and how many of how many rows are done.
    force
        Look at all rows of this part, whatever is known of them.
    wait_seconds
        How long to wait for another process that puts the same file together.

    Returns
    -------
    tuple
        Numbers of the parts that are missing; empty if the side file is up to date.

    Raises
    ------
    DataError, StaleIndexError, BuildError
        As `open_columns`.
    """
    path = side_path(leaf, pack, measure.kind, measure.digest)
    before = _written_at(path)
    mine = pieces(pack, path, share.count)
    known = [] if force else [known_rows(leaf, pack, measure)]
    with named_os_errors(path):
        done = [] if force else [*known, *stored_stretches(path, pack)]
        own = mine.get(share.number, Stretch(0, 0))
        for gap in gaps(done, own):
            columns = new_columns(measure, gap.stop - gap.start)
            measure_rows(
                leaf,
                pack,
                measure,
                [gap],
                columns,
                first=gap.start,
                workers=workers,
                progress=progress,
            )
            write_stretch(path, pack, gap, columns, measure.digest)
    done = [*known, *stored_stretches(path, pack)]
    missing = tuple(sorted(number for number, piece in mine.items() if any(gaps(done, piece))))
    is_new = not force or _written_at(path) != before
    if is_new and find_columns(leaf, pack, measure.kind, measure.digest) is not None:
        # Another part was faster.
        remove_partials(path)
        return ()
    if missing:
        return missing
    if force:
        with named_os_errors(path), build_lock(path, wait_seconds=wait_seconds):
            # Another part may have been faster meanwhile.
            if _written_at(path) == before:
                path.unlink(missing_ok=True)
    open_columns(leaf, pack, measure, workers=workers, wait_seconds=wait_seconds)
    return ()


def _written_at(path: Path) -> int | None:
    """When a side file was written, in nanoseconds; None if there is none."""
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return None
