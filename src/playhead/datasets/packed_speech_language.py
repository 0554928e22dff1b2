"""Tokens and audio in one row, for models that read packed sequences."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch

from playhead.datasets.spoken_texts import NO_LOCATOR, pad_stretches, spoken_text, stretches_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.formats import Example

__all__ = ["PackedSpeechLanguage"]


class PackedSpeechLanguage:
    """What `SpeechLanguage` gives, without padding: all samples of a batch in one row.

    For ``use_packed_sequence_sampling``. A batch is a dict of

    - ``input_ids``: int64 of shape (N,), the tokens of all samples, one after another;
    - ``cu_seqlens``: int32 of shape (B + 1,), where each sample begins, and the end;
    - ``position_ids``: int64 of shape (N,), the place of each token in its sample;
    - ``loss_mask``: bool of shape (N,), True where a token is to be learnt, as in `SpeechLanguage`;
    - ``audio``: float32 of shape (M,), from -1 to 1, all audio, one stretch after another;
    - ``audio_cu_seqlens``: int64 of shape (A + 1,), where each stretch begins, and the end;
    - ``audio_row``: int64 of shape (A,), the sample that each belongs to;
    - ``audio_at``: int64 of shape (A,), the place in ``input_ids`` of the token that stands for it;
      -1 where none does and it comes before its sample's text;
    - ``ids``, ``kinds``: lists of str, what samples are called and what they are;
    - ``playhead``: a `BatchInfo`, which the loader adds.

    A model puts the embeddings of audio in place of its tokens: only it knows how many there are,
    and its own ``cu_seqlens`` follow from that.

    Parameters
    ----------
    audio_locator
        As for `SpeechLanguage`.
    """

    modalities = frozenset({"audio", "text", "conversation"})
    reads_audio = True

    def __init__(self, *, audio_locator: int | None = None) -> None:
        self.audio_locator = audio_locator

    def collate(
        self,
        examples: Sequence[Example],
        *,
        sample_rate: int | None,
        sample_keys: NDArray[np.uint64],  # noqa: ARG002 - nothing here is random
    ) -> dict[str, Any]:
        """Make a batch; see `playhead.fetch.ExampleDataset`."""
        texts = [spoken_text(example, self.audio_locator) for example in examples]
        starts = list(accumulate((len(text.ids) for text in texts), initial=0))
        stretches = stretches_of(examples)
        padded, lengths = pad_stretches(stretches, sample_rate)
        heard = torch.arange(padded.shape[1]) < lengths[:, None]
        audio_at = [
            at if at == NO_LOCATOR else at + start
            for text, start in zip(texts, starts, strict=False)
            for at in text.audio_at
        ]
        learnt = [one for text in texts for one in text.learnt]
        return {
            "input_ids": torch.tensor(
                [token for text in texts for token in text.ids], dtype=torch.int64
            ),
            "cu_seqlens": torch.tensor(starts, dtype=torch.int32),
            "position_ids": torch.cat([torch.arange(len(text.ids)) for text in texts]),
            "loss_mask": torch.tensor(learnt, dtype=torch.bool),
            "audio": padded[heard],
            "audio_cu_seqlens": torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]),
            "audio_row": torch.tensor([one.sample for one in stretches], dtype=torch.int64),
            "audio_at": torch.tensor(audio_at, dtype=torch.int64),
            "ids": [example.id for example in examples],
            "kinds": [example.kind for example in examples],
        }
