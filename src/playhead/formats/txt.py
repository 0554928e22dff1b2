r"""Plain text, a sample a line (`txt`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.formats.base import SourcePair
from playhead.formats.example import Example
from playhead.formats.registry import register
from playhead.formats.txt_rows import language_of, row_id, text_columns, text_files, utf8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns
    from playhead.formats.example import Part, Place

__all__ = ["Txt", "blank_lines"]


@register("txt")
class Txt:
    r"""Lines of text files in UTF-8.

    - The text ends with one ``\n``, as NeMo hands it over; here the last line of a file that does
      not end with a newline has one too. ``\r\n`` is read as ``\n``. A ``\r`` inside a line stays
      where it is, while NeMo would end the line there.
    - Blank lines are dropped and counted, while NeMo makes samples of a newline alone; a byte order
      mark is left out, while NeMo keeps it in the first text.
    - The id is the file's name without its suffix and the sample's row in the leaf.
    - `custom` holds the leaf's tags.
    """

    lines_are_json = False

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One source a file, in declared order.

        Raises
        ------
        ConfigError
            If the entry does not say the language.
        """
        language_of(leaf, is_needed=True)
        return [SourcePair(manifest=path) for path in text_files(leaf)]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of lines; `Format.columns`."""
        utf8(block)
        lines = block.split(b"\n")
        return text_columns(len(lines), {"blank line": blank_lines(lines)})

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:  # noqa: ARG002 - the protocol's
        """Make the sample of one line; `Format.example`."""
        return Example(
            id=row_id(place),
            text=utf8(row) + "\n",
            language=language_of(leaf),
            audio=None,
            place=place,
            kind="text",
            custom=dict(leaf.tags),
        )


def blank_lines(lines: Sequence[bytes]) -> list[int]:
    r"""Places of the lines that hold nothing, or white space of ASCII alone.

    Examples
    --------
    >>> blank_lines([b"a", b"", b" \t\r", b" b"])
    [1, 2]
    """
    return [index for index, line in enumerate(lines) if not line or line.isspace()]
