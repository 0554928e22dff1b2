"""Batch sizes for a Conformer-CTC in plain PyTorch.

In the folder of this file:

playhead oomptimizer --model fit_conformer_ctc:ConformerCTC -b '[5,10,20,30]' -o profile.yaml
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

BLANK = 0
WINDOW, HOP = 400, 160


class ConformerCTC(nn.Module):
    """A Conformer of medium size with a CTC head, trained on raw audio."""

    sample_rate = 16_000

    def __init__(
        self, dim: int = 256, layers: int = 16, heads: int = 4, tokens: int = 1024
    ) -> None:
        """Make it; `playhead oomptimizer` gives no arguments."""
        super().__init__()
        self.tokens = tokens
        self.register_buffer("window", torch.hann_window(WINDOW))
        self.subsampling = nn.Sequential(
            nn.Conv1d(WINDOW // 2 + 1, dim, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv1d(dim, dim, 3, stride=2, padding=1),
        )
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.head = nn.Linear(dim, tokens)

    def forward(self, audio: Tensor) -> Tensor:
        """Return logits of shape ``(batch, frames, tokens)``, a frame for each 40 ms of audio."""
        spectrum = torch.stft(audio, WINDOW, HOP, window=self.window, return_complex=True)
        frames = self.subsampling(spectrum.abs().clamp_min(1e-5).log()).transpose(1, 2)
        for block in self.blocks:
            frames = block(frames)
        return self.head(frames)

    def make_batch(
        self, batch_size: int, input_length: int, output_length: int
    ) -> dict[str, Tensor]:
        """Make a batch of the longest samples of a bucket: samples of audio, and tokens."""
        device = self.window.device
        return {
            "audio": torch.randn(batch_size, input_length, device=device),
            "text": torch.randint(1, self.tokens, (batch_size, output_length), device=device),
        }

    def training_step(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the loss, as in training."""
        log_probs = self(batch["audio"]).float().log_softmax(-1).transpose(0, 1)
        text = batch["text"]
        frames, tokens = (torch.full((len(text),), n) for n in (len(log_probs), text.shape[1]))
        return functional.ctc_loss(log_probs, text, frames, tokens, BLANK, zero_infinity=True)


class Block(nn.Module):
    """Half a feed-forward step, attention, convolution, and the other half."""

    def __init__(self, dim: int, heads: int) -> None:
        """Make it for vectors of a size, which `heads` divides."""
        super().__init__()
        self.heads = heads
        self.first, self.second = feed_forward(dim), feed_forward(dim)
        self.norm = nn.LayerNorm(dim)
        self.projections, self.attended = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.before = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GLU())
        self.depthwise = nn.Conv1d(dim, dim, 31, padding=15, groups=dim)
        self.after = nn.Sequential(nn.BatchNorm1d(dim), nn.SiLU(), nn.Conv1d(dim, dim, 1))
        self.last = nn.LayerNorm(dim)

    def forward(self, frames: Tensor) -> Tensor:
        """Return frames of the same shape, ``(batch, frames, dim)``."""
        frames = frames + self.first(frames) / 2
        frames = frames + self.attend(self.norm(frames))
        convolved = self.depthwise(self.before(frames).transpose(1, 2))
        frames = frames + self.after(convolved).transpose(1, 2)
        return self.last(frames + self.second(frames) / 2)

    def attend(self, frames: Tensor) -> Tensor:
        """Let every frame look at all frames."""
        split = self.projections(frames).unflatten(-1, (3, self.heads, -1))
        query, key, value = split.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value)
        return self.attended(attended.transpose(1, 2).flatten(2))


def feed_forward(dim: int) -> nn.Sequential:
    """Make a feed-forward step."""
    wide = 4 * dim
    return nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, wide), nn.SiLU(), nn.Linear(wide, dim))
