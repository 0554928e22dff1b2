"""Tokens of samples, where datasets of either kind look for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.tokens.texts import texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lhotse.cut import Cut

    from playhead.formats.example import Example
    from playhead.tokens.encoding import Encoding

__all__ = ["attach_tokens", "encode", "encode_joined"]


def encode(examples: Sequence[Example], encoding: Encoding) -> None:
    """Set `Example.tokens` of samples as they were read.

    Raises
    ------
    ManifestError
        If a sample has no tokens; it names the row.
    """
    for example in examples:
        example.tokens = encoding.encode(example)


def encode_joined(example: Example, members: Sequence[Example], encoding: Encoding) -> Example:
    """Return a sample that augmentation joined from several with its tokens.

    Without a prompt they are those of its members, one after another, each in its language; with
    one, what the prompt makes of the joined text.

    Parameters
    ----------
    example
        The joined sample.
    members
        What it was joined from, with their tokens.
    encoding
        What made them.
    """
    joined = replace(example, cut_data=None, members=())
    if encoding.prompt_format is None:
        tokens = [token for member in members for token in member.tokens["tokens"]]
        joined.tokens = {"tokens": tokens}
    else:
        joined.tokens = encoding.encode(joined)
    return joined


def attach_tokens(cut: Cut, example: Example, encoding: Encoding) -> None:
    """Put tokens where datasets of NeMo look for them.

    Without a prompt each supervision that has a text gets `tokens`, an int64 array. With a prompt
    the cut gets `input_ids`, `context_ids`, `answer_ids` (int64 tensors) and `mask` (a bool
    tensor).

    Parameters
    ----------
    cut
        The cut, after augmentation.
    example
        The sample, with its tokens; where its one text is the cut's, they are not made again.
    encoding
        What made them.
    """
    if encoding.prompt_format is None:
        owners = [one for one in _supervisions(cut) if one.text is not None]
        if len(owners) == 1 and [(owners[0].text, owners[0].language)] == texts_of(example):
            owners[0].tokens = np.array(example.tokens["tokens"], np.int64)
            return
        for one in owners:
            one.tokens = np.array(encoding.tokenizer.encode(one.text, one.language), np.int64)
        return
    import torch  # noqa: PLC0415 - only where cuts are wanted

    for name, values in example.tokens.items():
        kind = torch.bool if name == "mask" else torch.int64
        setattr(cut, name, torch.tensor(values, dtype=kind))


def _supervisions(cut: Any) -> Iterator[Any]:
    """Return the supervisions themselves: those of a mixed cut are copies."""
    for track in getattr(cut, "tracks", ()):
        yield from _supervisions(track.cut)
    if not hasattr(cut, "tracks"):
        yield from cut.supervisions
