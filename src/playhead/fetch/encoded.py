"""Tokens of samples, where datasets of either kind look for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.fetch.augment.stretch import window_id
from playhead.tokens.lengths import lengths_of
from playhead.tokens.texts import texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.formats.example import Example
    from playhead.plan.batch import MicroBatch
    from playhead.tokens.encoding import Encoding

__all__ = ["attach_tokens", "encode", "encode_joined"]


def encode(
    examples: Sequence[Example],
    encoding: Encoding,
    micro_batch: MicroBatch,
) -> None:
    """Set `Example.tokens` of samples as they were read.

    Where texts are cut into windows, a text becomes its part: `token_window` says which of its own
    tokens that are, and its id has the part's number behind it; `text` stays whole.

    Parameters
    ----------
    examples
        The samples.
    encoding
        What makes tokens of them.
    micro_batch
        What the plan says of them.

    Raises
    ------
    ManifestError
        If a sample has no tokens; it names the row.
    """
    windows = micro_batch.text_window
    for at, example in enumerate(examples):
        size = 0 if windows is None else int(windows[at])
        if size:
            part = int(micro_batch.part[at])
            example.token_window = part * size, (part + 1) * size
            example.id = window_id(example.id, part)
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


def attach_tokens(cut: Any, example: Example, encoding: Encoding) -> None:
    """Put tokens where datasets of NeMo look for them.

    Without a prompt each supervision that has a text gets `tokens`, an int64 array, and so does a
    text by itself. With a prompt the sample gets `input_ids`, `context_ids`, `answer_ids` (int64
    tensors) and `mask` (a bool tensor). What is no cut also gets its lengths in tokens.

    Parameters
    ----------
    cut
        The cut, after augmentation; or a text or conversation.
    example
        The sample, with its tokens; where its one text is the cut's, they are not made again.
    encoding
        What made them.
    """
    if example.kind != "cut":
        lengths = lengths_of(example, example.tokens, encoding.audio)
        cut.input_length, cut.output_length = lengths.input, lengths.output
        cut.total_length = cut.num_tokens = lengths.tokens
    if "tokens" in example.tokens and example.kind != "cut":
        cut.tokens = np.array(example.tokens["tokens"], np.int64)
        return
    if encoding.prompt_format is None and example.kind == "cut":
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
