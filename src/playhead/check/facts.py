"""What a batch holds, piece by piece, in a form that is compared bit for bit."""

from __future__ import annotations

import copyreg
import functools
import hashlib
import reprlib
import struct
import types
from collections import deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Fact", "Facts", "facts_of"]

_MOST_LEVELS = 60
_MOST_FACTS = 500_000
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60

_NAMED = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ModuleType,
)
# What gives its content once, or belongs to the process.
_LIVE = (types.GeneratorType, types.CoroutineType, types.FrameType, types.TracebackType, memoryview)


class Fact(NamedTuple):
    """One piece of a batch, as it was when it was looked at."""

    kind: str
    """Type, and of arrays the element type and shape."""
    data: bytes = b""
    """Its content."""
    shape: tuple[int, ...] | None = None
    """Of arrays: how many elements `data` holds along each axis."""
    shown: str = ""
    """Its content for people; of what cannot be compared, why not."""
    is_comparable: bool = True
    """Whether `data` says all there is."""


Facts = dict[str, Fact]
"""The pieces of a batch by their place, such as `batch["audio"]`, outer ones first."""


def facts_of(batch: Any) -> Facts:
    """Take down what a batch holds; later changes of the batch do not show.

    Tensors, arrays, numbers, texts, and what containers, dataclasses, Lhotse's cuts and other
    objects hold, at any depth, enter with all their bits: -0.0 is not 0.0, and a NaN equals a NaN
    of the same bits. The order of the keys of a mapping counts, that of a set does not.

    Examples
    --------
    >>> list(facts_of({"ids": ["a", "b"]}))
    ['batch', 'batch["ids"]', 'batch["ids"][0]', 'batch["ids"][1]']
    """
    walk = _Walk()
    walk.add("batch", batch)
    return walk.facts


class _Walk:
    def __init__(self) -> None:
        self.facts: Facts = {}
        self._open: list[int] = []

    def add(self, path: str, item: Any) -> None:
        """Take down an item and all that it holds."""
        if len(self.facts) >= _MOST_FACTS or len(self._open) >= _MOST_LEVELS:
            reason = f"there are more than {_MOST_FACTS:,} things, or {_MOST_LEVELS} levels"
            self.facts[path] = _opaque(item, reason)
        elif id(item) in self._open:
            up = len(self._open) - self._open.index(id(item))
            self.facts[path] = Fact("what holds it", shown=f"{up} levels up")
        else:
            self._open.append(id(item))
            try:
                self._take(path, item)
            finally:
                self._open.pop()

    def _take(self, path: str, item: Any) -> None:
        fact = _simple(item)
        if fact is not None:
            self.facts[path] = fact
            return
        fact, parts = _compound(item)
        self.facts[path] = fact
        for label, part in parts:
            self.add(path + label, part)


def _simple(item: Any) -> Fact | None:  # noqa: PLR0911 - a table
    """The fact of what holds nothing but itself; None of what has parts."""
    name = _name(type(item))
    if item is None or isinstance(item, (bool, int, str, Enum, PurePath)):
        return Fact(name, repr(item).encode("utf-8", "surrogatepass"), shown=_SHORT.repr(item))
    if isinstance(item, float):
        return Fact(name, struct.pack("<d", item), shown=repr(item))
    if isinstance(item, complex):
        return Fact(name, struct.pack("<dd", item.real, item.imag), shown=repr(item))
    if isinstance(item, (bytes, bytearray)):
        return Fact(name, bytes(item), shown=f"{len(item)} bytes")
    if isinstance(item, (np.ndarray, np.generic)) and not item.dtype.hasobject:
        array = f"{item.dtype} array of shape {item.shape}"
        kind = f"{item.dtype}" if isinstance(item, np.generic) else array
        shown = f"{item}" if isinstance(item, np.generic) else array
        return Fact(kind, item.tobytes(), item.shape, shown)
    if isinstance(item, torch.Tensor):
        return _tensor(item)
    if isinstance(item, _NAMED):
        named = f"{getattr(item, '__module__', '')}.{getattr(item, '__qualname__', item.__name__)}"
        bound = getattr(item, "__closure__", None)
        return None if bound else Fact(name, named.encode(), shown=named)
    if isinstance(item, _LIVE):
        return _opaque(item, "it gives its content only once")
    return None


def _tensor(item: torch.Tensor) -> Fact | None:
    if item.layout is not torch.strided or item.is_nested:
        return None
    kind = f"{item.dtype} tensor of shape {tuple(item.shape)}".removeprefix("torch.")
    try:
        # Bytes, because NumPy has not all of torch's types.
        flat = item.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        data = flat.view(torch.uint8).numpy().tobytes()
    except (RuntimeError, NotImplementedError, TypeError) as error:
        return _opaque(item, str(error).partition("\n")[0])
    return Fact(kind, data, tuple(item.shape), kind)


