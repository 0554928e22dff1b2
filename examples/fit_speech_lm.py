"""Batch sizes for a speech language model, whose buckets count tokens of audio and of text.

In the folder of this file:

playhead oomptimizer --model fit_speech_lm:SpeechLM -b '[128,256,512,1024]' -o profile.yaml
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class SpeechLM(nn.Module):
    """A decoder that reads audio, 0.08 s a token, and goes on in text."""

    sample_rate = 16_000
    # How a bucket of tokens is shared out: eight tenths are audio, the rest is text.
    audio_share = 0.8
    token_seconds = 0.08

    def __init__(self, dim: int = 512, layers: int = 12, tokens: int = 32_000) -> None:
        """Make it; `playhead oomptimizer` gives no arguments."""
        super().__init__()
        self.tokens = tokens
        # A token of audio for every 1,280 samples.
        self.encoder = nn.Sequential(
            nn.Conv1d(1, dim, 400, stride=160, padding=200), nn.GELU(), nn.Conv1d(dim, dim, 8, 8)
        )
        self.embedding = nn.Embedding(tokens, dim)
        layer = nn.TransformerEncoderLayer(dim, 8, 4 * dim, 0.0, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def make_batch(
        self, batch_size: int, input_length: int, output_length: int
    ) -> dict[str, Tensor]:
        """Make a batch of the longest samples of a bucket: samples of audio, and tokens of text."""
        device = self.embedding.weight.device
        return {
            "audio": torch.randn(batch_size, input_length, device=device),
            "text": torch.randint(0, self.tokens, (batch_size, output_length), device=device),
        }

    def training_step(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the loss of the text, given the audio before it."""
        audio = self.encoder(batch["audio"][:, None]).transpose(1, 2)
        text = batch["text"]
        joined = torch.cat([audio, self.embedding(text[:, :-1])], dim=1)
        future = nn.Transformer.generate_square_subsequent_mask(joined.shape[1], device=text.device)
        read = self.decoder(joined, mask=future, is_causal=True)[:, audio.shape[1] :]
        # Embeddings are the weights of the output too.
        logits = functional.linear(read, self.embedding.weight)
        return {"loss": functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())}
