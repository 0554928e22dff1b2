"""What is tried again because it may pass by itself, how often, and what if it does not."""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PAUSES", "GaveUpError", "is_transient", "with_retries"]

PAUSES: Final = (0.1, 0.4, 1.6, 6.4)
"""Seconds between tries: longer than the hiccups of network file systems, shorter than patience."""

_TRANSIENT = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EINTR,
        errno.EIO,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.ENOTCONN,
        errno.EPIPE,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)

Result = TypeVar("Result")


class GaveUpError(OSError):
    """An error of a disk or a network that did not pass: everything that helps was tried."""


def is_transient(error: BaseException) -> bool:
    """Whether an error says something of the moment and nothing of the data.

    Examples
    --------
    >>> is_transient(OSError(errno.EIO, "")), is_transient(OSError(errno.ENOENT, ""))
    (True, False)
    """
    return isinstance(error, OSError) and (
        error.errno in _TRANSIENT or isinstance(error, (TimeoutError, ConnectionError))
    )


def with_retries(
    act: Callable[[], Result],
    *,
    path: str | None = None,
    on_error: Callable[[OSError], None] | None = None,
) -> Result:
    """Return what `act` returns, tried again after a pause where its error may pass.

    Parameters
    ----------
    act
        What to do; it is called at most once more than there are `PAUSES`.
    path
        The file to name when it fails for good; the error's own if None.
    on_error
        Told about every error; may raise one of its own.

    Raises
    ------
    GaveUpError
        When the last try failed too. What was given up once is not tried again.
    OSError
        At once, when the error is not of the kind that passes.
    """
    for pause in PAUSES:
        try:
            return act()
        except OSError as error:
            if on_error is not None:
                on_error(error)
            if isinstance(error, GaveUpError) or not is_transient(error):
                raise
        time.sleep(pause)
    try:
        return act()
    except OSError as error:
        if on_error is not None:
            on_error(error)
        if isinstance(error, GaveUpError) or not is_transient(error):
            raise
        said = f"{error.strerror or error} (tried {len(PAUSES) + 1} times)"
        raise GaveUpError(error.errno, said, path or error.filename) from error
