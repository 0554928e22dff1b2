"""How members of archives on AIStore are fetched: decided once, in the main process."""

from __future__ import annotations

from enum import Enum

from playhead.storage.get_batch import wants_get_batch, wants_individual_gets

__all__ = ["AccessMode", "access_mode"]


class AccessMode(Enum):
    """How members of archives on AIStore are fetched."""

    RANGES = "ranges"
    """As from any other store: by the places that the index knows."""
    BATCH = "batch"
    """By name, all of a micro-batch with one request."""
    INDIVIDUAL = "individual"
    """By name, one by one."""


def access_mode() -> AccessMode:
    """Return what `USE_AIS_GET_BATCH` and `USE_AIS_INDIVIDUAL_GETS` say."""
    if wants_individual_gets():
        return AccessMode.INDIVIDUAL
    return AccessMode.BATCH if wants_get_batch() else AccessMode.RANGES
