"""What a folder of torch.distributed.checkpoint holds beside tensors."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.errors import DataError, PlayheadError
from playhead.inspect.containers import MOST_BYTES, Payload, opened, read_torch_zip, too_large
from playhead.inspect.pickles import read_pickle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

__all__ = ["METADATA", "load_distributed"]

METADATA = ".metadata"
"""The file that says where everything lies."""

# A list of numbers or a text; what is larger is no part of a state of a loader.
_LARGEST_VALUE = 1 << 24
_MOST_VALUES = 1 << 20
_FIX = "Wait until it is written, or name another one"


def load_distributed(folder: str | Path, *, most_full_load_bytes: int = MOST_BYTES) -> Payload:
    """Read what is no tensor, and put it together as it was before it was taken apart.

    Parameters
    ----------
    folder
        The folder with `.metadata` and the `.distcp` files.
    most_full_load_bytes
        Bytes that are read at most.

    Raises
    ------
    DataError
        When it is damaged, or holds more.
    SourceNotFoundError
        When it is not there.
    ConfigError
        When it is not a regular file, or may not be read.
    """
    path = Path(folder) / METADATA
    where = str(path)
    with opened(path) as stream:
        data = stream.read(most_full_load_bytes + 1)
    if len(data) > most_full_load_bytes:
        raise too_large(None, most_full_load_bytes, where)
    content = read_pickle(data, where=where).content
    try:
        values = dict(_values(content, Path(folder), most_full_load_bytes))
        found = _nested(values, content.get("planner_data"))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, OSError) as error:
        if isinstance(error, PlayheadError):
            raise
        raise DataError(
            "the folder of torch.distributed.checkpoint is damaged", where=where, fix=_FIX
        ) from error
    return Payload(where, found)


def _values(content: Mapping[Any, Any], folder: Path, most_bytes: int) -> Iterator[tuple[str, Any]]:
    """The values that are no tensors, by their flat names."""
    kinds = content["state_dict_metadata"]
    left = most_bytes
    files: dict[str, BinaryIO] = {}
    try:
        for place, info in list(content["storage_data"].items())[:_MOST_VALUES]:
            name = place["fqn"]
            if not _is_value(kinds[name]) or info["length"] > _LARGEST_VALUE:
                continue
            left -= info["length"]
            if left < 0:
                break
            file = info["relative_path"]
            if file not in files:
                # Only names: a hostile one could lead out of the folder.
                files[file] = opened(folder / Path(file).name)
            files[file].seek(info["offset"])
            data = files[file].read(info["length"])
            yield name, read_torch_zip(io.BytesIO(data), _LARGEST_VALUE, str(folder / file))
    finally:
        for file in files.values():
            file.close()


def _is_value(kind: Any) -> bool:
    return getattr(kind, "name", "").endswith(".BytesStorageMetadata")


def _nested(values: Mapping[str, Any], ways: Any) -> Any:
    """Put values back to where they were: dicts in dicts, with numbers for places of lists."""
    top: dict[Any, Any] = {}
    for name, value in values.items():
        way = ways[name] if isinstance(ways, dict) and name in ways else tuple(name.split("."))
        node = top
        for key in way[:-1]:
            node = node.setdefault(key, {})
        node[way[-1]] = value
    return _with_lists(top)


def _with_lists(node: Any) -> Any:
    """Turn dicts with numbers for keys into lists; what was empty was not saved at all."""
    if not isinstance(node, dict):
        return node
    most = 2 * len(node) + 8
    if not (node and all(type(key) is int and 0 <= key <= most for key in node)):
        return {key: _with_lists(value) for key, value in node.items()}
    return [_with_lists(node.get(place, {})) for place in range(max(node) + 1)]
