"""A small CTC model of NeMo on the prompts of Asterisk: its config, as people write it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.real_speech import RATE, asterisk_prompts, leaves, write_prompts

if TYPE_CHECKING:
    from pathlib import Path

_MODULES = "nemo.collections.asr.modules"
_FEATURES, _WIDTH = 16, 16


def write_speech(folder: Path) -> None:
    """The prompts in every layout, a few of them for validation, and a tokenizer."""
    import sentencepiece

    write_prompts(folder)
    prompts = asterisk_prompts()
    rows = [
        {"audio_filepath": str(one.path), "duration": one.seconds, "text": one.text}
        for one in prompts[::40]
    ]
    (folder / "held_out.json").write_text("\n".join(map(json.dumps, rows)) + "\n")
    place = folder / "tokenizer"
    place.mkdir()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([one.text for one in prompts]),
        model_prefix=str(place / "tokenizer"),
        vocab_size=100,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(place / "tokenizer.model"))
    pieces = [model.id_to_piece(number) for number in range(1, model.get_piece_size())]
    (place / "vocab.txt").write_text("\n".join(pieces) + "\n")


def config(
    speech: Path, out: Path, *, steps: int, trainer: dict[str, Any], **train_ds: Any
) -> dict[str, Any]:
    """A whole training config: `model`, `trainer` and `exp_manager`.

    Nothing in the model draws: NeMo does not bring back where the global generators were.
    """
    entries = leaves(speech)
    return {
        "model": {
            "sample_rate": RATE,
            "train_ds": {
                "use_lhotse": True,
                "input_cfg": [
                    {**entries["nemo"], "weight": 0.7},
                    {**entries["tarred"], "weight": 0.3},
                ],
                "sample_rate": "${model.sample_rate}",
                "batch_duration": 12.0,
                "max_duration": 4.0,
                "min_duration": 0.4,
                "use_bucketing": True,
                "num_buckets": 4,
                "bucket_buffer_size": 200,
                "shuffle": True,
                "shuffle_buffer_size": 100,
                "seed": 7,
                "shard_seed": "randomized",
                "num_workers": 2,
                "pin_memory": False,
                "is_tarred": False,
                "trim_silence": False,
                "bucketing_strategy": "fully_randomized",
                **train_ds,
            },
            "validation_ds": {
                "use_lhotse": True,
                "manifest_filepath": str(speech / "held_out.json"),
                "sample_rate": "${model.sample_rate}",
                "batch_size": 4,
                "shuffle": False,
                "num_workers": 0,
            },
            "tokenizer": {"dir": str(speech / "tokenizer"), "type": "bpe"},
            "preprocessor": {
                "_target_": f"{_MODULES}.AudioToMelSpectrogramPreprocessor",
                "sample_rate": "${model.sample_rate}",
                "features": _FEATURES,
                "n_fft": 256,
                "dither": 0.0,
            },
            "encoder": {
                "_target_": f"{_MODULES}.ConformerEncoder",
                "feat_in": _FEATURES,
                "n_layers": 1,
                "d_model": _WIDTH,
                "subsampling": "dw_striding",
                "subsampling_factor": 4,
                "subsampling_conv_channels": 8,
                "n_heads": 2,
                "conv_kernel_size": 5,
                "conv_norm_type": "layer_norm",
                "dropout": 0.0,
                "dropout_pre_encoder": 0.0,
                "dropout_emb": 0.0,
                "dropout_att": 0.0,
            },
            "decoder": {
                "_target_": f"{_MODULES}.ConvASRDecoder",
                "feat_in": None,
                "num_classes": -1,
                "vocabulary": [],
            },
            "optim": {
                "name": "adamw",
                "lr": 0.002,
                "sched": {"name": "CosineAnnealing", "warmup_steps": 2, "min_lr": 1e-5},
            },
        },
        "trainer": {
            "accelerator": "cpu",
            "devices": 1,
            "max_steps": steps,
            "max_epochs": -1,
            "val_check_interval": 5,
            "check_val_every_n_epoch": None,
            "num_sanity_val_steps": 1,
            "log_every_n_steps": 1,
            "enable_progress_bar": False,
            "logger": False,
            "enable_checkpointing": False,
            **trainer,
        },
        "exp_manager": {
            "explicit_log_dir": str(out),
            "resume_if_exists": True,
            "resume_ignore_no_checkpoint": True,
            "create_tensorboard_logger": False,
            "create_preemption_callback": False,
            "seconds_to_sleep": 0,
            "checkpoint_callback_params": {
                "monitor": "step",
                "mode": "max",
                "save_top_k": 2,
                "every_n_train_steps": 3,
                "every_n_epochs": None,
                "filename": "{step}",
                "save_last": True,
                "save_nemo_on_train_end": False,
            },
        },
    }
