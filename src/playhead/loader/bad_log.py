"""The file of the samples that were left out."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.fetch.bad import BadSample

__all__ = ["BadLog"]


class BadLog:
    """Appends records of bad samples to a file, each sample once.

    Several processes may append to one file: a record is one write. A disk that is full is said
    once, and does not stop the training.

    Parameters
    ----------
    path
        The file; of ranks after the first their number is added to its name.
    rank
        Whose samples they are.

    Attributes
    ----------
    path
        The file of this rank.
    """

    def __init__(self, path: str, rank: int) -> None:
        # A training script may change its folder later.
        whole = Path(path).absolute()
        self.path = whole if rank == 0 else whole.with_name(f"{whole.stem}-{rank}{whole.suffix}")
        self._known: set[tuple[str, int]] = set()
        self._torn = False
        self._failed = False

    def add(self, bad: Iterable[BadSample]) -> None:
        """Append those that were not yet."""
        for one in bad:
            if (one.leaf, one.row) not in self._known:
                self._known.add((one.leaf, one.row))
                self._append(one.to_line())

    def _append(self, line: bytes) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                whole = b"\n" + line if self._torn else line
                self._torn = os.write(file, whole) < len(whole)
            finally:
                os.close(file)
        except OSError as error:
            self._say(error.strerror or str(error))
        else:
            if self._torn:
                self._say("no room for a whole line")

    def _say(self, why: str) -> None:
        if not self._failed:
            self._failed = True
            warnings.warn(
                f"bad samples cannot be written to {self.path}: {why}. Training goes on; they are"
                " counted in loader.report()",
                stacklevel=2,
            )
