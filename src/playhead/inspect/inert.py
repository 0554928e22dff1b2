"""What stands for the objects of a pickle: plain containers, numbers, and dicts that do nothing."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "ELEMENTS",
    "Global",
    "Inert",
    "Tensor",
    "built",
    "is_plain_key",
    "made",
    "storage_of",
    "with_state",
]

ARGUMENTS, ELEMENTS, STATE = "()", "[]", "{}"
"""Keys under which an `Inert` keeps what is no entry of a dict or attribute of an object."""

_MOST_NAMED = 8
_DTYPES = {
    "BFloat16Storage": "bfloat16",
    "BoolStorage": "bool",
    "ByteStorage": "uint8",
    "CharStorage": "int8",
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "ShortStorage": "int16",
}
_NUMBERS = {
    "b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q",
    "u8": "Q", "f2": "e", "f4": "f", "f8": "d",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Global:
    """The name of a class or a function; it is never looked up."""

    name: str
    """Module and name, such as `torch.Size`."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor or an array whose numbers are not read."""

    dtype: str
    """Type of its numbers, such as `float32`."""
    shape: tuple[int, ...]
    """Its shape; of a storage, how many numbers it has."""


@final
class Inert(dict[Any, Any]):
    """An object of any class: its attributes and entries, and nothing that could run.

    Parameters
    ----------
    name
        Module and name of its class, or of the function that would have made it.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    # It may stand as a key of a dict, as what it stands for may.
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<{self.name}>"


def is_plain_key(key: Any) -> bool:
    """Whether hashing a key costs little: a number, a text, or a short tuple of these."""
    if isinstance(key, tuple):
        return len(key) <= _MOST_NAMED and all(_is_atom(part) for part in key)
    return _is_atom(key) or isinstance(key, (Inert, Global))


def _is_atom(key: Any) -> bool:
    return key is None or isinstance(key, (str, int, float, bytes, bool))


def made(function: Any, arguments: Any) -> Any:
    """Return what stands for the result of a call, which is not made.

    Parameters
    ----------
    function
        What would be called.
    arguments
        What with.
    """
    name = function.name if isinstance(function, (Global, Inert)) else type(function).__name__
    values = arguments if isinstance(arguments, tuple) else (arguments,)
    builder = _BUILDERS.get(name) if isinstance(function, Global) else None
    if builder is not None:
        try:
            return builder(*values)
        except (TypeError, ValueError, IndexError, AttributeError, OverflowError):
            # Not what the function takes: then it is no more than a call.
            pass
    return built(name, values)


def built(name: str, arguments: tuple[Any, ...]) -> Inert:
    """Return what stands for an object of a class.

    Parameters
    ----------
    name
        Module and name of the class.
    arguments
        What it is made with.
    """
    result = Inert(name)
    if arguments:
        result[ARGUMENTS] = arguments
    return result


def with_state(target: Any, state: Any) -> Any:
    """Return an object with the state that it was saved with."""
    if not isinstance(target, Inert):
        return target
    if target.name == "numpy.dtype":
        target[STATE] = state
        return target
    # Of objects with slots: their `__dict__`, and the slots.
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    if all(part is None or isinstance(part, dict) for part in parts):
        for part in parts:
            target.update(part or {})
    else:
        target[STATE] = state
    return target


def _elements(values: Iterable[Any] = ()) -> list[Any]:
    if not isinstance(values, (list, tuple)):
        raise TypeError
    return list(values)


def _entries(pairs: Any = ()) -> dict[Any, Any]:
    if isinstance(pairs, dict):
        return dict(pairs)
    return {key: value for key, value in _elements(pairs) if is_plain_key(key)}


def _default_entries(factory: Any = None, pairs: Any = ()) -> dict[Any, Any]:
    del factory
    return _entries(pairs)


def _size(values: Iterable[Any] = ()) -> tuple[Any, ...]:
    return tuple(_elements(values))


def _encoded(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":
        raise ValueError
    return text.encode("latin-1")


def _bytes(values: Any = b"", encoding: str | None = None) -> bytes:
    if isinstance(values, str):
        return _encoded(values, encoding or "")
    return bytes(values if isinstance(values, bytes) else _elements(values))


def _number(dtype: Any, data: Any = b"") -> Any:
    """The scalar of NumPy that its bytes are."""
    if not (isinstance(dtype, Inert) and isinstance(data, bytes)):
        raise TypeError
    code = dtype[ARGUMENTS][0]
    order = ">" if dtype.get(STATE, ("", ""))[1] == ">" else "<"
    if code not in _NUMBERS or struct.calcsize(order + _NUMBERS[code]) != len(data):
        raise ValueError
    return struct.unpack(order + _NUMBERS[code], data)[0]


def _tensor(storage: Any, offset: Any, shape: Any, *rest: Any) -> Tensor:
    del offset, rest
    return Tensor(_dtype(storage), tuple(int(size) for size in _elements(shape)))


def _dtype(storage: Any) -> str:
    if not isinstance(storage, Tensor):
        raise TypeError
    return storage.dtype


def _tensor_with_dtype(storage: Any, offset: Any, shape: Any, *rest: Any) -> Tensor:
    given = [one.name.removeprefix("torch.") for one in rest if isinstance(one, Global)]
    dtype = given[0] if given else _dtype(storage)
    return Tensor(dtype, _tensor(storage, offset, shape).shape)


def _first(value: Any, *rest: Any) -> Any:
    del rest
    return value


def storage_of(reference: Any) -> Any:
    """Return the storage that a persistent id of torch names, as far as it is known."""
    if isinstance(reference, tuple) and len(reference) >= 5 and reference[0] == "storage":
        kind, numel = reference[1], reference[4]
        if isinstance(kind, Global) and isinstance(numel, int):
            short = kind.name.rpartition(".")[2]
            return Tensor(_DTYPES.get(short, short), (numel,))
    return built("persistent id", (reference,))


_BUILDERS: dict[str, Callable[..., Any]] = {
    "_codecs.encode": _encoded,
    "builtins.bytearray": _bytes,
    "builtins.bytes": _bytes,
    "builtins.dict": _entries,
    "builtins.frozenset": _elements,
    "builtins.list": _elements,
    "builtins.set": _elements,
    "builtins.tuple": _size,
    "collections.Counter": _entries,
    "collections.OrderedDict": _entries,
    "collections.defaultdict": _default_entries,
    "collections.deque": lambda values=(), longest=None: _elements(values),  # noqa: ARG005
    "numpy._core.multiarray.scalar": _number,
    "numpy.core.multiarray.scalar": _number,
    "torch.Size": _size,
    "torch._utils._rebuild_parameter": _first,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor_with_dtype,
}
