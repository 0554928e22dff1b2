"""The official client of AIStore, set up as the environment says, and what its errors mean."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from playhead.errors import (
    ConfigError,
    DataError,
    MissingExtraError,
    SourceNotFoundError,
    StorageError,
)
from playhead.storage.limits import limits

if TYPE_CHECKING:
    from playhead.errors import PlayheadError

__all__ = [
    "ShortAnswerError",
    "endpoint",
    "is_unreachable",
    "missing_object",
    "open_client",
    "said",
    "status_of",
    "verdict",
]

_CONNECT_SECONDS: Final = 3.0
# Timeouts, locks, overload and trouble of one node; everything else is said for good.
_PASSING: Final = frozenset({408, 409, 423, 425, 429, 500, 502, 503, 504})

_NO_BUCKET: Final = frozenset({"ErrBckNotFound", "ErrRemoteBckNotFound"})


class ShortAnswerError(OSError):
    """An answer that has not as many bytes as were asked for."""


def endpoint() -> str:
    """Where AIStore is, as `AIS_ENDPOINT` says.

    Raises
    ------
    ConfigError
        If that is not set, or is no address of a server.
    """
    given = os.environ.get("AIS_ENDPOINT", "").strip()
    example = "Set AIS_ENDPOINT to the address of its proxy, such as http://aistore:51080"
    if not given:
        raise ConfigError("AIS_ENDPOINT is not set, which ais:// needs", fix=example)
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
        raise ConfigError(
            f"AIS_ENDPOINT is {given!r}, which is no http(s)://host:port", fix=example
        )
    return given


def open_client() -> Any:
    """Return a client that tries everything once: this package has its own retries.

    Raises
    ------
    ConfigError
        If the environment does not say where AIStore is, or says it wrongly.
    MissingExtraError
        If the client is not installed.
    """
    where = endpoint()
    try:
        # Importing it takes half a second, which only those spend who use it.
        from aistore import Client  # noqa: PLC0415
        from aistore.sdk.retry_config import RetryConfig  # noqa: PLC0415
        from tenacity import Retrying, retry_never, stop_after_attempt  # noqa: PLC0415
        from urllib3.util import Retry  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(
            f"the client of AIStore, which ais:// needs, cannot be imported: {error}",
            fix="Run `pip install 'playhead[ais]'`",
        ) from error
    once = RetryConfig(
        http_retry=Retry(total=0, connect=0, read=0, status=0, redirect=0, other=0),
        network_retry=Retrying(stop=stop_after_attempt(1), retry=retry_never, reraise=True),
    )
    times = (_seconds("AIS_CONNECT_TIMEOUT", _CONNECT_SECONDS), _seconds("AIS_READ_TIMEOUT", None))
    size = limits().concurrency
    return Client(where, retry_config=once, timeout=times, max_pool_size=size)


def _seconds(name: str, default: float | None) -> float:
    """A time-out of the environment, never more than one try may take; 0 is no limit of its own."""
    most = limits().request_seconds
    given = os.environ.get(name, "").strip()
    try:
        seconds = float(given) if given else default or 0.0
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ConfigError(
            f"{name} is {given!r}, which is no number of seconds", fix="Give a number, or 0"
        )
    return min(seconds, most) if seconds else most


def status_of(error: BaseException) -> int:
    """The HTTP status that an error of the client stands for; 0 if for none."""
    status = getattr(error, "status_code", 0)
    return status if isinstance(status, int) else 0


def said(error: BaseException) -> str:
    """What an error says, in one line that is not too long.

    Examples
    --------
    >>> said(TimeoutError())
    'TimeoutError'
    """
    if is_unreachable(error):
        # The client tells of its pools, and of the whole URL. Targets have hosts of their own.
        pool = error.args[0].pool
        return f"no connection could be made to {pool.host}:{pool.port}"
    text, name = str(error), type(error).__name__
    status = status_of(error)
    if status:
        # The client gives the whole answer, which for a server's error is JSON.
        text, name = str(getattr(error, "message", "")), f"HTTP {status}"
        with suppress(ValueError, KeyError, TypeError):
            text = json.loads(text)["message"]
    text = " ".join(text.split())
    return f"{name}: {text[:200]}" if text else name


def is_unreachable(error: BaseException) -> bool:
    """Whether an error says that there was no connection at all."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    if cause is None:
        return False
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError  # noqa: PLC0415

    return isinstance(cause, (ConnectTimeoutError, NewConnectionError))


def verdict(error: Exception, where: str) -> PlayheadError | None:
    """What an error means for good; None for what may pass by itself.

    Parameters
    ----------
    error
        What was raised by the client, by reading an answer, or by checking one.
    where
        The object, or the member of one.
    """
    import requests  # noqa: PLC0415 - comes with the client
    import urllib3.exceptions  # noqa: PLC0415 - as above

    status = status_of(error)
    if status:
        return None if status in _PASSING else _refused(error, status, where)
    if isinstance(error, (requests.exceptions.SSLError, urllib3.exceptions.SSLError)):
        return _untrusted(error, where)
    passing = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
    useless = (ValueError, requests.TooManyRedirects)
    if isinstance(error, passing) and not isinstance(error, useless):
        return None
    return StorageError(
        f"the client of AIStore fails: {said(error)}",
        where=where,
        fix="Look whether its version is one that playhead[ais] asks for",
    )


def missing_object(where: str) -> SourceNotFoundError:
    """Return the error of an object, or a member of one, that exists nowhere."""
    return SourceNotFoundError(
        "AIStore has no such object", where=where, fix="Restore it, or correct the path"
    )


def _refused(error: Exception, status: int, where: str) -> PlayheadError:
    if status == 404 and type(error).__name__ in _NO_BUCKET:
        # Not a thing that one sample lacks: a name that is wrong, or a store that is gone.
        return StorageError(
            "AIStore has no such bucket", where=where, fix="Correct its name, or AIS_ENDPOINT"
        )
    if status == 404:
        return missing_object(where)
    if status == 416:
        return DataError(
            "the object ends before the range that is asked for",
            where=where,
            fix="If it was rewritten, index it again; else restore it",
        )
    if status in (401, 403):
        fix = "Set AIS_AUTHN_TOKEN to a token that may read it"
        return StorageError(f"AIStore refuses access: {said(error)}", where=where, fix=fix)
    fix = "Look at the log of its target"
    return StorageError(f"AIStore refuses: {said(error)}", where=where, fix=fix)


def _untrusted(error: Exception, where: str) -> StorageError:
    fix = "Set AIS_CLIENT_CA to the certificate that signed the server's, or AIS_SKIP_VERIFY_CRT"
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if os.environ.get(name):
            fix = f"Unset {name}, which is used in place of AIS_CLIENT_CA and AIS_SKIP_VERIFY_CRT"
            break
    return StorageError(
        f"AIStore's certificate is not trusted: {said(error)}", where=where, fix=fix
    )
