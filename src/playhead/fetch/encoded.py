"""Tokens of samples, where datasets of either kind look for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

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


def encode_joined(
    example: Example, members: Sequence[Example], encoding: Encoding
) -> dict[str, Any]:
    """Return the tokens of a sample that augmentation joined from several.

    Without a prompt they are those of its members, one after another; with one, what the prompt
    makes of the joined text.
    """
    if encoding.prompt_format is None:
        return {"tokens": [token for member in members for token in member.tokens["tokens"]]}
    return dict(encoding.encode(replace(example, cut_data=None, members=())))


def attach_tokens(cut: Cut, example: Example, encoding: Encoding) -> None:
    """Put tokens where datasets of NeMo look for them.

    Without a prompt each supervision that has a text gets `tokens`, an int64 array; the one of
    a cut whose supervisions were merged into it gets all of them. With a prompt the cut gets
    `input_ids`, `context_ids`, `answer_ids` (int64 tensors) and `mask` (a bool tensor).

    Parameters
    ----------
    cut
        The cut, after augmentation.
    example
        The sample, with its tokens.
    encoding
        What made them.
    """
    if encoding.prompt_format is None:
        owners = [one for one in _supervisions(cut) if one.text is not None]
        if len(owners) == 1:
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
