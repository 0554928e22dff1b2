"""What AIStore serves, and whether by batch requests, as the environment says."""

from __future__ import annotations

import os
from typing import Final

from playhead.paths import scheme

__all__ = ["PROVIDERS", "served_by_aistore", "wants_get_batch", "wants_individual_gets"]

PROVIDERS: Final = {"ais": "ais", "s3": "aws", "gs": "gcp", "az": "azure"}
"""What AIStore calls the buckets of a scheme."""


def wants_get_batch() -> bool:
    """Whether `USE_AIS_GET_BATCH` is `true`, in any case of its letters."""
    return _is_true("USE_AIS_GET_BATCH")


def wants_individual_gets() -> bool:
    """Whether `USE_AIS_INDIVIDUAL_GETS` is `true` too: what a batch would fetch, one by one."""
    return wants_get_batch() and _is_true("USE_AIS_INDIVIDUAL_GETS")


def served_by_aistore(uri: str) -> bool:
    """Whether AIStore is asked for a URI: buckets of others only where batches are wanted of it.

    Examples
    --------
    >>> served_by_aistore("ais://speech/a.tar"), served_by_aistore("http://host/a.tar")
    (True, False)
    """
    name = scheme(uri)
    if name == "ais":
        return True
    return name in PROVIDERS and wants_get_batch() and bool(os.environ.get("AIS_ENDPOINT"))


def _is_true(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() == "true"
