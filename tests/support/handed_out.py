"""What loaders handed out, as lines that can be compared."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from support.run_loader import line_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import playhead


def lines(batches: Iterable[dict]) -> list[dict]:
    return [line_of(batch) for batch in batches]


def take(loader: playhead.Loader, count: int) -> list[dict]:
    return lines(islice(iter(loader), count))


def first(iterator: Any, count: int) -> list[dict]:
    return [line_of(next(iterator)) for _ in range(count)]


def ids_of(history: list[dict]) -> list[str]:
    return sorted(name for line in history for name in line["ids"])


def samples(history: list[dict]) -> list[dict]:
    """What was handed out, whatever the number of its step."""
    return [{**line, "step": None} for line in history]


def through_json(state: dict) -> dict:
    return json.loads(json.dumps(state, allow_nan=False))


def resumed(loader: playhead.Loader, state: dict) -> playhead.Loader:
    loader.load_state_dict(through_json(state))
    return loader
