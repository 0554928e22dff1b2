"""What Lightning's two packages have in common: nothing here imports either of them."""

from __future__ import annotations

__all__: list[str] = []
