"""Where Playhead keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

__all__ = ["cache_folder"]


def cache_folder(name: str) -> Path:
    """Return a folder for one kind of file: in ``PLAYHEAD_CACHE``, else in the user's cache.

    Parameters
    ----------
    name
        What it holds. The folder need not exist.

    Examples
    --------
    >>> cache_folder("tables").name
    'tables'
    """
    return Path(os.environ.get("PLAYHEAD_CACHE") or platformdirs.user_cache_dir("playhead")) / name
