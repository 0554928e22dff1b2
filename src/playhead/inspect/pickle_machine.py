"""The stack machine that a pickle is a program for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import struct

__all__ = ["BrokenError", "Machine", "StopPickle"]

_LONGEST_LINE = 1 << 20
_FREE_COPIES = 1 << 20
_SIZED = (bytes, dict, list, str, tuple)


class StopPickle(Exception):  # noqa: N818 - the end of a pickle is no error
    """The pickle is at its end."""


class BrokenError(Exception):
    """The pickle does what no real one does."""


class Machine:
    """The stack, the marks in it, and what was kept to be used again.

    Parameters
    ----------
    data
        Bytes that hold the pickle.
    place
        Where it begins.

    Attributes
    ----------
    stack
        What was made and not used yet.
    marks
        Places of the stack above which the items of a container lie.
    memo
        What was kept, by number.
    """

    def __init__(self, data: bytes, place: int) -> None:
        self.data = data
        self.place = place
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        # What is copied is copied once in any real pickle, and could be a million times.
        self._copies_left = len(data) + _FREE_COPIES

    def spend(self, value: Any) -> None:
        """Count what handing a value on may copy."""
        parts = value if isinstance(value, tuple) else (value,)
        self._copies_left -= sum(len(part) for part in parts if isinstance(part, _SIZED))
        if self._copies_left < 0:
            raise BrokenError("it would grow to many times its size")

    def taken(self, count: int) -> bytes:
        """The next bytes."""
        end = self.place + count
        if count < 0 or end > len(self.data):
            raise IndexError
        data = self.data[self.place : end]
        self.place = end
        return data

    def line(self) -> bytes:
        """The bytes up to the next line end."""
        end = self.data.find(b"\n", self.place, self.place + _LONGEST_LINE)
        if end < 0:
            raise IndexError
        line = self.data[self.place : end]
        self.place = end + 1
        return line

    def number(self, form: struct.Struct) -> Any:
        """The next number of some form."""
        (value,) = form.unpack_from(self.data, self.place)
        self.place += form.size
        return value

    def above_mark(self) -> list[Any]:
        """The items above the last mark, taken off the stack with it."""
        mark = self.marks.pop()
        items = self.stack[mark:]
        del self.stack[mark:]
        return items

    def remember(self, number: int) -> None:
        """Keep what lies on top of the stack."""
        self.memo[number] = self.stack[-1]
