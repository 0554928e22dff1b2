"""Files of one folder that each rank has saved its state in, such as `state_rank_003.pt`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playhead.inspect.containers import Payload

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["RankFile", "RankFiles", "with_ranks_joined"]

_RANK: Final = re.compile(r"rank[_-]?(\d+)(?!.*rank[_-]?\d)")


@dataclass(frozen=True, slots=True)
class RankFile:
    """What the file of one rank holds."""

    rank: int
    """The rank that its name says."""
    name: str
    """The name of the file."""
    content: Any
    """Plain containers, numbers and texts."""


@dataclass(frozen=True, slots=True)
class RankFiles:
    """What the files of several ranks hold."""

    files: tuple[RankFile, ...]
    """One for each rank, in their order."""


def with_ranks_joined(payloads: Iterable[Payload]) -> list[Payload]:
    """Put together the files of a folder whose names differ in the number of a rank alone.

    Parameters
    ----------
    payloads
        What was read, file by file.

    Returns
    -------
    list of Payload
        The same, but that what several ranks have saved is one, a `RankFiles` with the name of the
        first, in the place of the first.

    Examples
    --------
    >>> files = [Payload(f"run/state_rank_{rank:03}.pt", {}) for rank in (0, 1)]
    >>> [(one.file, len(one.content.files)) for one in with_ranks_joined(files)]
    [('run/state_rank_000.pt', 2)]
    """
    groups: dict[tuple[str, ...], dict[int, Payload]] = {}
    for payload in payloads:
        path = Path(payload.file)
        found = _RANK.search(path.name)
        if found is None:
            groups[(payload.file,)] = {0: payload}
            continue
        start, end = found.span(1)
        key = (str(path.parent), path.name[:start], path.name[end:])
        # Of state_rank_1 and state_rank_001 the first counts.
        groups.setdefault(key, {}).setdefault(int(found[1]), payload)
    return [_joined(group) for group in groups.values()]


def _joined(group: dict[int, Payload]) -> Payload:
    first = next(iter(group.values()))
    if len(group) == 1:
        return first
    files = [
        RankFile(rank, Path(payload.file).name, payload.content)
        for rank, payload in sorted(group.items())
    ]
    notes = [payload.note for payload in group.values() if payload.note is not None]
    return Payload(first.file, RankFiles(tuple(files)), notes[0] if notes else None)
