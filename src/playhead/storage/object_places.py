"""Which store an object lies in, how it is called there, and how that store is reached."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from playhead.errors import ConfigError, NotSupportedError
from playhead.storage.credentials import azure_options, google_options, s3_endpoint, s3_options
from playhead.storage.limits import limits
from playhead.storage.obstore_library import obstore

__all__ = ["ObjectPlace", "object_of", "open_store", "place_of", "server_of"]

# How long a stream may take in all; that it stands still is noticed much earlier.
_STREAM_TIME = timedelta(days=7)


class ObjectPlace(NamedTuple):
    """Where an object lies."""

    scheme: str
    """`s3`, `gs`, `az`, `http` or `https`."""
    store: str
    """Bucket or container; for http everything of the URL but its path."""
    path: str
    """What it is called in there."""

    @property
    def origin(self) -> tuple[str, str]:
        """What answers alike: the store without what a single URL adds to it."""
        return self.scheme, self.store.partition("?")[0]

    @property
    def store_uri(self) -> str:
        """The store, as people write it."""
        return self.store if self.scheme.startswith("http") else f"{self.scheme}://{self.store}"


@lru_cache(maxsize=1 << 16)
def place_of(uri: str) -> ObjectPlace:
    """Take a URI apart.

    Raises
    ------
    NotSupportedError
        If it names no object.

    Examples
    --------
    >>> place_of("s3://bucket/a/b c.tar")
    ObjectPlace(scheme='s3', store='bucket', path='a/b c.tar')
    >>> place_of("https://host/a/b%20c.tar?token=1")
    ObjectPlace(scheme='https', store='https://host?token=1', path='a/b c.tar')
    """
    name, _, rest = uri.partition("://")
    name = name.lower()
    if name in ("http", "https"):
        try:
            parts = urlsplit(uri)
        except ValueError as error:
            raise NotSupportedError(
                f"the URL cannot be understood: {error}", where=uri, fix="Correct it"
            ) from None
        query = f"?{parts.query}" if parts.query else ""
        store, path = f"{name}://{parts.netloc}{query}", unquote(parts.path).lstrip("/")
        host = parts.netloc
    else:
        store, _, path = rest.partition("/")
        host = store
    if not host or any(part in ("", ".", "..") for part in path.rstrip("/").split("/") if path):
        raise NotSupportedError(
            "the URI names no object: it has an empty part, or one that is . or ..",
            where=uri,
            fix="Write it as scheme://bucket/key",
        )
    return ObjectPlace(name, store, path)


def object_of(uri: str) -> ObjectPlace:
    """Take the URI of an object apart, which a bucket and a folder are not.

    Raises
    ------
    NotSupportedError
        If it names no object.

    Examples
    --------
    >>> object_of("s3://bucket/a/b c.tar").path
    'a/b c.tar'
    """
    place = place_of(uri)
    # A store would answer with the names that are in there, or with what has the name without /.
    if not place.scheme.startswith("http") and (not place.path or place.path.endswith("/")):
        raise NotSupportedError(
            "the URI names a bucket or a folder, not an object",
            where=uri,
            fix="Write it as scheme://bucket/key",
        )
    return place


def server_of(uri: str) -> str:
    """What to call the server of a URI: by its address, where somebody chose that.

    Examples
    --------
    >>> server_of("https://name:secret@host:8080/a/b.tar?token=1")
    'the server at https://host:8080'
    """
    place = place_of(uri)
    if place.scheme.startswith("http"):
        return f"the server at {place.scheme}://{urlsplit(place.store).netloc.rpartition('@')[2]}"
    endpoint = s3_endpoint() if place.scheme == "s3" else ""
    return f"the store at {endpoint}" if endpoint else "the store"


def open_store(place: ObjectPlace, *, streams: bool = False) -> Any:
    """Open the store of an object, with what the environment says.

    Nothing is tried again by the library itself.

    Parameters
    ----------
    place
        Any object of it.
    streams
        Whether answers may come for as long as bytes arrive.

    Raises
    ------
    ConfigError
        If the environment says what cannot be.
    """
    stores = obstore().store
    bounds = limits()
    seconds = timedelta(seconds=bounds.request_seconds)
    client: dict[str, Any] = {
        "connect_timeout": seconds,
        "read_timeout": seconds,
        "timeout": _STREAM_TIME if streams else timedelta(seconds=bounds.deadline_seconds),
        "pool_max_idle_per_host": str(bounds.concurrency),
    }
    bundle = os.environ.get("AWS_CA_BUNDLE")
    if bundle:
        client["root_certificate"] = _read_certificate(bundle)
    common: dict[str, Any] = {"client_options": client, "retry_config": {"max_retries": 0}}
    make, options = {
        "s3": (stores.S3Store, s3_options),
        "gs": (stores.GCSStore, google_options),
        "az": (stores.AzureStore, azure_options),
        "http": (stores.HTTPStore, lambda: {"allow_http": True}),
        "https": (stores.HTTPStore, lambda: {"allow_http": False}),
    }[place.scheme]
    config = options()
    client["allow_http"] = config.pop("allow_http")
    try:
        return make(place.store, **config, **common)
    except Exception as error:
        said = str(error).partition("\n")[0]
        raise ConfigError(
            f"the store cannot be opened: {said}",
            where=place.store_uri,
            fix="Correct the variables of the environment that say how to reach it",
        ) from error


def _read_certificate(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"AWS_CA_BUNDLE cannot be read: {error.strerror}", where=path, fix="Correct its path"
        ) from error
