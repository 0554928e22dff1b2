"""Whether a file that a command writes is one that it reads."""

from __future__ import annotations

import os
from pathlib import Path

from playhead.paths import exists

__all__ = ["is_same"]


def is_same(path: str, other: str) -> bool:
    """Say whether two paths are one file, which need not exist yet.

    Examples
    --------
    >>> is_same("out/../bins.yaml", "bins.yaml"), is_same("bins.yaml", "profile.yaml")
    (True, False)
    """
    if exists(path) and exists(other):
        return Path(path).samefile(other)
    return os.path.abspath(path) == os.path.abspath(other)  # noqa: PTH100 - paths are strings
