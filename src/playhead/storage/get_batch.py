"""Whether a micro-batch is fetched by one batch request, as the environment says."""

from __future__ import annotations

import os

__all__ = ["wants_get_batch"]


def wants_get_batch() -> bool:
    """Whether `USE_AIS_GET_BATCH` is `true`, in any case of its letters."""
    return os.environ.get("USE_AIS_GET_BATCH", "").strip().lower() == "true"
