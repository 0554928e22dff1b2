"""Reads what a pickle holds, without running any of it: nothing is imported, called or decoded.

A pickle is a program for a small stack machine. This one has the same operations; where the real
one imports a class, calls it or sets its state, this one keeps a dict that says so.

It is not `pickle.Unpickler` with a `find_class` of its own: one flipped byte in the number of a
memo makes that ask for gigabytes, and a deep tuple as a key ends the process. It takes six times
as long, which is a second for the states of 64 ranks with 8 workers and 200 sources each.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from playhead.errors import DataError
from playhead.inspect.pickle_machine import BrokenError, Machine, StopPickle
from playhead.inspect.pickle_operations import OPERATIONS

__all__ = ["MOST_OPERATIONS", "Unpickled", "read_pickle"]

MOST_OPERATIONS: Final = 20_000_000
"""Operations of a pickle at most; a position of 80,000 leaves takes a million."""


@dataclass(frozen=True, slots=True)
class Unpickled:
    """What a pickle holds."""

    content: Any
    """Plain containers, numbers, texts and what stands for the rest."""
    end: int
    """Where the next pickle would begin."""


def read_pickle(
    data: bytes,
    start: int = 0,
    *,
    where: str | None = None,
    most_operations: int = MOST_OPERATIONS,
) -> Unpickled:
    """Read one pickle.

    Parameters
    ----------
    data
        Bytes that hold it.
    start
        Where it begins.
    where
        The file, for messages.
    most_operations
        A longer program is refused.

    Raises
    ------
    DataError
        When it is no pickle, or a damaged or an absurd one.
    """
    machine = Machine(data, start)
    table = OPERATIONS
    try:
        for _ in range(most_operations):
            operation = table[data[machine.place]]
            machine.place += 1
            operation(machine)
    except StopPickle:
        return Unpickled(machine.stack[-1], machine.place)
    except BrokenError as error:
        why = str(error)
    except (IndexError, struct.error):
        why = f"it ends or breaks at byte {machine.place}"
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        why = f"it breaks at byte {machine.place}"
    else:
        why = f"it has more than {most_operations:,} operations"
    raise DataError(
        f"the pickle in the file is damaged: {why}",
        where=where,
        fix="Wait until it is written, or name another one",
    )
