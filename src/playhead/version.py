"""Which Playhead this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["own_version"]


def own_version() -> str:
    """Return the version of Playhead that is installed; `uninstalled` where it is a bare folder.

    Examples
    --------
    >>> own_version() != ""
    True
    """
    try:
        return version("playhead")
    except PackageNotFoundError:
        # The folder of the source on PYTHONPATH: everything works but that nobody numbered it.
        return "uninstalled"
