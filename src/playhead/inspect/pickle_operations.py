"""The operations of pickles: the same as the real ones, but that nothing is looked up or called."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from playhead.inspect.inert import (
    ELEMENTS,
    Global,
    Inert,
    built,
    is_plain_key,
    made,
    storage_of,
    with_state,
)
from playhead.inspect.pickle_machine import BrokenError, StopPickle

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.inspect.pickle_machine import Machine

__all__ = ["OPERATIONS"]

# No run counts as far; Python itself refuses to read numbers of more digits.
_MOST_DIGITS = 4300
_MOST_NUMBER_BYTES = 1024

_U1, _U2, _U4, _U8 = (struct.Struct(form) for form in ("<B", "<H", "<I", "<Q"))
_I4, _F8 = struct.Struct("<i"), struct.Struct(">d")

OPERATIONS: list[Callable[[Machine], None]] = []
"""What each byte does, by its value."""


def _unknown(machine: Machine) -> None:
    raise BrokenError(f"byte {machine.place - 1} is no operation of one")


OPERATIONS.extend([_unknown] * 256)


def _operation(*codes: bytes) -> Callable[[Callable[[Machine], None]], Callable[[Machine], None]]:
    def register(function: Callable[[Machine], None]) -> Callable[[Machine], None]:
        for code in codes:
            OPERATIONS[code[0]] = function
        return function

    return register


def _constant(code: bytes, make: Callable[[], Any]) -> None:
    _operation(code)(lambda machine: machine.stack.append(make()))


def _read(code: bytes, read: Callable[[Machine], Any]) -> None:
    _operation(code)(lambda machine: machine.stack.append(read(machine)))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _whole(text: bytes) -> int | bool:
    if text in (b"00", b"01"):
        return text == b"01"
    if len(text) > _MOST_DIGITS:
        raise ValueError
    return int(text.rstrip(b"L"), 10)


def _long(data: bytes) -> Any:
    if len(data) > _MOST_NUMBER_BYTES:
        return Inert("a number of absurd size")
    return int.from_bytes(data, "little", signed=True)


def _quoted(line: bytes) -> Any:
    text = line.strip()
    if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in (b"'", b'"'):
        raise ValueError
    # Python 2 had no other texts; escapes are left as they are.
    return text[1:-1].decode("latin-1")


_constant(b"N", lambda: None)
_constant(b"\x88", lambda: True)
_constant(b"\x89", lambda: False)
_constant(b")", tuple)
_constant(b"]", list)
_constant(b"}", dict)
_constant(b"\x8f", list)
_read(b"J", lambda machine: machine.number(_I4))
_read(b"K", lambda machine: machine.number(_U1))
_read(b"M", lambda machine: machine.number(_U2))
_read(b"G", lambda machine: machine.number(_F8))
_read(b"I", lambda machine: _whole(machine.line()))
_read(b"L", lambda machine: _whole(machine.line()))
_read(b"F", lambda machine: float(machine.line()))
_read(b"\x8a", lambda machine: _long(machine.taken(machine.number(_U1))))
_read(b"\x8b", lambda machine: _long(machine.taken(machine.number(_I4))))
_read(b"S", lambda machine: _quoted(machine.line()))
_read(b"T", lambda machine: machine.taken(machine.number(_I4)).decode("latin-1"))
_read(b"U", lambda machine: machine.taken(machine.number(_U1)).decode("latin-1"))
_read(b"V", lambda machine: machine.line().decode("raw-unicode-escape"))
_read(b"X", lambda machine: _text(machine.taken(machine.number(_U4))))
_read(b"\x8c", lambda machine: _text(machine.taken(machine.number(_U1))))
_read(b"\x8d", lambda machine: _text(machine.taken(machine.number(_U8))))
_read(b"B", lambda machine: machine.taken(machine.number(_U4)))
_read(b"C", lambda machine: machine.taken(machine.number(_U1)))
_read(b"\x8e", lambda machine: machine.taken(machine.number(_U8)))
_read(b"\x96", lambda machine: machine.taken(machine.number(_U8)))
_read(b"g", lambda machine: machine.memo[int(machine.line())])
_read(b"h", lambda machine: machine.memo[machine.number(_U1)])
_read(b"j", lambda machine: machine.memo[machine.number(_U4)])
_read(b"P", lambda machine: built("persistent id", (machine.line().decode("latin-1"),)))
_read(b"\x82", lambda machine: built("extension", (machine.number(_U1),)))
_read(b"\x83", lambda machine: built("extension", (machine.number(_U2),)))
_read(b"\x84", lambda machine: built("extension", (machine.number(_I4),)))
_read(b"\x97", lambda machine: built("buffer", ()))  # noqa: ARG005
_read(b"c", lambda machine: _global(_text(machine.line()), _text(machine.line())))


def _global(module: str, name: str) -> Global:
    module = "builtins" if module == "__builtin__" else module
    return Global(f"{module}.{name}")


@_operation(b"\x80")
def _protocol(machine: Machine) -> None:
    if machine.number(_U1) > 5:
        raise BrokenError("its protocol is not known")


@_operation(b"\x95")
def _frame(machine: Machine) -> None:
    machine.number(_U8)


@_operation(b".")
def _stop(machine: Machine) -> None:
    if not machine.stack:
        raise IndexError
    raise StopPickle


@_operation(b"(")
def _mark(machine: Machine) -> None:
    machine.marks.append(len(machine.stack))


@_operation(b"0")
def _pop(machine: Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.stack.pop()


@_operation(b"1")
def _pop_mark(machine: Machine) -> None:
    machine.above_mark()


@_operation(b"2")
def _again(machine: Machine) -> None:
    machine.stack.append(machine.stack[-1])


@_operation(b"p")
def _put_text(machine: Machine) -> None:
    machine.remember(int(machine.line()))


@_operation(b"q")
def _put_1(machine: Machine) -> None:
    machine.remember(machine.number(_U1))


@_operation(b"r")
def _put_4(machine: Machine) -> None:
    machine.remember(machine.number(_U4))


@_operation(b"\x94")
def _memoize(machine: Machine) -> None:
    machine.remember(len(machine.memo))


@_operation(b"t")
def _tuple(machine: Machine) -> None:
    items = machine.above_mark()
    machine.stack.append(tuple(items))


@_operation(b"l", b"\x91")
def _list(machine: Machine) -> None:
    items = machine.above_mark()
    machine.stack.append(items)


def _short_tuple(count: int) -> Callable[[Machine], None]:
    def tuple_of_few(machine: Machine) -> None:
        if len(machine.stack) < count:
            raise IndexError
        machine.stack[-count:] = [tuple(machine.stack[-count:])]

    return tuple_of_few


for _count, _code in ((1, b"\x85"), (2, b"\x86"), (3, b"\x87")):
    _operation(_code)(_short_tuple(_count))


@_operation(b"d")
def _dict(machine: Machine) -> None:
    items = machine.above_mark()
    entries: dict[Any, Any] = {}
    _set_items(entries, items)
    machine.stack.append(entries)


@_operation(b"a")
def _append(machine: Machine) -> None:
    value = machine.stack.pop()
    _add(machine.stack[-1], [value])


@_operation(b"e", b"\x90")
def _appends(machine: Machine) -> None:
    items = machine.above_mark()
    _add(machine.stack[-1], items)


def _add(target: Any, items: list[Any]) -> None:
    if isinstance(target, list):
        target.extend(items)
    elif isinstance(target, Inert):
        elements = target.setdefault(ELEMENTS, [])
        elements.extend(items)
    else:
        raise TypeError


@_operation(b"s")
def _set_item(machine: Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _set_items(machine.stack[-1], [key, value])


@_operation(b"u")
def _set_all(machine: Machine) -> None:
    items = machine.above_mark()
    _set_items(machine.stack[-1], items)


def _set_items(target: Any, items: list[Any]) -> None:
    if len(items) % 2 or not isinstance(target, dict):
        raise TypeError
    for place in range(0, len(items), 2):
        key = items[place]
        target[key if is_plain_key(key) else _unhashed(key)] = items[place + 1]


def _unhashed(key: Any) -> Inert:
    """What stands for a key whose hash could take for ever."""
    return built("key", (key,))


@_operation(b"Q")
def _persistent(machine: Machine) -> None:
    machine.stack[-1] = storage_of(machine.stack[-1])


@_operation(b"\x93")
def _stack_global(machine: Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    if not (isinstance(name, str) and isinstance(module, str)):
        raise TypeError
    machine.stack.append(_global(module, name))


@_operation(b"R", b"\x81")
def _call(machine: Machine) -> None:
    arguments = machine.stack.pop()
    machine.spend(arguments)
    machine.stack[-1] = made(machine.stack[-1], arguments)


@_operation(b"\x92")
def _call_with_names(machine: Machine) -> None:
    names, arguments = machine.stack.pop(), machine.stack.pop()
    machine.spend((names, arguments))
    machine.spend(arguments)
    result = made(machine.stack[-1], arguments)
    machine.stack[-1] = with_state(result, names)


@_operation(b"b")
def _build(machine: Machine) -> None:
    state = machine.stack.pop()
    machine.spend(state)
    machine.stack[-1] = with_state(machine.stack[-1], state)


@_operation(b"i")
def _instance(machine: Machine) -> None:
    kind = _global(_text(machine.line()), _text(machine.line()))
    arguments = tuple(machine.above_mark())
    machine.spend(arguments)
    machine.stack.append(made(kind, arguments))


@_operation(b"o")
def _object(machine: Machine) -> None:
    kind, *rest = machine.above_mark()
    arguments = tuple(rest)
    machine.spend(arguments)
    machine.stack.append(made(kind, arguments))


@_operation(b"\x98")
def _read_only(machine: Machine) -> None:
    _ = machine.stack[-1]
