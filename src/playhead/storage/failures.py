"""What the library of object stores says when a request fails, and what that means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

from playhead.errors import (
    ConfigError,
    NotSupportedError,
    PlayheadError,
    SourceNotFoundError,
    StorageError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ShortAnswerError",
    "ignores_ranges",
    "is_behind_end",
    "is_passing",
    "is_unreachable",
    "names_no_bucket",
    "refuses_head",
    "said",
    "verdict",
    "without_panic",
]

Result = TypeVar("Result")

_STATUS: Final = re.compile(r"status code: (\d{3})([^:\n]*)")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_KIND: Final = re.compile(r"kind: (\w+)")
_HOST: Final = re.compile(r"Error performing \w+ \w+://(?:[^/@\s]*@)?([^/?\s]+)")
_KINDS: Final = {
    "Timeout": "nothing came in time",
    "Connect": "no connection could be made",
    "Interrupted": "the answer was cut",
    "Request": "the connection broke",
    "Decode": "the answer cannot be understood",
}
# Requests of these kinds are refused by themselves; all other failures may pass.
_REFUSALS: Final = ("builder error", "URL scheme is not allowed", "Invalid range", "invalid URL")


class ShortAnswerError(Exception):
    """An answer of another length than it should have."""


def ignores_ranges(error: Exception) -> bool:
    """Whether the whole object was answered where a part of it was asked for."""
    return type(error).__name__ == "NotSupportedError" or "non-partial response" in str(error)


def is_behind_end(error: Exception) -> bool:
    """Whether bytes were asked for that lie behind the end of an object."""
    return "status code: 416" in str(error)


def names_no_bucket(error: Exception) -> bool:
    """Whether an answer says that there is no such bucket or container."""
    code = _CODE.search(str(error))
    return code is not None and code[1] in ("NoSuchBucket", "ContainerNotFound")


def refuses_head(error: Exception) -> bool:
    """Whether it is the kind of a request that is refused: one for all but the bytes."""
    status = _STATUS.search(str(error))
    return status is not None and status[1] in ("403", "405", "501")


def is_unreachable(error: Exception) -> bool:
    """Whether there was no connection: nobody listens, or the name or certificate is wrong."""
    kind = _KIND.search(str(error))
    return kind is not None and kind[1] == "Connect"


def is_passing(error: Exception) -> bool:
    """Whether a request that failed may succeed when it is made again.

    Examples
    --------
    >>> is_passing(OSError("Server returned non-2xx status code: 503 Service Unavailable: "))
    True
    >>> is_passing(FileNotFoundError())
    False
    """
    if isinstance(error, ShortAnswerError):
        return True
    text = str(error)
    is_final = isinstance(error, (FileNotFoundError, ValueError)) or ignores_ranges(error)
    if is_final or type(error).__name__ in _FINAL:
        return False
    status = _STATUS.search(text)
    if status is not None:
        return status[1] in ("408", "429") or status[1] >= "500"
    return not any(refusal in text for refusal in _REFUSALS)


def said(error: Exception) -> str:
    """Say in a few words what went wrong.

    Examples
    --------
    >>> said(OSError("… Server returned non-2xx status code: 503 Slow Down: <Code>Busy</Code>"))
    'it answered 503 Slow Down (Busy)'
    """
    text = str(error)
    status, code, kind = _STATUS.search(text), _CODE.search(text), _KIND.search(text)
    if status is not None:
        what = f"it answered {status[1]}{status[2].rstrip()}"
        return f"{what} ({code[1]})" if code is not None else what
    if kind is not None and kind[1] in _KINDS:
        what = _KINDS[kind[1]]
        if "dns error" not in text:
            return what
        host = _HOST.search(text)
        return f"{what} (nobody knows the host {'of the URL' if host is None else host[1]})"
    return text.partition("\n")[0] or type(error).__name__


def verdict(error: Exception, where: str) -> PlayheadError | None:
    """Return what a failure means for good; None for what may pass by itself.

    Parameters
    ----------
    error
        What the library raised.
    where
        What was asked for.
    """
    if is_passing(error):
        return None
    text = str(error)
    if names_no_bucket(error):
        # Not a thing that one sample lacks: a name that is wrong, or a store that is gone.
        return StorageError(
            "the bucket does not exist", where=where, fix="Correct its name, or the endpoint"
        )
    if isinstance(error, FileNotFoundError):
        return SourceNotFoundError(
            "the object does not exist", where=where, fix="Restore it, or correct its name"
        )
    if type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError"):
        return StorageError(
            f"access is denied: {said(error)}",
            where=where,
            fix="Give credentials that may do this in the environment, for S3 AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY; without any, requests are not signed",
        )
    if isinstance(error, ValueError):
        return NotSupportedError(
            f"the name cannot be asked for: {said(error)}", where=where, fix="Rename the object"
        )
    fix = "Look at the server, and at the variables that say how to reach it"
    if "redirect" in text.lower() or "status code: 301" in text:
        fix = "Name the region of the bucket in AWS_REGION"
    return StorageError(f"the request was refused: {said(error)}", where=where, fix=fix)


def without_panic(act: Callable[[], Result], where: str) -> Result:
    """Make a request; what the library takes for impossible is an error like others.

    Parameters
    ----------
    act
        Makes it.
    where
        What is asked for.

    Raises
    ------
    ConfigError
        If the library panics, which is no `Exception` by itself.
    """
    try:
        return act()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ConfigError(
            f"the request cannot be made: {error}",
            where=where,
            fix="Correct the URI, or the variables that say how to reach the server",
        ) from None


_FINAL: Final = frozenset(
    {
        "PermissionDeniedError",
        "UnauthenticatedError",
        "PreconditionError",
        "NotModifiedError",
        "AlreadyExistsError",
        "InvalidPathError",
        "UnknownConfigurationKeyError",
    }
)
