"""Looking at many files at once, in bounded time, past the first that is not there."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from playhead.errors import NotSupportedError, PlayheadError, SourceNotFoundError
from playhead.index.source import stamp, stamps

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Lost", "lost_files", "without_secrets"]

_THREADS = 16
# A store that does not answer is not asked a thousand times.
_MOST_FAILURES = 3
_USER = re.compile(r"(?<=://)[^/@\s]+@")
_SIGNED = re.compile(
    r"(?i)\b(x-amz-[a-z-]+|x-goog-[a-z-]+|sig|signature|token|access_?key|awsaccesskeyid)=[^&\s'\"]+"
)


class Lost(NamedTuple):
    """Files that cannot be used."""

    lost: int
    """How many."""
    of: int
    """Out of how many."""
    first: str
    """The first of them."""
    error: PlayheadError
    """What is wrong with it."""


def lost_files(paths: Sequence[str]) -> Lost | None:
    """Find files that cannot be used; None where all can.

    Parameters
    ----------
    paths
        The files. After three that a store or a disk failed to tell of, the rest is not asked for.
    """
    try:
        stamps(paths)
    except PlayheadError:
        pass
    else:
        return None
    lost: list[tuple[str, PlayheadError]] = []
    failures = 0

    def look(path: str) -> tuple[str, PlayheadError] | None:
        try:
            stamp(path)
        except PlayheadError as error:
            return path, error
        return None

    with ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, len(paths), 256):
            for found in filter(None, pool.map(look, paths[start : start + 256])):
                lost.append(found)
                failures += not isinstance(found[1], (SourceNotFoundError, NotSupportedError))
            if failures >= _MOST_FAILURES:
                break
    return Lost(len(lost), len(paths), *lost[0]) if lost else None


def without_secrets(text: str) -> str:
    """A text without passwords and signatures of URLs.

    Examples
    --------
    >>> without_secrets("https://me:pass@host/a.tar?X-Amz-Signature=ab12&part=3")
    'https://…@host/a.tar?X-Amz-Signature=…&part=3'
    """
    if "://" not in text:
        return text
    return _SIGNED.sub(r"\1=…", _USER.sub("…@", text))
