"""Configs of small speech models of Hugging Face."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
_CONVOLVED = {
    **_ENCODER,
    "conv_dim": [16] * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": 20,
}
_SQUEEZED = {**_CONVOLVED, "conv_dim": [16] * 13}
_SUBSAMPLED = {**_ENCODER, "subsampling_conv_channels": 8}
_DECODED = {
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": 50,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
_SEAMLESS = {
    **_DECODED,
    "hidden_size": 32,
    "speech_encoder_layers": 2,
    "speech_encoder_attention_heads": 2,
    "speech_encoder_intermediate_size": 64,
}

SMALL: dict[str, dict[str, Any]] = {
    "data2vec-audio": _CONVOLVED,
    "hubert": _CONVOLVED,
    "lasr_ctc": {"vocab_size": 20, "pad_token_id": 0, "encoder_config": _SUBSAMPLED},
    "moonshine": {
        "hidden_size": 32,
        "intermediate_size": 64,
        "encoder_num_hidden_layers": 2,
        "decoder_num_hidden_layers": 2,
        "encoder_num_attention_heads": 2,
        "decoder_num_attention_heads": 2,
        "vocab_size": 50,
        "pad_token_id": 2,
        "decoder_start_token_id": 1,
    },
    "parakeet_ctc": {"vocab_size": 20, "pad_token_id": 19, "encoder_config": _SUBSAMPLED},
    "seamless_m4t": _SEAMLESS,
    "seamless_m4t_v2": _SEAMLESS,
    "sew": _SQUEEZED,
    "sew-d": _SQUEEZED,
    "speech_to_text": {**_DECODED, "d_model": 32, "max_target_positions": 30},
    "speecht5": {**_CONVOLVED, **_DECODED, "max_text_positions": 30},
    "unispeech": _CONVOLVED,
    "unispeech-sat": _CONVOLVED,
    "wav2vec2": _CONVOLVED,
    "wav2vec2-bert": {**_ENCODER, "vocab_size": 20, "pad_token_id": 0},
    "wav2vec2-conformer": _CONVOLVED,
    "wavlm": _CONVOLVED,
    "whisper": {
        **_DECODED,
        "d_model": 32,
        "max_source_positions": 100,
        "max_target_positions": 20,
        "encoder_layerdrop": 0.5,
    },
}
"""By the type of the model: what its config says beside the type."""


def write_config(folder: Path, kind: str, **more: Any) -> Path:
    """Write the config of a small model, and return its folder."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": kind, **SMALL[kind], **more}))
    return folder
