"""What people name as the data of bins: a config, manifests, cuts, Shar folders, or keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import msgspec

from playhead.blend.yaml_loader import parse_yaml
from playhead.errors import ConfigError, PlayheadError, SourceNotFoundError
from playhead.index.arguments import is_config
from playhead.paths import exists, expand, scheme
from playhead.storage.compression import open_whole, plain_name
from playhead.storage.folders import is_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["config_of"]

_Kind: TypeAlias = Literal["manifest", "cuts", "shar"]
_KEY = re.compile(r"(\w+)=(.*)", re.DOTALL)
_FIRST_BYTES = 1 << 24
_FORMS = (
    "a config (.yaml), a manifest or cuts (.json, .jsonl, .jsonl.gz), [[path, weight], …], Shar"
    " folders, or key=value"
)


def config_of(inputs: Sequence[str]) -> Any:
    """Return the config that inputs stand for: a path, a section, or a list of entries.

    Parameters
    ----------
    inputs
        One config; or manifests, cuts or Shar folders, of one kind; or a literal list of paths, as
        `[[path], …]` or `[[path, weight], …]`; or keys of an entry of `input_cfg` with their
        values, as `key=value`. Manifests and cuts are told apart by their first row.

    Raises
    ------
    ConfigError
        When they are none of these.
    SourceNotFoundError
        When one does not exist.
    """
    # A folder may be called `lang=en`.
    keys = [None if exists(text) else _KEY.fullmatch(text) for text in inputs]
    if all(keys):
        return _of_keys([cast("re.Match[str]", key) for key in keys])
    if any(keys):
        raise ConfigError(
            "some inputs are key=value and others are not",
            where=" ".join(inputs),
            fix="Give keys alone, or none",
        )
    first = inputs[0]
    alone = is_config(first) or _is_literal(first)
    if len(inputs) > 1 and any(is_config(one) or _is_literal(one) for one in inputs):
        raise ConfigError(
            "a config or a list stands among other inputs",
            where=" ".join(inputs),
            fix="Give it alone; a config may name data of all kinds",
        )
    if alone:
        return first if is_config(first) else _of_literal(first)
    kinds: list[_Kind] = [_kind_of(one) for one in inputs]
    return _of_kind(kinds, list(inputs))


def _is_literal(text: str) -> bool:
    return text.lstrip().startswith("[") and not exists(text)


def _of_keys(keys: Sequence[re.Match[str]]) -> Any:
    given: dict[str, Any] = {}
    for key in keys:
        name, value = key[1], parse_yaml(key[2].encode(), key[0])
        if name in given:
            raise ConfigError(f"{name} is given twice", where=key[0], fix="Give it once")
        given[name] = value
    return [given] if "type" in given else given


def _of_literal(text: str) -> Any:
    try:
        content = parse_yaml(text.encode(), text)
    except PlayheadError:
        content = None
    listed: list[Any] = content if isinstance(content, list) else []
    paths = [_path_in(item) for item in listed]
    if not paths or None in paths:
        raise ConfigError(
            "this is no list of paths",
            where=text,
            fix="Give [[path], …] or [[path, weight], …], with numbers of at least 0 for the"
            " weights; paths that hold braces or commas, in quotes",
        )
    kinds: list[_Kind] = [_kind_of(path) for path in paths if path is not None]
    return _of_kind(kinds, listed)


def _path_in(item: Any) -> str | None:
    """The path of an item of a list; None where that has no known form."""
    match item:
        case str() | [str()]:
            return item if isinstance(item, str) else item[0]
        case [str() as path, int() | float() as weight] if not isinstance(
            weight, bool
        ) and 0 <= weight < float("inf"):
            return path
        case _:
            return None


def _of_kind(kinds: Sequence[_Kind], paths: list[Any]) -> Any:
    if len(set(kinds)) > 1:
        raise ConfigError(
            f"the inputs are of several kinds: {', '.join(sorted(set(kinds)))}",
            where=" ".join(map(str, paths)),
            fix="Name them in a config, each as an entry of its own with a weight",
        )
    # A lone file is one pass; a list has no end, as in configs.
    spec = paths[0] if len(paths) == 1 and isinstance(paths[0], str) else paths
    match kinds[0]:
        case "manifest":
            return {"manifest_filepath": spec}
        case "cuts":
            return _of_cuts(paths)
        case "shar":
            return {"shar_path": spec}


def _of_cuts(paths: Sequence[Any]) -> dict[str, Any]:
    """An entry each; without weights all samples count alike, as those of lists of manifests do."""
    weights = [path[1] for path in paths if isinstance(path, list) and len(path) > 1]
    entries = [{"type": "lhotse", "cuts_path": _path_in(path)} for path in paths]
    if not weights:
        return {"input_cfg": entries, "force_finite": True}
    if len(weights) < len(paths):
        raise ConfigError(
            "some cuts have a weight and some have none",
            where=str(paths),
            fix="Write [path, weight] for all of them, or for none",
        )
    weighted = [{**entry, "weight": weight} for entry, weight in zip(entries, weights, strict=True)]
    return {"input_cfg": weighted}


def _kind_of(spec: str) -> _Kind:
    if spec == "" or "\0" in spec:
        raise ConfigError("an input is empty", fix=f"Give {_FORMS}")
    path = expand(spec)[0]
    if not scheme(path) and not exists(path):
        raise SourceNotFoundError(
            "there is no such file or folder", where=path, fix="Correct the path"
        )
    if is_folder(path):
        return "shar"
    if not plain_name(path).endswith((".json", ".jsonl")):
        raise ConfigError(
            "this is no input that bins can be made of", where=path, fix=f"Give {_FORMS}"
        )
    row = _first_row(path)
    if "audio_filepath" in row:
        return "manifest"
    if "recording" in row or str(row.get("type")).endswith("Cut"):
        return "cuts"
    raise ConfigError(
        "the first row is neither one of a NeMo manifest (it has no audio_filepath) nor a cut",
        where=f"{path}:1",
        fix="Name other data in a config, with their type",
    )


def _first_row(path: str) -> dict[str, Any]:
    data = b""
    with open_whole(path) as file:
        while b"\n" not in data.lstrip() and len(data) < _FIRST_BYTES:
            piece = file.read(1 << 16)
            if not piece:
                break
            data += piece
    line = data.strip().partition(b"\n")[0]
    if not line:
        raise ConfigError("the file has no rows", where=path, fix="Name a file with data")
    try:
        row = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        row = None
    if not isinstance(row, dict):
        raise ConfigError(
            "the first line is no JSON object", where=f"{path}:1", fix="Give JSON lines"
        )
    return cast("dict[str, Any]", row)
