"""Which archives a WebDataset of conversations consists of."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from playhead.blend.yaml_loader import parse_yaml
from playhead.errors import ConfigError, NotSupportedError, SourceNotFoundError
from playhead.formats.conversation_archives import check_archives
from playhead.paths import expand, scheme

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
    sorted by their paths. Listed paths are relative to the folder, and may be patterns.

    Raises
    ------
    SourceNotFoundError
        If there is no such folder, or nothing in it.
    ConfigError
        If a list cannot be read, leads out of the folder, or names a shard twice.
    NotSupportedError
        If the folder or a shard is not local.
    """
    _check_local(data_dir)
    root = Path(data_dir).expanduser()
    if root.name.endswith(_CATALOG) and root.is_file():
        return _listed(root, root.parent, _catalog(root), (), leaf)
    if not root.is_dir():
        raise SourceNotFoundError("there is no such folder", where=data_dir, fix="Correct data_dir")
    wids, split, catalog = root / "wids-meta.json", root / ".nv-meta/split.yaml", root / _CATALOG
    if wids.is_file():
        return _listed(wids, root, _urls(_json(wids).get("shardlist"), wids), (), leaf)
    if split.is_file():
        data = _mapping(parse_yaml(_bytes(split), str(split)), split)
        train = _mapping(data.get("split_parts"), split).get("train")
        excluded = data.get("exclude") or []
        return _listed(split, root, _texts(train, split), _texts(excluded, split), leaf)
    if catalog.is_file():
        return _listed(catalog, root, _catalog(catalog), (), leaf)
    shards = sorted(str(path) for path in root.rglob("*.tar") if path.is_file())
    if not shards:
        raise SourceNotFoundError(
            "the folder holds no tars and no list of any",
            where=data_dir,
            fix="Correct data_dir",
        )
    return shards


def _check_local(path: str) -> None:
    if scheme(path):
        raise NotSupportedError(
            "shards that are not local are not supported yet", where=path, fix="Copy them to a disk"
        )


def _listed(
    file: Path, root: Path, specs: Iterable[str], excluded: Iterable[str], leaf: str
) -> list[str]:
    patterns = [pattern for spec in excluded for pattern in expand(spec)]
    shards: dict[str, None] = {}
    for name in (name for spec in specs for name in expand(spec)):
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        _check_local(name)
        if ".." in Path(name).parts:
            raise ConfigError(f"the shard {name!r} is not in the folder", where=str(file), fix=_SAY)
        path = str(root / name)
        if path in shards:
            raise ConfigError(f"the shard {name!r} is listed twice", where=str(file), fix=_SAY)
        shards[path] = None
    if not shards:
        raise ConfigError("no shards are listed", where=str(file), fix=_SAY)
    check_archives(list(shards), leaf)
    return list(shards)


def _catalog(file: Path) -> list[str]:
    data = _json(file)
    if data.get("format") != _CATALOG_FORMAT or data.get("version") != 1:
        raise ConfigError(
            f"the catalog has the format {data.get('format')!r} and the version "
            f"{data.get('version')!r}",
            where=str(file),
            fix=f"Only {_CATALOG_FORMAT}, version 1, can be read: write it so, or take it away",
        )
    return _urls(data.get("shards"), file)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"the list of shards cannot be read: {error.strerror}",
            where=str(file),
            fix="Give the right to read it, or take it away",
        ) from None


def _json(file: Path) -> dict[str, Any]:
    try:
        return _mapping(msgspec.json.decode(_bytes(file)), file)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(
            f"the list of shards is not valid JSON: {error}", where=str(file), fix=_SAY
        ) from None


def _mapping(value: Any, file: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError("the file is no list of shards", where=str(file), fix=_SAY)
    return value


def _urls(value: Any, file: Path) -> list[str]:
    items: list[Any] = value if isinstance(value, list) else []
    return _texts([item.get("url") if isinstance(item, dict) else None for item in items], file)


def _texts(value: Any, file: Path) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigError("a shard is listed without its path", where=str(file), fix=_SAY)
    return value
