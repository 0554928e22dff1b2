"""Where something went wrong in people's code, and what, each in one line."""

from __future__ import annotations

import os
import sysconfig
import traceback
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import FitError, PlayheadError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

__all__ = ["ENOUGH", "one_line", "opening", "own_line", "place", "words"]

ENOUGH = 300
"""Characters of a message that say enough."""


def words(error: BaseException) -> str:
    """Return the class and the message of an exception in one line.

    Examples
    --------
    >>> words(ValueError("no such  layer"))
    'ValueError: no such layer'
    >>> words(KeyboardInterrupt())
    'KeyboardInterrupt'
    """
    text = one_line(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def opening(model: str) -> Generator[None]:
    """Open a model: whatever its code raises is written out whole, and told in one line.

    Parameters
    ----------
    model
        What people call it.

    Raises
    ------
    PlayheadError
        What was raised on purpose.
    FitError
        If anything else was raised.
    """
    try:
        yield
    except PlayheadError:
        raise
    except BaseException as error:
        traceback.print_exc()
        raise FitError(
            f"opening {model} failed: {words(error)}", where=place(error), fix="Correct the model"
        ) from error


def one_line(text: str) -> str:
    """Return a text in one line that is short enough to be read.

    Examples
    --------
    >>> one_line(" two   words ")
    'two words'
    """
    text = " ".join(text.split())
    return text if len(text) <= ENOUGH else text[: ENOUGH - 2] + " …"


def place(error: BaseException) -> str | None:
    """Return the line of people's own code that an exception came out of.

    That is the deepest one that belongs to no installed package; where there is none, the deepest
    that belongs neither to torch nor to Playhead; None where there is none either.

    Examples
    --------
    >>> place(ValueError("never raised")) is None
    True
    """
    frames = traceback.extract_tb(error.__traceback__)
    return own_line([(frame.filename, frame.lineno or 0, frame.name) for frame in reversed(frames)])


def own_line(calls: Sequence[tuple[str, int, str]]) -> str | None:
    """Return the line of people's own code among calls, as `place` does.

    Parameters
    ----------
    calls
        File, line and function of each, the innermost first.

    Examples
    --------
    >>> import json
    >>> own_line([(json.__file__, 1, "load"), ("/data/model.py", 7, "forward")])
    '/data/model.py:7 in forward'
    """
    for theirs in (_installed(), _ours()):
        for file, line, name in calls:
            path = os.path.realpath(file)
            if not file.startswith("<") and not path.startswith(theirs):
                return f"{_short(path)}:{line} in {name}"
    return None


def _short(path: str) -> str:
    folder = Path.cwd()
    return str(Path(path).relative_to(folder)) if path.startswith(f"{folder}{os.sep}") else path


@cache
def _ours() -> tuple[str, ...]:
    import torch  # noqa: PLC0415  (slow to import, and there already wherever a model failed)

    folders = (Path(torch.__file__).parent, Path(__file__).parents[2])
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


@cache
def _installed() -> tuple[str, ...]:
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {os.path.realpath(sysconfig.get_path(kind)) + os.sep for kind in kinds}
    return (*folders, *_ours())
