"""One pack for all leaves of a blend, at a path of one's choice."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import ConfigError, IndexFileError, NotSupportedError
from playhead.index.build import WAIT_SECONDS
from playhead.index.build_pace import Pace
from playhead.index.build_pack import PackSettings, plan_pack, write_plan
from playhead.index.build_result import PackResult, is_done, named_os_errors
from playhead.index.build_shares import build_share
from playhead.index.build_target import Target, leaf_sources
from playhead.index.build_workers import scan_plans
from playhead.index.lock import build_lock
from playhead.index.pack import Pack, open_pack
from playhead.index.pack_kind import kind_of_pack
from playhead.index.partials import remove_partials, stored_scans
from playhead.paths import exists, scheme

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.errors import PlayheadError
    from playhead.index.build_pace import Progress
    from playhead.index.build_pack import PackPlan
    from playhead.index.build_rows import Rows
    from playhead.index.part_work import Share
    from playhead.index.pool import Workers

__all__ = ["blend_target", "build_blend_pack", "build_blend_share", "check_output"]

# About what starting a process takes.
_SECONDS_A_WORKER = 0.5

_log = logging.getLogger("playhead")


def blend_target(path: str, leaves: Sequence[Leaf]) -> Target:
    """Describe the pack of a blend: leaves that are the same data are one in it.

    Parameters
    ----------
    path
        Its file.
    leaves
        The leaves, whatever pack they declare themselves.

    Raises
    ------
    ConfigError
        If the files of a leaf do not pair.
    """
    members = {sources.source: sources for sources in map(leaf_sources, leaves)}
    return Target(path=Path(path).absolute(), members=list(members.values()))


def check_output(path: str, *, overwrite: bool) -> None:
    """Check that a pack may be written to a path.

    Parameters
    ----------
    path
        What people gave.
    overwrite
        Whether a pack that is there may be replaced.

    Raises
    ------
    ConfigError
        If something is there that may not, or a file cannot be there.
    """
    if scheme(path):
        raise NotSupportedError(
            "a pack is mapped into memory, which this cannot be",
            where=path,
            fix="Give the path of a disk; copy the pack from there",
        )
    target = Path(path)
    if target.is_dir():
        raise ConfigError("this is a folder", where=path, fix="Give the path of a file in it")
    if not exists(target):
        return
    if not overwrite:
        raise ConfigError(
            "there is a file already", where=path, fix="Give another path, or --overwrite"
        )
    if kind_of_pack(target) == "other":
        raise ConfigError(
            "the file that is there is not a pack, and is not replaced",
            where=path,
            fix="Give another path, or remove it",
        )


def build_blend_pack(
    target: Target,
    settings: PackSettings,
    *,
    overwrite: bool = False,
    workers: Workers = 1,
    progress: Progress | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> Pack:
    """Build the pack of a blend, whole or not at all.

    Parameters
    ----------
    target
        The pack.
    settings
        How to make it.
    overwrite
        Replace the pack that is there; what it still says rightly is taken over unread.
    workers
        Processes that read; or a cluster.
    progress
        Told about the work.
    wait_seconds
        How long to wait for another process that builds the same pack.

    Raises
    ------
    ConfigError
        If a file is there, and `overwrite` is false or it is no pack.
    DataError, BuildError
        If a source cannot be used, or the pack cannot be written.
    """
    check_output(str(target.path), overwrite=overwrite)
    pace = Pace(None, "", progress)

    def write(plan: PackPlan, scans: Iterable[Iterator[Rows]]) -> None:
        with (
            named_os_errors(target),
            build_lock(target.path, wait_seconds=wait_seconds, on_wait=_log.warning),
        ):
            check_output(str(target.path), overwrite=overwrite)
            write_plan(plan, scans, pace)
            remove_partials(target.path)

    with named_os_errors(target):
        target.path.parent.mkdir(parents=True, exist_ok=True)
        plan = plan_pack(target, _usable(target.path), settings)
        pace.add(sum(plan.costs))
        stored = [stored_scans(plan)]
        for _, error in scan_plans([plan], _worth(workers, plan), write, _log.warning, stored):
            _raise(error)
    return open_pack(target.path)


def _worth(workers: Workers, plan: PackPlan) -> Workers:
    """So many processes as the work is worth: starting one takes time too."""
    if not isinstance(workers, int):
        return workers
    return min(workers, math.ceil(sum(plan.costs) / _SECONDS_A_WORKER)) or 1


def build_blend_share(
    target: Target,
    settings: PackSettings,
    share: Share,
    *,
    overwrite: bool = False,
    workers: Workers = 1,
    wait_seconds: float = WAIT_SECONDS,
) -> PackResult:
    """Do one part of what the pack of a blend needs, and write it if all parts are done.

    Parameters
    ----------
    target, settings, overwrite, workers, wait_seconds
        As in `build_blend_pack`; a pack that is as it is wanted may always be there.
    share
        Which part this is.

    Raises
    ------
    ConfigError
        If another file is there, and `overwrite` is false or it is no pack.
    """
    pack = _usable(target.path)
    if pack is None or not is_done(target, pack, settings):
        check_output(str(target.path), overwrite=overwrite)
    (result,) = build_share(
        [target],
        share,
        settings,
        workers=workers,
        # What cannot be read is replaced as a whole.
        force=pack is None and target.path.exists(),
        wait_seconds=wait_seconds,
    )
    return result


def _raise(error: PlayheadError | None) -> None:
    if error is not None:
        raise error


def _usable(path: Path) -> Pack | None:
    """The pack that is there, if it can still be read."""
    if not path.exists():
        return None
    try:
        return open_pack(path)
    except IndexFileError:
        return None
