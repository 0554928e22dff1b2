"""All ranks must plan from the same data, options, position and code, or they train apart."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from importlib.metadata import version
from typing import TYPE_CHECKING

from playhead.loader.ranks import check_agreement

if TYPE_CHECKING:
    from playhead.loader.run import Planning
    from playhead.plan import Position

__all__ = ["agree_on_plan"]


def agree_on_plan(planning: Planning, position: Position) -> None:
    """Compare what this rank plans from with what the others do, before anything is trained.

    Raises
    ------
    RankMismatchError
        On every rank, naming the rank that differs and in what.
    """
    data = {leaf.name: leaf.fingerprint(len(leaf.duration_us)) for leaf in planning.leaves}
    options = {
        field.name: repr(getattr(settings, field.name))
        for settings in (planning.shape, planning.batching)
        for field in dataclasses.fields(settings)
    }
    state = {name: repr(value) for name, value in position.to_json().items()}
    beside = dict(planning.beside)
    details = {"data": data, "options": options, "position": state, "beside": beside}
    digests = {name: _digest(part) for name, part in details.items()}
    check_agreement({**digests, "version": version("playhead")}, details)


def _digest(part: dict[str, str]) -> str:
    text = json.dumps(part, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