def _compound(item: Any) -> tuple[Fact, Iterator[tuple[str, Any]]]:  # noqa: PLR0911 - a table
    """The fact of a container or an object, and its parts."""
    name = _name(type(item))
    if isinstance(item, Mapping):
        keys = list(item)
        labels = [_key(number, key) for number, key in enumerate(keys)]
        fact = Fact(f"{name} of {len(keys)}", repr(labels).encode(), shown=", ".join(labels))
        return fact, iter([(label, item[key]) for label, key in zip(labels, keys, strict=True)])
    if isinstance(item, AbstractSet):
        ordered = sorted(item, key=_digest)
        parts = [(f"{{{number}}}", part) for number, part in enumerate(ordered)]
        return Fact(f"{name} of {len(ordered)}"), iter(parts)
    if isinstance(item, (list, tuple, deque, range)):
        fields = getattr(item, "_fields", None)
        labels = [f"[{number}]" for number in range(len(item))]
        if isinstance(fields, tuple) and len(fields) == len(item):
            labels = [f".{field}" for field in fields]
        return Fact(f"{name} of {len(item)}"), iter(list(zip(labels, item, strict=True)))
    if isinstance(item, np.ndarray):
        kind = f"array of objects of shape {item.shape}"
        return Fact(kind), iter([(".tolist()", item.tolist())])
    if isinstance(item, torch.Tensor):
        return _of_sparse(item)
    if hasattr(type(item), "is_lazy") and type(item).__module__.startswith("lhotse"):
        # Lhotse's sets of cuts may hold nothing but the way to make them.
        cuts = list(islice(item, _MOST_FACTS))
        parts = [(f"[{number}]", cut) for number, cut in enumerate(cuts)]
        return Fact(f"{name} of {len(cuts)}"), iter(parts)
    return _of_object(item)


def _of_sparse(item: torch.Tensor) -> tuple[Fact, Iterator[tuple[str, Any]]]:
    kind = f"{item.dtype} {item.layout} tensor of shape {tuple(item.shape)}".replace("torch.", "")
    if item.is_nested or item.layout is not torch.sparse_coo:
        return _opaque(item, f"it is a {kind}"), iter(())
    dense = item.coalesce()
    parts = [(".indices()", dense.indices()), (".values()", dense.values())]
    return Fact(kind), iter(parts)


def _of_object(item: Any) -> tuple[Fact, Iterator[tuple[str, Any]]]:
    name = _name(type(item))
    if isinstance(item, functools.partial):
        parts = [(".func", item.func), (".args", item.args), (".keywords", item.keywords)]
        return Fact(name), iter(parts)
    if isinstance(item, types.MethodType):
        return Fact(name), iter([(".__func__", item.__func__), (".__self__", item.__self__)])
    if isinstance(item, types.FunctionType):
        cells = [cell.cell_contents for cell in item.__closure__ or () if cell != types.CellType()]
        named = f"{item.__module__}.{item.__qualname__}"
        return Fact(name, named.encode(), shown=named), iter([(".__closure__", cells)])
    held = list(_attributes(item))
    cls = type(item)
    as_objects_are = (cls.__reduce_ex__, cls.__reduce__) == (
        object.__reduce_ex__,
        object.__reduce__,
    )
    if not (held and as_objects_are):
        # What C code holds shows only in how the object is copied.
        try:
            reduce = copyreg.dispatch_table.get(type(item))
            copied: Any = item.__reduce_ex__(4) if reduce is None else reduce(item)
        except Exception as error:  # noqa: BLE001 - whatever a stranger's object raises
            if not held:
                return _opaque(item, str(error).partition("\n")[0]), iter(())
        else:
            held += _reduced(copied)
    return Fact(f"{name} with {', '.join(label for label, _ in held)}"), iter(held)


def _reduced(copied: Any) -> list[tuple[str, Any]]:
    """The parts of what `__reduce_ex__` returned."""
    if isinstance(copied, str):
        return [(".name", copied)]
    made_of = [(".args", copied[1])]
    if len(copied) > 2 and copied[2] is not None:
        made_of.append((".state", copied[2]))
    for label, parts in zip((".items", ".pairs"), copied[3:5], strict=False):
        if parts is not None:
            made_of.append((label, list(parts)))
    return made_of


def _attributes(item: Any) -> Iterator[tuple[str, Any]]:
    held: Any = getattr(item, "__dict__", None)
    if isinstance(held, dict):
        for name, value in list(held.items()):
            yield f".{name}", value
    for cls in type(item).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in {"__dict__", "__weakref__"} and hasattr(item, name):
                yield f".{name}", getattr(item, name)


def _key(number: int, key: Any) -> str:
    """How a key of a mapping stands in a path."""
    if isinstance(key, str):
        return '["' + key.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    if isinstance(key, (int, float, bytes, tuple, type(None), Enum)):
        return f"[{key!r}]"
    return f"[key {number}: {_name(type(key))}]"


def _digest(item: Any) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for path, fact in facts_of(item).items():
        digest.update(f"{path} {fact.kind} ".encode("utf-8", "surrogatepass") + fact.data)
    return digest.digest()


def _opaque(item: Any, reason: str) -> Fact:
    return Fact(_name(type(item)), shown=reason, is_comparable=False)


_name: Callable[[type], str] = functools.lru_cache(maxsize=1024)(
    lambda cls: (
        cls.__qualname__
        if cls.__module__ in {"builtins", "numpy", "torch"}
        else f"{cls.__module__}.{cls.__qualname__}"
    )
)
