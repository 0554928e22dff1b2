"""The positions of a checkpoint: the latest of every loader, whichever files they stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.errors import ConfigError
from playhead.inspect.containers import MOST_BYTES
from playhead.inspect.finding import load_payloads
from playhead.inspect.positions import find_positions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from playhead.inspect.containers import Payload
    from playhead.inspect.positions import FoundPosition

__all__ = ["Loaded", "chosen", "load_checkpoint"]

_MOST_NAMED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """What was found in a checkpoint."""

    positions: tuple[FoundPosition, ...]
    """Our own positions: the latest of every loader, that of training first."""
    others: tuple[Payload, ...]
    """What files hold that have none of ours."""
    refused: tuple[str, ...]
    """Why files and states were passed over."""
    notes: tuple[str, ...]
    """What people should know."""


def load_checkpoint(
    path: str | Path, *, allow_full_load: bool = False, most_full_load_bytes: int = MOST_BYTES
) -> Loaded:
    """Read the files of a checkpoint and find the positions in them.

    Parameters
    ----------
    path
        A file, a folder, or an `eval-step-N` folder.
    allow_full_load, most_full_load_bytes
        As for `playhead.inspect.containers.load_payload`.

    Raises
    ------
    SourceNotFoundError, ConfigError, DataError
        As `load_payloads`.
    """
    refused: list[str] = []
    found: list[FoundPosition] = []
    others: list[Payload] = []
    notes: list[str] = []
    for payload in load_payloads(
        path,
        allow_full_load=allow_full_load,
        most_full_load_bytes=most_full_load_bytes,
        refused=refused,
    ):
        if payload.note is not None:
            notes.append(payload.note)
        here = find_positions(payload.content, file=payload.file, refused=refused)
        found += here
        if not (here or found):
            # Those of others count only where there is none of ours.
            others.append(payload)
    latest, older = _latest(found)
    if older:
        steps = ", ".join(f"{one.step:,} ({one.where})" for one in older[:_MOST_NAMED])
        more = f" and {len(older) - _MOST_NAMED} more" if len(older) > _MOST_NAMED else ""
        notes.append(f"there are positions of other steps, which are not shown: {steps}{more}")
    return Loaded(
        positions=tuple(latest),
        others=() if latest else tuple(others),
        refused=tuple(refused),
        notes=tuple(notes),
    )


def _latest(
    found: Sequence[FoundPosition],
) -> tuple[list[FoundPosition], list[FoundPosition]]:
    """The latest position of every loader, that of training first, and the older ones."""
    latest: list[FoundPosition] = []
    older: list[FoundPosition] = []
    for one in found:
        place = next((n for n, other in enumerate(latest) if _same_loader(one, other)), None)
        if place is None:
            latest.append(one)
            continue
        other = latest[place]
        if one.parts == other.parts and one.step == other.step:
            # One for each rank, all the same.
            continue
        if one.step > other.step:
            latest[place] = one
        older.append(other if one.step > other.step else one)
    return sorted(latest, key=lambda one: one.finite), sorted(older, key=lambda one: one.step)


def _same_loader(one: FoundPosition, other: FoundPosition) -> bool:
    return one.finite == other.finite and bool(one.keys & other.keys)


def chosen(loaded: Loaded, loader: str | None) -> FoundPosition | None:
    """Return the position of one loader: that of training, or the one at a place.

    Parameters
    ----------
    loaded
        What was found.
    loader
        The place, or the end of it; None for the first.

    Returns
    -------
    FoundPosition | None
        None where there is no position of ours at all.

    Raises
    ------
    ConfigError
        When there are some, and none there.
    """
    for one in loaded.positions:
        if loader is None or one.where == loader or one.where.endswith(loader):
            return one
    if not loaded.positions:
        return None
    raise ConfigError(
        f"there is no position at {loader}",
        fix=f"Name one of these: {', '.join(one.where for one in loaded.positions)}",
    )
