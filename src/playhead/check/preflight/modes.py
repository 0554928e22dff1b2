"""How the samples of a leaf are fetched, as the data's place and the environment decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from playhead.paths import scheme
from playhead.storage.access import OBJECT_SCHEMES
from playhead.storage.compression import has_middle, is_archive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.leaf import Leaf
    from playhead.config import Options

__all__ = ["MODES", "Mode", "goes_through_aistore", "is_true", "mode_of"]

Mode: TypeAlias = Literal["local", "shards", "ranges", "ais-batch", "ais-individual", "ais-ranges"]
"""How the samples of a leaf are fetched."""

MODES: Final[dict[Mode, str]] = {
    "local": "byte ranges of local files",
    "shards": "whole shards, through the cache on disk",
    "ranges": "byte ranges of objects",
    "ais-batch": "batch requests to AIStore",
    "ais-individual": "one request to AIStore for each object",
    "ais-ranges": "byte ranges of objects in AIStore",
}
"""What each way is, for people."""


def is_true(environment: Mapping[str, str], name: str) -> bool:
    """Whether an environment variable is `true`, in any case of its letters."""
    return environment.get(name, "").strip().lower() == "true"


def goes_through_aistore(path_scheme: str, environment: Mapping[str, str]) -> bool:
    """Whether what has a scheme is read through AIStore.

    Objects of other stores are where batch requests are wanted and an endpoint is named.

    Parameters
    ----------
    path_scheme
        The scheme, such as `s3`; empty for local paths.
    environment
        The environment variables.

    Examples
    --------
    >>> goes_through_aistore("ais", {}), goes_through_aistore("s3", {"AIS_ENDPOINT": "http://a:1"})
    (True, False)
    """
    if path_scheme == "ais":
        return True
    return (
        path_scheme in OBJECT_SCHEMES - {"http", "https"}
        and is_true(environment, "USE_AIS_GET_BATCH")
        and bool(environment.get("AIS_ENDPOINT"))
    )


def mode_of(leaf: Leaf, options: Options, environment: Mapping[str, str]) -> Mode:
    """Say how the samples of a leaf are fetched.

    Parameters
    ----------
    leaf
        The leaf.
    options
        The options of its section.
    environment
        The environment variables.
    """
    paths = [path for files in leaf.paths.values() for path in files[:1]]
    schemes = {scheme(path) for path in paths}
    if any(goes_through_aistore(name, environment) for name in schemes):
        if not is_true(environment, "USE_AIS_GET_BATCH"):
            return "ais-ranges"
        single = is_true(environment, "USE_AIS_INDIVIDUAL_GETS")
        return "ais-individual" if single else "ais-batch"
    whole = any(is_archive(path) and not has_middle(path) for path in paths)
    if whole or (schemes & OBJECT_SCHEMES and options.locality != "rows"):
        return "shards"
    return "ranges" if schemes & OBJECT_SCHEMES else "local"
