"""How many tokens every row of a leaf has, in side files of its pack."""

from __future__ import annotations

import logging
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.index.build import WAIT_SECONDS
from playhead.tokens.base import BadTextError
from playhead.tokens.extra import longest_lines
from playhead.tokens.hf_tokenizer import own_threads_off
from playhead.tokens.lengths import Lengths
from playhead.tokens.rows import examples, place_of, read_rows
from playhead.tokens.shares import measure_share
from playhead.tokens.side_columns import find_columns, open_columns
from playhead.tokens.texts import text_reader
from playhead.tokens.writing import count_writings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Kind, Leaf
    from playhead.formats.example import Example
    from playhead.index.build_pace import Progress
    from playhead.index.pack import LeafPack
    from playhead.index.part_work import Share
    from playhead.index.pool import Workers
    from playhead.tokens.encoding import Encoding
    from playhead.tokens.jobs import Stretch
    from playhead.tokens.rows import RowBlock
    from playhead.tokens.texts import BlockTexts
    from playhead.tokens.writing import Writing

__all__ = [
    "TOKENS",
    "TokenCounts",
    "count_token_share",
    "find_token_columns",
    "open_token_columns",
]

_log = logging.getLogger("playhead")

TOKENS = "tokens"
"""Kind of the side files, and name of their column."""


class TokenCounts:
    """Counts the tokens of rows.

    Parameters
    ----------
    encoding
        What makes tokens of them.
    kind
        What their samples are.
    """

    kind = TOKENS

    def __init__(self, encoding: Encoding, kind: Kind = "cut") -> None:
        self._encoding = encoding
        self.digest = encoding.digest
        names = (TOKENS,) if encoding.audio is None else Lengths._fields
        self.columns = dict.fromkeys(names, np.uint32)
        self._are_texts = kind == "text"
        self._are_cuts = kind == "cut"

    @property
    def runs_in_threads(self) -> bool:
        """Whether a library does most of the work: not where rows become samples one by one."""
        encoding = self._encoding
        if self._are_texts:
            is_library = encoding.text_frame(_some_language(encoding)) is not None
        else:
            is_library = self._are_cuts and encoding.prompt_format is None
        return is_library and encoding.tokenizer.runs_in_threads

    def of_rows(self, leaf: Leaf, pack: LeafPack, stretch: Stretch) -> dict[str, NDArray[Any]]:
        """Return how many tokens each row has; `Measure.of_rows`."""
        start = stretch.start
        block = read_rows(leaf, pack, start, stretch.stop)
        counted = self._of_block(leaf, pack, start, block)
        if counted is None:
            lines = longest_lines(leaf, self._encoding.tokenizer)
            samples = list(examples(leaf, pack, start, block, lines))
            found = np.array(self._of_samples(samples), np.uint32)
            counted = found.reshape(len(samples), len(Lengths._fields)).T
        columns = dict(zip(Lengths._fields, counted, strict=True))
        return {name: columns[name] for name in self.columns}

    def _of_samples(self, samples: list[Example]) -> list[Lengths]:
        """Count samples, all their texts at once where it is known what is encoded."""
        encoding = self._encoding
        writings: list[Writing] = []
        for sample in samples:
            writing = encoding.written(sample)
            if writing is None:
                return list(map(encoding.lengths, samples))
            writings.append(writing)
        try:
            counts = count_writings(writings, encoding.tokenizer).tolist()
        except BadTextError as error:
            raise error.placed(samples[error.index].place) from error.__cause__
        return list(map(encoding.measured, samples, counts))

    def _of_block(
        self, leaf: Leaf, pack: LeafPack, start: int, block: RowBlock
    ) -> Sequence[NDArray[np.uint32]] | None:
        """Count all rows at once, in the order of `Lengths`; None where only samples tell."""
        encoding = self._encoding
        if not self._are_texts and (encoding.prompt_format is not None or not self._are_cuts):
            return None
        reader = text_reader(leaf, with_languages=encoding.tokenizer.languages is not None)
        texts = None if reader is None else reader(block)
        if texts is None:
            return None
        if not self._are_texts:
            counts = self._of_texts(leaf, pack, start, len(block.rows), texts)
            nothing = np.zeros_like(counts)
            return counts, nothing, counts, nothing, counts
        # The texts of a leaf have one language, and every row has one.
        frame = None
        if texts.rows is None:
            with suppress(BadTextError):
                frame = encoding.text_frame(texts.languages[0])
        if frame is None:
            return None
        if frame.before or frame.behind:
            before, behind = frame.before, frame.behind
            texts = texts._replace(texts=[before + text + behind for text in texts.texts])
        answer = self._of_texts(leaf, pack, start, len(block.rows), texts)
        answer += np.uint32(frame.edges)
        context = np.full_like(answer, frame.context)
        return context + answer, context, answer, context, answer

    def _of_texts(
        self, leaf: Leaf, pack: LeafPack, start: int, num_rows: int, texts: BlockTexts
    ) -> NDArray[np.uint32]:
        try:
            # Threads share the environment, and are started where it is set.
            with nullcontext() if self.runs_in_threads else own_threads_off():
                counts = self._encoding.tokenizer.count(texts.texts, texts.languages)
        except BadTextError as error:
            row = _row_of(texts.rows, error.index)
            raise error.placed(place_of(leaf, pack, start + row)) from error.__cause__
        if texts.rows is None:
            return counts
        return np.bincount(texts.rows, counts, num_rows).astype(np.uint32)


