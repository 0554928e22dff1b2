"""All ranks must plan from the same data, options, position and code, or they train apart."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import TYPE_CHECKING

from playhead.loader.ranks import check_agreement
from playhead.version import own_version

if TYPE_CHECKING:
    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.fusion_position import FusedPosition
    from playhead.loader.run import Planning
    from playhead.plan import Position

__all__ = ["agree_on_plan"]


def agree_on_plan(planning: Planning | FusedPlanning, position: Position | FusedPosition) -> None:
    """Compare what this rank plans from with what the others do, before anything is trained.

    Raises
    ------
    RankMismatchError
        On every rank, naming the rank that differs and in what.
    """
    data = {leaf.name: leaf.fingerprint(len(leaf.duration_us)) for leaf in planning.leaves}
    options = {"turns": repr(getattr(planning, "rule", None))}
    beside: dict[str, str] = {}
    for name, part in planning.parts.items():
        options |= {
            _of(name, field.name): repr(getattr(settings, field.name))
            for settings in (part.shape, part.batching)
            for field in dataclasses.fields(settings)
        }
        beside |= {_of(name, what): digest for what, digest in part.beside.items()}
    state = position.to_json()
    positions = {name: repr(value) for name, value in state.items() if name != "parts"}
    for part, values in state.get("parts", {}).items():
        positions |= {_of(part, name): repr(value) for name, value in values.items()}
    details = {"data": data, "options": options, "position": positions, "beside": beside}
    digests = {name: _digest(part) for name, part in details.items()}
    check_agreement({**digests, "version": own_version()}, details)


def _of(part: str, name: str) -> str:
    return f"{part}.{name}" if part else name


def _digest(part: dict[str, str]) -> str:
    text = json.dumps(part, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
