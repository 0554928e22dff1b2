"""Where the audio files of ShareGPT rows are: prefixes, a root, or beside the manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import ConfigError
from playhead.formats.base import BadRowError
from playhead.formats.rows import is_url, resolve_path

if TYPE_CHECKING:
    from playhead.blend.leaf import Leaf

__all__ = ["AudioPaths", "audio_paths"]

_DOTS = frozenset({".", ".."})
_WRITE_MAP = "Write absolute folders without . and .., as {/old/site: /new/site}"


class AudioPaths(NamedTuple):
    """How the paths of a leaf's rows become files."""

    prefixes: tuple[tuple[str, str], ...]
    """Old and new beginnings of absolute paths, the longest first."""
    root: str | None
    """Folder of relative paths; the manifest's if None."""

    def resolve(self, path: str, folder: str) -> str:
        """Find the file that a row names.

        Parameters
        ----------
        path
            What the row says.
        folder
            The manifest's.

        Raises
        ------
        BadRowError
            If prefixes are given and none of them fits an absolute path.

        Examples
        --------
        >>> paths = AudioPaths((("/old/a", "/fast"), ("/old", "/new")), None)
        >>> paths.resolve("/old/x.wav", "/m"), paths.resolve("/old/a/x.wav", "/m")
        ('/new/x.wav', '/fast/x.wav')
        """
        if self.prefixes and not is_url(path):
            path = self._moved(path)
        return resolve_path(path, folder if self.root is None else self.root)

    def _moved(self, path: str) -> str:
        if not _DOTS.isdisjoint(path.split("/")):
            raise BadRowError(
                f"the path {path!r} holds . or .., which audio_path_prefix_map does not take",
                fix="Write it without them",
            )
        if not path.startswith("/"):
            return path
        plain = str(PurePosixPath(path))
        for old, new in self.prefixes:
            if plain == old or plain.startswith(f"{old.rstrip('/')}/"):
                return f"{new}/{plain[len(old) :].lstrip('/')}".rstrip("/")
        raise BadRowError(
            f"no prefix in audio_path_prefix_map fits {path!r}", fix="Add the one that it has"
        )


def audio_paths(leaf: Leaf) -> AudioPaths:
    """Read a leaf's `audio_root` and `audio_path_prefix_map`.

    Raises
    ------
    ConfigError
        If one is not what it should be.
    """
    root = leaf.own["audio_root"]
    if root is not None and (not isinstance(root, str) or not root):
        raise ConfigError(
            f"the option audio_root is {root!r}", where=f"leaf {leaf.name}", fix="Name a folder"
        )
    given: Any = leaf.own["audio_path_prefix_map"] or {}
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"the option audio_path_prefix_map is {given!r}",
            where=f"leaf {leaf.name}",
            fix=_WRITE_MAP,
        )
    prefixes: dict[str, str] = {}
    for old, new in given.items():
        source, target = _folder(old, leaf), _folder(new, leaf, may_be_url=True)
        if source in prefixes:
            raise ConfigError(
                f"the option audio_path_prefix_map has {source!r} twice",
                where=f"leaf {leaf.name}",
                fix="Keep one of them",
            )
        prefixes[source] = target
    longest = sorted(prefixes.items(), key=lambda pair: (-len(pair[0].split("/")), pair[0]))
    return AudioPaths(
        tuple(longest),
        None if root is None else os.path.expanduser(root),  # noqa: PTH111 - it may be a URL
    )


def _folder(given: Any, leaf: Leaf, *, may_be_url: bool = False) -> str:
    """A folder as prefixes are compared: without a slash at its end."""
    path = given if isinstance(given, str) else ""
    is_bad = not path or not _DOTS.isdisjoint(path.split("/"))
    if may_be_url and is_url(path):
        is_bad |= not path.partition("://")[2].partition("/")[0]
    else:
        is_bad |= not path.startswith("/") or path.startswith("//")
        path = str(PurePosixPath(path))
    if is_bad:
        raise ConfigError(
            f"the option audio_path_prefix_map cannot take {given!r}",
            where=f"leaf {leaf.name}",
            fix=_WRITE_MAP,
        )
    return path.rstrip("/")
