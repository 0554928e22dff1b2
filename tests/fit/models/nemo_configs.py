"""Configs of small models of NeMo, as people train them."""

from __future__ import annotations

from typing import Any

_MODULES = "nemo.collections.asr.modules"
MODELS = "nemo.collections.asr.models"
FEATURES, WIDTH = 16, 16


def configs(tokenizer: str) -> dict[str, dict[str, Any]]:
    """By the class that they are for: the `model` of a config, with a tokenizer of a folder."""
    return {
        "EncDecCTCModelBPE": {**_transcriber(tokenizer), "decoder": _ctc_decoder()},
        "EncDecRNNTBPEModel": {**_transcriber(tokenizer), **_transducer()},
        "EncDecMultiTaskModel": {**_transcriber(tokenizer), **_attending()},
        "EncDecDenoiseMaskedTokenPredModel": {**_listener(), **_self_supervised()},
        # Without a tokenizer, so that its schema cannot be read.
        "EncDecCTCModel": {**_listener(), "decoder": {**_ctc_decoder(), **_LETTERS}},
        # Without a schema.
        "EncDecSpeakerLabelModel": {**_listener(), **_speakers()},
    }


_LETTERS = {"num_classes": 3, "vocabulary": ["a", "b", "c"]}


def _listener() -> dict[str, Any]:
    # The data are not there: nobody reads them.
    data = {"manifest_filepath": "???", "sample_rate": "${model.sample_rate}", "batch_size": 4}
    return {
        "sample_rate": 8000,
        "train_ds": data,
        "validation_ds": data,
        "preprocessor": {
            "_target_": f"{_MODULES}.AudioToMelSpectrogramPreprocessor",
            "sample_rate": "${model.sample_rate}",
            "features": FEATURES,
            "n_fft": 256,
        },
        "spec_augment": {
            "_target_": f"{_MODULES}.SpectrogramAugmentation",
            "freq_masks": 1,
            "time_masks": 1,
            "freq_width": 2,
            "time_width": 0.05,
        },
        "encoder": {
            "_target_": f"{_MODULES}.ConformerEncoder",
            "feat_in": FEATURES,
            "n_layers": 1,
            "d_model": WIDTH,
            "subsampling": "dw_striding",
            "subsampling_factor": 8,
            "subsampling_conv_channels": 8,
            "n_heads": 2,
            "conv_kernel_size": 5,
        },
        "optim": {"name": "adamw", "lr": 1.0, "sched": {"name": "NoamAnnealing", "d_model": 16}},
    }


def _transcriber(tokenizer: str) -> dict[str, Any]:
    return {**_listener(), "tokenizer": {"dir": tokenizer, "type": "bpe"}}


def _ctc_decoder() -> dict[str, Any]:
    return {
        "_target_": f"{_MODULES}.ConvASRDecoder",
        "feat_in": None,
        "num_classes": -1,
        "vocabulary": [],
    }


def _transducer() -> dict[str, Any]:
    return {
        "model_defaults": {"enc_hidden": WIDTH, "pred_hidden": WIDTH, "joint_hidden": WIDTH},
        "decoder": {
            "_target_": f"{_MODULES}.RNNTDecoder",
            "prednet": {"pred_hidden": WIDTH, "pred_rnn_layers": 1},
        },
        "joint": {
            "_target_": f"{_MODULES}.RNNTJoint",
            "fuse_loss_wer": True,
            "fused_batch_size": 2,
            "jointnet": {"joint_hidden": WIDTH, "activation": "relu", "dropout": 0.0},
        },
        "decoding": {"strategy": "greedy_batch", "greedy": {"max_symbols": 10}},
        "loss": {"loss_name": "default"},
    }


def _attending() -> dict[str, Any]:
    decoder = {
        "max_sequence_length": 64,
        "num_token_types": 0,
        "embedding_dropout": 0.0,
        "learn_positional_encodings": False,
        "hidden_size": WIDTH,
        "inner_size": 32,
        "num_layers": 1,
        "num_attention_heads": 2,
        "pre_ln": True,
        "vocab_size": None,
    }
    transformer = "nemo.collections.asr.modules.transformer.get_nemo_transformer"
    return {
        "prompt_format": "plain",
        "model_defaults": {
            "asr_enc_hidden": WIDTH,
            "lm_enc_hidden": WIDTH,
            "lm_dec_hidden": WIDTH,
        },
        "transf_decoder": {
            "_target_": transformer,
            "model_name": None,
            "pretrained": False,
            "encoder": None,
            "pre_ln_final_layer_norm": True,
            "config_dict": decoder,
        },
        "head": {
            "_target_": "nemo.collections.asr.parts.submodules.token_classifier.TokenClassifier",
            "num_layers": 1,
            "activation": "relu",
            "log_softmax": True,
            "hidden_size": WIDTH,
            "num_classes": None,
        },
        "loss": {
            "_target_": "nemo.collections.common.losses.smoothed_cross_entropy"
            ".SmoothedCrossEntropyLoss",
            "label_smoothing": 0.0,
            "pad_id": None,
        },
    }


def _self_supervised() -> dict[str, Any]:
    return {
        "num_classes": 8,
        "num_books": 1,
        "code_dim": 4,
        "squeeze_single": False,
        "mask_position": "pre_conv",
        "masking": {
            "_target_": f"{_MODULES}.RandomBlockMasking",
            "block_size": 8,
            "mask_prob": 0.05,
            "feat_in": FEATURES,
            "freeze": True,
            "allow_overlap": True,
        },
        "quantizer": {
            "_target_": f"{_MODULES}.RandomProjectionVectorQuantizer",
            "feat_in": FEATURES,
            "code_dim": 4,
            "num_books": 1,
            "num_classes": 8,
            "dist_fn": "l2",
            "freeze": True,
            "squeeze_single": False,
            "combine_time_steps": 8,
        },
        "decoder": {
            "_target_": f"{_MODULES}.MultiSoftmaxDecoder",
            "feat_in": WIDTH,
            "num_classes": 8,
            "num_decoders": 1,
            "squeeze_single": False,
            "use_bias": True,
        },
        "loss": {
            "_target_": "nemo.collections.asr.losses.MultiMLMLoss",
            "combine_time_steps": 8,
            "mask_threshold": 0.8,
            "num_decoders": 1,
            "squeeze_single": False,
        },
    }


def _speakers() -> dict[str, Any]:
    return {
        "decoder": {
            "_target_": f"{_MODULES}.SpeakerDecoder",
            "feat_in": WIDTH,
            "num_classes": 2,
            "pool_mode": "xvector",
            "emb_sizes": "8",
        },
        "loss": {"_target_": "nemo.collections.common.losses.CrossEntropyLoss"},
    }
