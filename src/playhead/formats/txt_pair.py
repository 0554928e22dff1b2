"""Texts that belong together line by line, such as translations (`txt_pair`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import ConfigError
from playhead.formats.base import BadRowError, FieldShard, SourcePair
from playhead.formats.example import Example
from playhead.formats.registry import register
from playhead.formats.txt import blank_lines
from playhead.formats.txt_rows import language_of, row_id, text_columns, text_files, utf8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns
    from playhead.formats.example import Part, Place

__all__ = ["TxtPair"]

_TARGET = "target"


@register("txt_pair")
class TxtPair:
    """Line k of the n-th source file and line k of the n-th target file, both in UTF-8.

    - White space around lines is left out, as in NeMo. Two files that belong together must have as
      many lines, while NeMo stops where the shorter one ends.
    - A pair whose source is blank is dropped and counted, while NeMo makes a sample of it; a target
      may be blank.
    - The id is the source file's name without its suffix and the sample's row in the leaf.
    - `custom` holds the leaf's tags, then `source`, `target`, `source_language`, `target_language`
      and `question_language`; `text` is the target, `language` that of the source.
    """

    lines_are_json = False

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """Pair source files with target files, in declared order.

        Raises
        ------
        ConfigError
            If there are not as many of one as of the other, or a language is not a text.
        """
        for key in ("source_language", "target_language", "questions_language"):
            language_of(leaf, key)
        sources, targets = text_files(leaf, "source"), text_files(leaf, _TARGET)
        if len(sources) != len(targets):
            raise ConfigError(
                f"there are {len(sources)} source files and {len(targets)} target files",
                where=f"leaf {leaf.name}, {sources[0]} and {targets[0]}",
                fix="Give every file of source_paths its partner in target_paths, in the same"
                " order",
            )
        return [
            SourcePair(manifest=source, fields=(FieldShard(_TARGET, target),))
            for source, target in zip(sources, targets, strict=True)
        ]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of lines of the source; `Format.columns`."""
        utf8(block)
        lines = block.split(b"\n")
        return text_columns(len(lines), {"blank line": blank_lines(lines)})

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of two lines; `Format.example`.

        Raises
        ------
        BadRowError
            If one is not UTF-8, or the target's is not given.
        """
        # Where rows lie in the pack, the target's line stands behind the source's.
        line, newline, behind = row.partition(b"\n")
        part = next((part for part in parts if part.field == _TARGET), None)
        if part is None and not newline:
            raise BadRowError(
                "the line has no partner in the target file", fix="Index the files again"
            )
        source = utf8(line).strip()
        target = utf8(behind).strip() if part is None else _target(part)
        language = language_of(leaf, "source_language")
        return Example(
            id=row_id(place),
            text=target,
            language=language,
            audio=None,
            place=place,
            kind="pair",
            custom={
                **leaf.tags,
                "source": source,
                "target": target,
                "source_language": language,
                "target_language": language_of(leaf, "target_language"),
                "question_language": language_of(leaf, "questions_language"),
            },
        )


def _target(part: Part) -> str:
    try:
        return utf8(part.data).strip()
    except BadRowError as error:
        what = f"{error.what}; it begins at byte {part.offset} of {part.path}"
        raise BadRowError(what, fix=error.fix) from None
