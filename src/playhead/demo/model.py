"""A CTC model that is small enough to learn on two cores while one watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TinyCtc", "edits"]

_FFT = 256
_HOP = 128
_WIDTH = 64


class TinyCtc(nn.Module):
    """Log spectrum, three convolutions, CTC over characters; nothing in it is random or stateful.

    Dropout and batch norm are left out: then the loss of a step depends on its samples alone, and
    curves of runs on different numbers of ranks can be compared.

    Parameters
    ----------
    alphabet
        The characters; class 0 is the blank.
    """

    def __init__(self, alphabet: str) -> None:
        super().__init__()
        self.classes = {character: number for number, character in enumerate(alphabet, 1)}
        self.alphabet = alphabet
        self.net = nn.Sequential(
            nn.Conv1d(_FFT // 2 + 1, _WIDTH, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(_WIDTH, _WIDTH, 9, padding=4),
            nn.ReLU(),
            nn.Conv1d(_WIDTH, len(alphabet) + 1, 9, padding=4),
        )
        self.window: torch.Tensor
        self.register_buffer("window", torch.hann_window(_FFT), persistent=False)
        # In double precision, the order in which ranks add gradients hardly shows.
        self.double()

    def forward(
        self, audio: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log probabilities (frames, B, classes) and how many frames of each are its own."""
        spectrum = torch.stft(
            audio.double(), _FFT, _HOP, window=self.window, return_complex=True
        ).abs()
        # About zero mean and unit variance for speech at a usual level.
        features = (torch.log(spectrum + 1e-2) + 2) / 2
        frames = 1 + lengths // _HOP
        own = torch.arange(features.shape[2])[None, None] < frames[:, None, None]
        # After every layer, for its bias reaches beyond the end of a sample too: how much padding
        # a batch gives a sample must not change what is made of it.
        hidden = features * own
        for layer in self.net:
            hidden = layer(hidden) * own
        return hidden.permute(2, 0, 1).log_softmax(-1), frames

    def loss(
        self, audio: torch.Tensor, lengths: torch.Tensor, texts: Sequence[str]
    ) -> torch.Tensor:
        """Mean CTC loss of a batch per sample."""
        scores, frames = self(audio, lengths)
        targets = [[self.classes[c] for c in text if c in self.classes] for text in texts]
        flat = torch.tensor([label for target in targets for label in target], dtype=torch.long)
        sizes = torch.tensor([len(target) for target in targets])
        total = nn.functional.ctc_loss(
            scores, flat, frames, sizes, reduction="sum", zero_infinity=True
        )
        return total / len(texts)

    def transcribe(self, audio: torch.Tensor, lengths: torch.Tensor) -> list[str]:
        """The likeliest characters, frame by frame."""
        with torch.no_grad():
            scores, frames = self(audio, lengths)
        texts: list[str] = []
        for best, length in zip(scores.argmax(-1).T, frames.tolist(), strict=True):
            merged = torch.unique_consecutive(best[:length]).tolist()
            texts.append("".join(self.alphabet[label - 1] for label in merged if label))
        return texts


def edits(said: str, heard: str) -> int:
    """Fewest characters to insert, delete or replace that make one text of the other.

    Examples
    --------
    >>> edits("6523", "623"), edits("", "12"), edits("17", "17")
    (1, 2, 0)
    """
    row = list(range(len(heard) + 1))
    for i, wanted in enumerate(said, 1):
        diagonal, row[0] = row[0], i
        for j, got in enumerate(heard, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (wanted != got))
    return row[-1]
