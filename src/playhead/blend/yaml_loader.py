"""YAML as configs are meant: numbers like 1e3 are numbers, and no key comes twice."""

from __future__ import annotations

import gc
import re
from typing import TYPE_CHECKING, Any, cast

import yaml
from yaml.constructor import ConstructorError

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from yaml import SafeLoader
else:
    # The one in C is ten times as fast; PyYAML may have been built without it.
    SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

__all__ = ["parse_yaml", "refuse_circles"]

_MERGE = "<<"
_BOOL = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_FLOAT = re.compile(
    r"^[-+]?(?:(?:\d[\d_]*\.[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?|\d[\d_]*[eE][-+]?\d+"
    r"|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$"
)


def parse_yaml(text: bytes, path: str) -> Any:
    """Parse a YAML document into plain containers.

    As in YAML 1.2, only `true` and `false` are truth values (`no` is Norwegian), and dates are
    texts. Keys are texts too.

    Parameters
    ----------
    text
        The document.
    path
        Its file, for messages.

    Raises
    ------
    ConfigError
        It is not valid YAML, a mapping names a key twice, or something holds itself.
    """
    # Nodes are freed by their last reference; looking for cycles among a million of them takes
    # two thirds of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        content = yaml.load(text, Loader=_Loader)  # noqa: S506  (a safe loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = path if mark is None else f"{path}:{mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(
            f"the config is not valid YAML: {problem}", where=where, fix="Correct the file"
        ) from None
    finally:
        if collects:
            gc.enable()
    if b"&" in text:
        refuse_circles(content, path)
    return content


def refuse_circles(content: Any, path: str) -> None:
    """Raise where a container holds itself, as anchors make possible.

    Parameters
    ----------
    content
        Containers and plain values.
    path
        Its file, for messages.

    Raises
    ------
    ConfigError
        It does.
    """
    around: set[int] = set()
    finished: set[int] = set()
    # What is left to visit; a container comes a second time when everything in it was visited.
    rest: list[tuple[Any, bool]] = [(content, False)]
    while rest:
        value, is_done = rest.pop()
        if is_done:
            around.discard(id(value))
            finished.add(id(value))
        elif id(value) in around:
            raise ConfigError("the config holds itself", where=path, fix="Break the circle")
        elif isinstance(value, (dict, list)) and id(value) not in finished:
            around.add(id(value))
            inside = cast("dict[str, Any]", value).values() if isinstance(value, dict) else value
            rest += [(value, True), *((item, False) for item in cast("list[Any]", inside))]


class _Loader(SafeLoader):
    """The fastest safe loader, with other rules for plain scalars and for keys that come twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping; PyYAML's hook."""
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len({key.value for key in keys}) < len(keys):
            seen: set[str] = set()
            for key in keys:
                if key.value in seen and key.value != _MERGE:
                    raise ConstructorError(
                        problem=f"the key {key.value!r} comes twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        mapping = super().construct_mapping(node, deep)
        if all(isinstance(key, str) for key in mapping):
            return mapping
        return {str(key): value for key, value in mapping.items()}


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] not in ("bool", "float", "timestamp")
    ]
    for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOL, list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
