"""Waveforms and transcripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from playhead.fetch.waveforms import pad_waveforms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.formats import Example

__all__ = ["SpeechToText"]


class SpeechToText:
    """Waveforms and transcripts; what a loader uses when it is given no dataset.

    A batch is a dict of

    - ``audio``: float32 tensor of shape (B, T), from -1 to 1, padded with zeros at the end;
    - ``audio_lens``: int64 tensor of shape (B,), samples;
    - ``texts``, ``ids``: lists of str; a sample without a transcript has an empty one;
    - with a tokenizer ``tokens``, int64 of shape (B, U), padded with zeros at the end, and
      ``token_lens``, int64 of shape (B,);
    - with a tokenizer and a prompt format, in place of these ``input_ids``, ``context_ids`` and
      ``answer_ids``, padded likewise, ``input_lens``, ``context_lens`` and ``answer_lens``, and
      ``mask``, bool of the shape of ``input_ids``: True where the answer is, False in the padding;
    - ``playhead``: a `BatchInfo`, which the loader adds.

    Audio of several channels is an error: ``channel_selector`` chooses one.
    """

    modalities = frozenset({"audio"})
    reads_audio = True

    def collate(
        self,
        examples: Sequence[Example],
        *,
        sample_rate: int | None,
        sample_keys: NDArray[np.uint64],  # noqa: ARG002 - nothing here is random
    ) -> dict[str, Any]:
        """Make a batch; see `playhead.fetch.ExampleDataset`."""
        audio, lengths = pad_waveforms(examples, sample_rate)
        return {
            "audio": audio,
            "audio_lens": lengths,
            "texts": [example.text or "" for example in examples],
            "ids": [example.id for example in examples],
            **_padded_tokens([example.tokens for example in examples]),
        }


_LENGTHS = {
    "tokens": "token_lens",
    "input_ids": "input_lens",
    "context_ids": "context_lens",
    "answer_ids": "answer_lens",
    "mask": None,
}


def _padded_tokens(tokens: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """Tensors of what the tokenizer made, by name, with their lengths; none without a tokenizer.

    What a prompt format of the user's own calls otherwise is left to a dataset of the user's own.
    """
    found: dict[str, torch.Tensor] = {}
    for name, lengths_name in _LENGTHS.items():
        if not tokens or name not in tokens[0]:
            continue
        lengths = [len(one[name]) for one in tokens]
        kind = torch.bool if name == "mask" else torch.int64
        padded = torch.zeros(len(tokens), max(lengths), dtype=kind)
        for row, one, length in zip(padded, tokens, lengths, strict=True):
            row[:length] = torch.as_tensor(one[name], dtype=kind)
        found[name] = padded
        if lengths_name is not None:
            found[lengths_name] = torch.tensor(lengths)
    return found
