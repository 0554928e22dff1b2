"""Which archives a WebDataset of conversations consists of."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from playhead.blend.yaml_loader import parse_yaml
from playhead.errors import ConfigError, PlayheadError, SourceNotFoundError
from playhead.formats.conversation_archives import check_archives
from playhead.paths import expand, scheme
from playhead.storage import access
from playhead.storage.folders import archives_under, is_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["shards_of"]

_CATALOG = "wds-catalog.json"
_CATALOG_FORMAT: Final = "nemo-wds-shard-catalog"
_SAY = "List the shards as the tool that wrote the data does, or take the file away to use all tars"


def shards_of(data_dir: str, leaf: str) -> list[str]:
    """Find the archives of a folder, in the order in which it lists them.

    The list is `wids-meta.json` (`shardlist[].url`), else `.nv-meta/split.yaml`
    (`split_parts.train`, without what the patterns under `exclude` fit), else `wds-catalog.json`
    (`shards[].url`), whose path may be given too; a catalog of one's own may be called
    `NAME.wds-catalog.json`. Without any, it is all tars in the folder and in those below,
    sorted by their paths. Listed paths are relative to the folder, and may be patterns; URLs are
    those of the folder itself.

    Raises
    ------
    SourceNotFoundError
        If there is no such folder, or nothing in it.
    ConfigError
        If a list cannot be read, leads out of the folder, or names a shard twice.
    StorageError
        If the folder is on a store that cannot be asked.
    """
    root = data_dir if access.is_remote(data_dir) else str(Path(data_dir).expanduser())
    if root.endswith(_CATALOG) and _is_file(root):
        return _listed(root, posixpath.dirname(root), _catalog(root), (), leaf)
    root = root.rstrip("/") or "/"
    if not access.is_remote(root) and not is_folder(root):
        raise SourceNotFoundError("there is no such folder", where=data_dir, fix="Correct data_dir")
    wids, split, catalog = (
        posixpath.join(root, name) for name in ("wids-meta.json", ".nv-meta/split.yaml", _CATALOG)
    )
    if _is_file(wids):
        return _listed(wids, root, _urls(_json(wids).get("shardlist"), wids), (), leaf)
    if _is_file(split):
        data = _mapping(parse_yaml(_bytes(split), split), split)
        train = _mapping(data.get("split_parts"), split).get("train")
        excluded = data.get("exclude") or []
        return _listed(split, root, _texts(train, split), _texts(excluded, split), leaf)
    if _is_file(catalog):
        return _listed(catalog, root, _catalog(catalog), (), leaf)
    shards = archives_under(root)
    if not shards:
        raise SourceNotFoundError(
            "the folder holds no tars and no list of any",
            where=data_dir,
            fix="Correct data_dir",
        )
    return shards


def _is_file(uri: str) -> bool:
    if not access.is_remote(uri):
        return Path(uri).is_file()
    try:
        access.stats([uri])
    except SourceNotFoundError:
        return False
    return True


def _listed(
    file: str, root: str, specs: Iterable[str], excluded: Iterable[str], leaf: str
) -> list[str]:
    patterns = [pattern for spec in excluded for pattern in expand(spec)]
    shards: dict[str, None] = {}
    for name in (name for spec in specs for name in expand(spec)):
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        path = name if scheme(name) else posixpath.join(root, posixpath.normpath(name))
        is_elsewhere = not path.startswith(f"{root}/") and access.is_remote(path + root)
        if ".." in name.split("/") or is_elsewhere:
            raise ConfigError(f"the shard {name!r} is not in the folder", where=file, fix=_SAY)
        if path in shards:
            raise ConfigError(f"the shard {name!r} is listed twice", where=file, fix=_SAY)
        shards[path] = None
    if not shards:
        raise ConfigError("no shards are listed", where=file, fix=_SAY)
    check_archives(list(shards), leaf)
    return list(shards)


def _catalog(file: str) -> list[str]:
    data = _json(file)
    if data.get("format") != _CATALOG_FORMAT or data.get("version") != 1:
        raise ConfigError(
            f"the catalog has the format {data.get('format')!r} and the version "
            f"{data.get('version')!r}",
            where=file,
            fix=f"Only {_CATALOG_FORMAT}, version 1, can be read: write it so, or take it away",
        )
    return _urls(data.get("shards"), file)


def _bytes(file: str) -> bytes:
    try:
        return b"".join(access.stream(file))
    except PlayheadError:
        raise
    except OSError as error:
        raise ConfigError(
            f"the list of shards cannot be read: {error.strerror}",
            where=file,
            fix="Give the right to read it, or take it away",
        ) from None


def _json(file: str) -> dict[str, Any]:
    try:
        return _mapping(msgspec.json.decode(_bytes(file)), file)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(
            f"the list of shards is not valid JSON: {error}", where=file, fix=_SAY
        ) from None


def _mapping(value: Any, file: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError("the file is no list of shards", where=file, fix=_SAY)
    return value


def _urls(value: Any, file: str) -> list[str]:
    items: list[Any] = value if isinstance(value, list) else []
    return _texts([item.get("url") if isinstance(item, dict) else None for item in items], file)


def _texts(value: Any, file: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigError("a shard is listed without its path", where=file, fix=_SAY)
    return value
