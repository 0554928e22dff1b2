"""Faults of a config, raised one at a time or gathered for whoever wants to see all of them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from playhead.errors import PlayheadError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Faults", "collected"]

Faults: TypeAlias = list[PlayheadError]
"""What was refused, in the order of reading."""


@contextmanager
def collected(faults: Faults | None) -> Generator[None]:
    """Gather an error of the body, which ends there; None lets it through.

    Examples
    --------
    >>> faults = []
    >>> with collected(faults):
    ...     raise PlayheadError("no")
    >>> [str(fault) for fault in faults]
    ['No']
    """
    try:
        yield
    except PlayheadError as error:
        if faults is None:
            raise
        faults.append(error)
