"""Models of all kinds, opened so that batch sizes can be found for them."""

from __future__ import annotations

from playhead.fit.models.opening import open_model

__all__ = ["open_model"]
