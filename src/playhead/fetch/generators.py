"""Finding the random generators that an object holds, and seeding each by where it is."""

from __future__ import annotations

import functools
import random
import types
from collections import deque
from contextlib import suppress
from enum import Enum, auto
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["derive", "find_generators", "seed_generators"]

# What bounds the search: datasets may hold vocabularies and catalogues of noise.
_MOST_ELEMENTS = 1_000
_MOST_OBJECTS = 20_000
_MOST_LEVELS = 24

# Lhotse's transforms make these on first use, from the operating system's entropy.
_LAZY_NAMES = ("random", "rng")
_LHOTSE_DATA = frozenset(
    {
        "Array",
        "Features",
        "MixedCut",
        "MonoCut",
        "MultiCut",
        "PaddingCut",
        "Recording",
        "SupervisionSegment",
        "TemporalArray",
    }
)
_PLAIN = (
    str,
    bytes,
    bytearray,
    memoryview,
    int,
    float,
    complex,
    type(None),
    type,
    Enum,
    types.ModuleType,
    types.BuiltinFunctionType,
    np.ndarray,
    np.generic,
    np.dtype,
    torch.Tensor,
    torch.device,
    torch.dtype,
)


class _Kind(Enum):
    PLAIN = auto()
    GENERATOR = auto()
    MAPPING = auto()
    SEQUENCE = auto()
    OBJECT = auto()


@functools.lru_cache(maxsize=4096)
def _kind(cls: type) -> _Kind:
    if issubclass(
        cls, (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
    ):
        return _Kind.GENERATOR
    in_lhotse = cls.__module__.partition(".")[0] == "lhotse"
    if issubclass(cls, _PLAIN) or (in_lhotse and cls.__name__ in _LHOTSE_DATA):
        return _Kind.PLAIN
    if issubclass(cls, dict):
        return _Kind.MAPPING
    # The order of a set differs from process to process.
    if issubclass(cls, (list, tuple, deque)):
        return _Kind.SEQUENCE
    return _Kind.OBJECT


def derive(key: int, path: str) -> int:
    """Derive a 64-bit key from a 64-bit key and a name.

    Examples
    --------
    >>> derive(7, "a") == derive(7, "a"), derive(7, "a") == derive(7, "b")
    (True, False)
    """
    digest = blake2b(path.encode("utf-8", "surrogatepass"), digest_size=8, key=_word(key)).digest()
    return int.from_bytes(digest, "little")


def find_generators(root: object) -> dict[str, Any]:
    """Find every random generator that an object holds.

    Attributes, elements of lists, tuples and dicts, and what functions have bound are searched,
    level by level and within bounds, so that the result depends on nothing but the structure. An
    object with a method `set_rng` stands for all that it holds. Generators that Lhotse's transforms
    would make on first use are made here.

    Parameters
    ----------
    root
        Where to begin, usually a dataset.

    Returns
    -------
    dict[str, Any]
        Generators, and objects with `set_rng`, by place, such as ``.transforms[0].random``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> list(find_generators(SimpleNamespace(noise=[1, random.Random(2)], name="x")))
    ['.noise[1]']
    """
    found: dict[str, Any] = {}
    seen: dict[int, object] = {id(root): root}
    level: list[tuple[str, Any]] = [("", root)]
    for _ in range(_MOST_LEVELS):
        below: list[tuple[str, Any]] = []
        for path, item in level:
            kind = _kind(type(item))
            if kind is _Kind.GENERATOR or callable(getattr(type(item), "set_rng", None)):
                found[path] = item
                continue
            if kind is _Kind.OBJECT:
                _make_lazy(item)
            for name, part in _parts(item, kind):
                if _kind(type(part)) is not _Kind.PLAIN and id(part) not in seen:
                    seen[id(part)] = part
                    below.append((path + name, part))
            if len(seen) > _MOST_OBJECTS:
                return found
        level = below
    return found


def seed_generators(found: Mapping[str, Any], key: int) -> None:
    """Seed what `find_generators` found, each from a 64-bit key and its place.

    An object with `set_rng` is called with a key of its own.
    """
    for path, item in found.items():
        own = derive(key, path)
        if hasattr(item, "set_rng"):
            item.set_rng(own)
        elif isinstance(item, np.random.Generator):
            bits = item.bit_generator
            bits.state = type(bits)(own).state
        elif isinstance(item, np.random.RandomState):
            item.seed(np.frombuffer(_word(own), np.uint32))
        elif isinstance(item, torch.Generator):
            item.manual_seed(own)
        else:
            item.seed(own)


def _parts(item: Any, kind: _Kind) -> Iterator[tuple[str, Any]]:
    """What an object holds, by name."""
    if kind is _Kind.MAPPING:
        for number, (name, value) in enumerate(islice(item.items(), _MOST_ELEMENTS)):
            label = name if isinstance(name, (str, int)) else number
            yield f"[{label!r}]", value
    elif kind is _Kind.SEQUENCE:
        for number, value in enumerate(islice(item, _MOST_ELEMENTS)):
            yield f"[{number}]", value
    elif isinstance(item, functools.partial):
        yield from ((".func", item.func), (".args", item.args), (".keywords", item.keywords))
    elif isinstance(item, types.MethodType):
        yield from ((".__self__", item.__self__), (".__func__", item.__func__))
    elif isinstance(item, types.FunctionType):
        yield from _bound(item)
    else:
        for name, value in islice(getattr(item, "__dict__", {}).items(), _MOST_ELEMENTS):
            yield f".{name}", value
        yield from _in_slots(item)


def _bound(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function keeps of where it was made, and its defaults."""
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=False):
        with suppress(ValueError):  # a variable that has no value yet
            yield f".{name}", cell.cell_contents
    yield ".__defaults__", function.__defaults__
    yield ".__kwdefaults__", function.__kwdefaults__


def _in_slots(item: Any) -> Iterator[tuple[str, Any]]:
    for cls in type(item).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in {"__dict__", "__weakref__"} and hasattr(item, name):
                yield f".{name}", getattr(item, name)


def _make_lazy(item: Any) -> None:
    if not any(cls.__module__.partition(".")[0] == "lhotse" for cls in type(item).__mro__):
        return
    attributes: dict[str, Any] = getattr(item, "__dict__", {})
    for name in _LAZY_NAMES:
        # Once used, PerturbTempo has the module itself there, and CutMix what it has in `seed`.
        if name in attributes and (
            attributes[name] in (None, random) or attributes[name] is attributes.get("seed")
        ):
            attributes[name] = random.Random()  # noqa: S311 - for augmentation, and seeded


def _word(key: int) -> bytes:
    return int(key).to_bytes(8, "little")
