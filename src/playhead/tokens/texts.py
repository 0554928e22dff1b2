"""The texts of samples and of whole blocks of rows, and their languages."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from playhead.formats import get_format
from playhead.formats.base import BadRowError
from playhead.formats.lhotse_cuts import LhotseCuts
from playhead.formats.lhotse_shar import LhotseShar
from playhead.formats.nemo import Nemo
from playhead.formats.rows import decode_block
from playhead.formats.txt import Txt
from playhead.formats.txt_jsonl import TxtJsonl
from playhead.formats.txt_rows import language_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Example
    from playhead.tokens.rows import RowBlock

__all__ = [
    "BlockTexts",
    "TextReader",
    "supervisions_of",
    "text_reader",
    "texts_of",
]


class BlockTexts(NamedTuple):
    """The texts of some rows, row by row."""

    texts: list[str]
    """All of them."""
    languages: list[str | None]
    """The language of each; None for all where nobody asked."""
    rows: list[int] | None
    """Which row each belongs to; None where every row has exactly one."""


class TextReader(Protocol):
    """Reads nothing of rows but their texts and languages."""

    def __call__(self, block: RowBlock) -> BlockTexts | None:
        """Return the texts of rows; None where they are better read one by one."""
        ...


def texts_of(example: Example) -> list[tuple[str, str | None]]:
    """Return the texts of a sample and their languages.

    They are one text, those of a cut's supervisions, or those of a pair in the order in which they
    are read.
    """
    if example.kind == "pair":
        custom = example.custom
        target: Any = custom.get("target_language")
        said: list[tuple[str, Any]] = [
            (str(custom["source"]), custom.get("source_language", example.language)),
            (example.text or "", target),
        ]
        if custom.get("question"):
            language = custom.get("question_language") or example.language
            said.insert(0, (str(custom["question"]), language))
        return said
    if example.cut_data is not None:
        supervisions = supervisions_of(example.cut_data)
        if supervisions:
            return [
                (one["text"], one.get("language"))
                for one in supervisions
                if one.get("text") is not None
            ]
    return [] if example.text is None else [(example.text, example.language)]


def supervisions_of(cut: Any) -> list[dict[str, Any]]:
    """Return the supervisions of a serialised cut; of a mixed one those of all its tracks."""
    cuts = [track["cut"] for track in cut["tracks"]] if cut["type"] == "MixedCut" else [cut]
    return [supervision for one in cuts for supervision in one.get("supervisions") or ()]


def text_reader(leaf: Leaf, *, with_languages: bool) -> TextReader | None:
    """Return what reads the texts of a leaf's rows and nothing else; None where nobody knows how.

    It gives what `texts_of` gives of the samples that the leaf's format makes; where languages are
    not asked for, they may be left out.
    """
    if leaf.transforms:
        return None
    reader: Any = get_format(leaf.type)
    if isinstance(reader, Nemo):
        return _FieldTexts(
            leaf.options.text_field, leaf.options.lang_field if with_languages else None
        )
    if isinstance(reader, Txt):
        return partial(_lines, language_of(leaf))
    if isinstance(reader, TxtJsonl):
        return _FieldTexts(leaf.options.text_field, None, language_of(leaf))
    return _cut_texts if isinstance(reader, (LhotseCuts, LhotseShar)) else None


def _lines(language: str | None, block: RowBlock) -> BlockTexts | None:
    """Read lines that are texts, each with the newline that ends it."""
    try:
        texts = [row.decode() + "\n" for row in block.rows]
    except UnicodeDecodeError:
        return None
    return BlockTexts(texts, [language] * len(texts), None)


class _FieldTexts:
    """Reads one or two fields of JSON rows; the language may be that of all of them."""

    def __init__(
        self, text_field: str, lang_field: str | None, language: str | None = None
    ) -> None:
        self._language = language
        self._has_languages = lang_field is not None
        self._row_type = _row_type(text_field, lang_field)
        self._decoder = _decoder_of(self._row_type)

    def __call__(self, block: RowBlock) -> BlockTexts | None:
        try:
            found: list[Any] = decode_block(self._decoder, self._row_type, block.lines())
        except BadRowError:
            return None
        if len(found) != len(block.rows):
            return None
        texts: list[Any] = [row.text for row in found]
        languages: list[Any] = [self._language] * len(found)
        if self._has_languages:
            languages = [row.language for row in found]
        # Most corpora have nothing but texts here, which is known without looking at each.
        if not _TEXT_OR_NONE.issuperset(map(type, languages)):
            languages = [_as_text(value) for value in languages]
        numbers: list[int] | None = None
        if not _TEXT.issuperset(map(type, texts)):
            texts = [_as_text(value) for value in texts]
            numbers = [number for number, text in enumerate(texts) if text is not None]
        if _NOT_A_TEXT in languages or (numbers is not None and _NOT_A_TEXT in texts):
            return None
        if numbers is not None:
            languages = [languages[number] for number in numbers]
            texts = [texts[number] for number in numbers]
        return BlockTexts(texts, languages, numbers)


_TEXT = {str}
_TEXT_OR_NONE = {str, type(None)}
# No tokenizer takes such a text, so nothing is lost where a row has it.
_NOT_A_TEXT = "\udc00"


def _as_text(value: str | float | None) -> str | None:
    """Return a field as its format does; a mark where the format refuses it."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if math.isfinite(value) else _NOT_A_TEXT


@lru_cache
def _row_type(text_field: str, lang_field: str | None) -> type[msgspec.Struct]:
    kind = str | int | float | None
    fields: list[tuple[str, Any, Any]] = [
        ("text", kind, msgspec.field(default=None, name=text_field))
    ]
    namespace: dict[str, Any] = {}
    if lang_field == text_field:
        namespace["language"] = property(lambda row: row.text)
    elif lang_field is not None:
        fields.append(("language", kind, msgspec.field(default=None, name=lang_field)))
    return msgspec.defstruct("Row", fields, namespace=namespace, gc=False)


@lru_cache
def _decoder_of(row_type: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(row_type)


class _Supervision(msgspec.Struct, gc=False):
    text: str | None = None
    language: str | None = None


class _Simple(msgspec.Struct, gc=False):
    supervisions: list[_Supervision] | None = None


class _Track(msgspec.Struct, gc=False):
    cut: _Simple


class _Cut(msgspec.Struct, gc=False):
    type: str
    supervisions: list[_Supervision] | None = None
    tracks: list[_Track] | None = None


_CUTS = msgspec.json.Decoder(_Cut)


def _cut_texts(block: RowBlock) -> BlockTexts | None:
    """Read the supervisions of cuts; what fields add to a row stands behind its first line."""
    lines = block.joined
    if lines is None:
        lines = b"\n".join([row.partition(b"\n")[0] for row in block.rows])
    try:
        cuts = decode_block(_CUTS, _Cut, lines)
    except BadRowError:
        return None
    if len(cuts) != len(block.rows):
        return None
    texts: list[str] = []
    languages: list[str | None] = []
    numbers: list[int] = []
    for number, cut in enumerate(cuts):
        simple: Sequence[Any] = (cut,)
        if cut.type == "MixedCut":
            simple = [track.cut for track in cut.tracks or ()]
        for one in simple:
            said: list[Any] = [each for each in one.supervisions or () if each.text is not None]
            texts += [each.text for each in said]
            languages += [each.language for each in said]
            numbers += repeat(number, len(said))
    return BlockTexts(texts, languages, numbers)
