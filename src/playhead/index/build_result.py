"""What became of a pack, and what everyone who builds packs asks first."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from playhead.errors import BuildError, PlayheadError
from playhead.index.build_target import target_is_fresh
from playhead.index.disk_errors import fix_of
from playhead.index.pack import Pack, PackVersionError, open_pack

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from playhead.blend.leaf import Leaf
    from playhead.index.build_pack import PackSettings
    from playhead.index.build_target import Target

__all__ = ["PackResult", "is_done", "named_os_errors", "readable_pack", "refusal_of", "result_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PackResult:
    """One pack after `build_packs`."""

    path: str
    """Its file; the name of the leaf where there can be none."""
    keys: list[str]
    """Keys of its leaves."""
    status: Literal["built", "fresh", "waiting", "failed"]
    """`fresh`: it was up to date and is as it was; `waiting`: other parts have to do theirs."""
    num_rows: int
    """Rows of all its leaves."""
    dropped: dict[str, int]
    """Rows left out, by reason."""
    error: PlayheadError | None = None
    """Why it failed."""
    missing_parts: tuple[int, ...] = ()
    """Numbers of the parts of the work that it waits for."""


@contextmanager
def named_os_errors(target: Target) -> Generator[None]:
    """Say what the system says (a full disk, a file that may not be read) as an error of ours.

    Raises
    ------
    BuildError
        That names the file, or the pack.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, PlayheadError):
            raise
        where = error.filename or target.path
        raise BuildError(
            f"the pack cannot be built: {error.strerror or error}",
            where=str(where),
            fix=fix_of(error),
        ) from error


def is_done(target: Target, pack: Pack, settings: PackSettings) -> bool:
    """Whether a pack is up to date, holds nothing else, and is as it is wanted.

    Parameters
    ----------
    target
        What it is to hold.
    pack
        The pack.
    settings
        Whether its rows are to be embedded, and members of archives to be found.
    """
    if len(pack.leaves) != len(target.members):
        return False
    for member in target.members:
        entry = pack.entry(member.source)
        has_offsets = settings.has_offsets or not any(pair.tars for pair in member.pairs)
        if entry is None or entry.has_offsets != has_offsets:
            return False
        if settings.embed_rows and not entry.embedded:
            return False
    return target_is_fresh(target, pack)


def readable_pack(path: Path) -> Pack | None:
    """Return a pack if there is one of this version.

    Raises
    ------
    IndexFileError
        If it is damaged: packs appear whole, so that says something of the disk.
    """
    if not path.exists():
        return None
    try:
        return open_pack(path)
    except PackVersionError:
        return None


def refusal_of(leaf: Leaf, error: PlayheadError) -> PackResult:
    """Say that a leaf gets no pack.

    Parameters
    ----------
    leaf
        The leaf.
    error
        Why not.
    """
    return PackResult(
        path=leaf.name, keys=[leaf.key], status="failed", num_rows=0, dropped={}, error=error
    )


def result_of(
    target: Target,
    status: Literal["built", "fresh", "waiting", "failed"],
    pack: Pack | None = None,
    error: PlayheadError | None = None,
    missing_parts: tuple[int, ...] = (),
) -> PackResult:
    """Put together what became of a pack.

    Parameters
    ----------
    target
        The pack.
    status, error, missing_parts
        As in `PackResult`.
    pack
        The pack as it is now; None if it failed, or others have to do their parts.
    """
    dropped: Counter[str] = Counter()
    for entry in () if pack is None else pack.leaves:
        dropped.update(entry.dropped)
    return PackResult(
        path=str(target.path),
        keys=[member.leaf.key for member in target.members],
        status=status,
        num_rows=0 if pack is None else sum(entry.num_rows for entry in pack.leaves),
        dropped=dict(dropped),
        error=error,
        missing_parts=missing_parts,
    )