def open_token_columns(
    leaf: Leaf,
    pack: LeafPack,
    encoding: Encoding,
    *,
    workers: Workers = 1,
    progress: Progress | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> Mapping[str, NDArray[Any]]:
    """Open how many tokens the rows of a leaf have; count what is missing.

    Parameters
    ----------
    leaf
        The source.
    pack
        Its columns.
    encoding
        What makes tokens of its rows.
    workers, progress, wait_seconds
        As in `open_columns`.

    Returns
    -------
    Mapping
        `tokens`: uint32, shape (N,). Where the encoding knows what audio takes also `input`,
        `output`, `context` and `answer`; see `Lengths`.

    Raises
    ------
    DataError
        If a row cannot be used or its tokens not be counted; it names it.
    StaleIndexError
        If a row is not the one that was indexed.
    BuildError
        If the side file cannot be written, or another process takes too long.
    """
    measure = TokenCounts(encoding, leaf.kind)
    _look_at_tag(leaf, encoding)
    with own_threads_off():
        return open_columns(
            leaf, pack, measure, workers=workers, progress=progress, wait_seconds=wait_seconds
        )


def count_token_share(
    leaf: Leaf,
    pack: LeafPack,
    encoding: Encoding,
    share: Share,
    *,
    workers: Workers = 1,
    progress: Progress | None = None,
    force: bool = False,
) -> tuple[int, ...]:
    """Count the tokens of the rows of a leaf that fall to one part of the work.

    Parameters
    ----------
    leaf, pack, encoding
        As in `open_token_columns`.
    share, workers, progress, force
        As in `measure_share`.

    Returns
    -------
    tuple
        Numbers of the parts that are missing; empty if the side file is up to date.

    Raises
    ------
    DataError, StaleIndexError, BuildError
        As `open_token_columns`.
    """
    measure = TokenCounts(encoding, leaf.kind)
    _look_at_tag(leaf, encoding)
    with own_threads_off():
        return measure_share(
            leaf, pack, measure, share, workers=workers, progress=progress, force=force
        )


def find_token_columns(
    leaf: Leaf, pack: LeafPack, digest: str
) -> Mapping[str, NDArray[Any]] | None:
    """Open the counts that some encoding made; None where there are none that can be used.

    Parameters
    ----------
    leaf
        The source.
    pack
        Its columns.
    digest
        Digest of the encoding.
    """
    return find_columns(leaf, pack, TOKENS, digest)


def _look_at_tag(leaf: Leaf, encoding: Encoding) -> None:
    """Say so where what stands for audio is not one token, as which it is counted."""
    tag, tokenizer = leaf.options.audio_locator_tag, encoding.tokenizer
    if encoding.audio is None or leaf.kind != "conversation" or not tag or tokenizer.languages:
        return
    count = len(tokenizer.encode(f"a{tag}")) - len(tokenizer.encode("a"))
    if count > 1 and tokenizer.token_id(tag) is None:
        _log.warning(
            "leaf %s: to the tokenizer audio_locator_tag %r is %d tokens, and models look for one"
            " in its place: add it to the tokenizer as a special token",
            leaf.name,
            tag,
            count,
        )


def _some_language(encoding: Encoding) -> str | None:
    languages = encoding.tokenizer.languages
    return languages[0] if languages else None


def _row_of(rows: Sequence[int] | None, index: int) -> int:
    return index if rows is None else rows[index]
