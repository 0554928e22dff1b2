"""Speech models of Transformers, from configs, as the search for batch sizes sees them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from playhead.fit.bucket import Bucket
from support.fit_models import Small

TINY_WHISPER = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "vocab_size": 500,
    "max_source_positions": 50,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
}
TINY_WAV2VEC2 = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "conv_dim": (32,) * 7,
}
# Sizes of those that are published; nothing is downloaded.
WHISPER_TINY = {
    "d_model": 384,
    "encoder_layers": 4,
    "decoder_layers": 4,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 6,
    "encoder_ffn_dim": 1536,
    "decoder_ffn_dim": 1536,
}
WHISPER_BASE = {
    "d_model": 512,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
}


@dataclass
class Speech(Small):
    """What they have in common: fused optimizers, where one is asked for."""

    fused: bool | None = None

    def optimizer(self, name):
        weights = [weight for weight in self.module.parameters() if weight.requires_grad]
        if name == "sgd":
            return torch.optim.SGD(weights, lr=1e-3)
        return torch.optim.AdamW(weights, lr=1e-3, fused=self.fused)

    def randn(self, *shape):
        return torch.randn(shape, device=next(self.module.parameters()).device)

    def labels(self, batch_size, output_length):
        device = next(self.module.parameters()).device
        return torch.randint(4, 30, (batch_size, output_length), device=device)


class Whisper(Speech):
    """Frames of features in, tokens out."""

    def make_batch(self, batch_size, input_length, output_length):
        return {
            "input_features": self.randn(batch_size, 80, input_length),
            "labels": self.labels(batch_size, output_length),
        }

    def loss(self, batch):
        return self.module(**batch).loss


class Ctc(Speech):
    """Samples in, characters out."""

    def make_batch(self, batch_size, input_length, output_length):
        return {
            "input_values": self.randn(batch_size, input_length),
            "labels": self.labels(batch_size, output_length),
        }

    def loss(self, batch):
        return self.module(**batch).loss


class MeanOfLogs(Speech):
    """Samples in, and a loss without labels."""

    def make_batch(self, batch_size, input_length, output_length):
        return self.randn(batch_size, input_length)

    def loss(self, batch):
        return -torch.log_softmax(self.module(batch).logits, -1).mean()


def whisper(attention="sdpa", *, checkpointed=False, fused=None, **config):
    """Make a Whisper."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    made = WhisperConfig(**config)
    made._attn_implementation = attention
    module = WhisperForConditionalGeneration(made)
    if checkpointed:
        _checkpoint(module)
    return Whisper(module, name="whisper", fused=fused)


def wav2vec2(attention="sdpa", *, checkpointed=False, fused=None, kind=Ctc, **config):
    """Make a wav2vec 2.0 with a layer for characters."""
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    # Layers and masks that are drawn at random would make no two steps alike.
    made = Wav2Vec2Config(**{"layerdrop": 0.0, "apply_spec_augment": False, **config})
    made._attn_implementation = attention
    module = Wav2Vec2ForCTC(made)
    if checkpointed:
        _checkpoint(module)
    return kind(module, name="wav2vec2", fused=fused)


def _checkpoint(module):
    name = "activation_checkpointing_enable"
    getattr(module, name, module.gradient_checkpointing_enable)()


def frames(length, tokens):
    """Return a bucket of features and tokens."""
    return Bucket(bound=1.0, input_length=length, output_length=tokens)
