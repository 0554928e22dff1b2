"""Tokens and audio for models that read both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from playhead.datasets.spoken_texts import NO_LOCATOR, pad_stretches, spoken_text, stretches_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.formats import Example

__all__ = ["SpeechLanguage"]


class SpeechLanguage:
    """Tokens and audio of texts, conversations and speech, for a model that reads both.

    Needs a tokenizer. A batch is a dict of

    - ``input_ids``: int64 of shape (B, U), padded at the start (on the left), so that what is
      generated would follow in the next column;
    - ``input_lens``: int64 of shape (B,), tokens without padding;
    - ``loss_mask``: bool of shape (B, U), True where a token is to be learnt: with a prompt format
      in the assistant's turns as it writes them, headers included; without one everywhere, and of
      a pair in its target; False in the padding;
    - ``audio``: float32 of shape (A, T), from -1 to 1, padded with zeros at the end: the audio of
      cuts and of all spoken turns, sample after sample and turn after turn; (0, 0) without any;
    - ``audio_lens``: int64 of shape (A,), samples;
    - ``audio_row``: int64 of shape (A,), the row of ``input_ids`` that each belongs to;
    - ``audio_at``: int64 of shape (A,), the column of the token that stands for it, where its
      embeddings go; -1 where none does and it comes before the text, as for cuts;
    - ``ids``, ``kinds``: lists of str, what samples are called and what they are;
    - ``playhead``: a `BatchInfo`, which the loader adds.

    Parameters
    ----------
    audio_locator
        The token of ``audio_locator_tag``, which has to be one token; a loader refuses another at
        its start. None where conversations have no audio, or the model finds its places by itself:
        then ``audio_at`` is -1 everywhere.
    pad_id
        What ``input_ids`` is padded with, whatever that token means to the tokenizer.
    """

    modalities = frozenset({"audio", "text", "conversation"})
    reads_audio = True

    def __init__(self, *, audio_locator: int | None = None, pad_id: int = 0) -> None:
        self.audio_locator = audio_locator
        self.pad_id = pad_id

    def collate(
        self,
        examples: Sequence[Example],
        *,
        sample_rate: int | None,
        sample_keys: NDArray[np.uint64],  # noqa: ARG002 - nothing here is random
    ) -> dict[str, Any]:
        """Make a batch; see `playhead.fetch.ExampleDataset`."""
        texts = [spoken_text(example, self.audio_locator) for example in examples]
        lengths = [len(text.ids) for text in texts]
        longest = max(lengths)
        input_ids = torch.full((len(texts), longest), self.pad_id)
        loss_mask = torch.zeros(len(texts), longest, dtype=torch.bool)
        audio_at: list[int] = []
        for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
            first = longest - length
            input_ids[row, first:] = torch.as_tensor(text.ids)
            loss_mask[row, first:] = torch.as_tensor(text.learnt, dtype=torch.bool)
            audio_at += [at if at == NO_LOCATOR else at + first for at in text.audio_at]
        stretches = stretches_of(examples)
        audio, audio_lens = pad_stretches(stretches, sample_rate)
        return {
            "input_ids": input_ids,
            "input_lens": torch.tensor(lengths),
            "loss_mask": loss_mask,
            "audio": audio,
            "audio_lens": audio_lens,
            "audio_row": torch.tensor([one.sample for one in stretches], dtype=torch.int64),
            "audio_at": torch.tensor(audio_at, dtype=torch.int64),
            "ids": [example.id for example in examples],
            "kinds": [example.kind for example in examples],
        }
