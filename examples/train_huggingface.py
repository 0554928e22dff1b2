"""A Whisper trained with Hugging Face's Trainer, killed at any line and started again anywhere.

python examples/train_huggingface.py blend.yaml                          # one process
torchrun --nproc-per-node 4 examples/train_huggingface.py blend.yaml     # go on with four
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import torch
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

import playhead
from playhead.integrations.huggingface import PlayheadTrainerMixin, last_checkpoint

if TYPE_CHECKING:
    from lhotse import CutSet

RATE = 16000
PAD, START, END, FIRST_BYTE = range(4)


class SpeechTrainer(PlayheadTrainerMixin, Seq2SeqTrainer):
    """A Trainer that takes loaders as datasets."""


class WhisperInputs:
    """Makes of the samples of a batch what a Whisper's forward takes."""

    def __init__(self, seconds: int) -> None:
        """Take so many seconds of each; a Whisper that was trained before takes 30."""
        self.extractor = WhisperFeatureExtractor(chunk_length=seconds)

    def __getitem__(self, cuts: CutSet) -> dict[str, Any]:
        """Return features of shape (B, mels, frames), and labels of shape (B, U)."""
        audio = [cut.load_audio()[0] for cut in cuts]
        texts = [cut.supervisions[0].text for cut in cuts]
        # Letters are tokens here; with a tokenizer of your own, tokenizer(texts).
        tokens = [[*(FIRST_BYTE + byte for byte in text.encode()), END] for text in texts]
        labels = torch.full((len(texts), max(map(len, tokens))), -100)
        for row, one in zip(labels, tokens, strict=True):
            row[: len(one)] = torch.tensor(one)
        features = self.extractor(audio, sampling_rate=RATE, return_tensors="pt")
        return {"input_features": features["input_features"], "labels": labels}


def small_whisper(seconds: int) -> WhisperForConditionalGeneration:
    """Make a small one; yours may come from `from_pretrained`."""
    config = WhisperConfig(
        vocab_size=FIRST_BYTE + 256,
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_source_positions=50 * seconds,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        decoder_start_token_id=START,
    )
    model = WhisperForConditionalGeneration(config)
    # Its loss is the mean of a batch: the Trainer has to divide it by the batches of a step.
    model.accepts_loss_kwargs = False
    return model


def main() -> None:
    """Train until so many optimizer steps were made in all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("blend")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--output", default="whisper")
    parser.add_argument("--seconds", type=int, default=30)
    args = parser.parse_args()

    # A step is 8 micro-batches on any number of GPUs that divides 8: the rest is accumulated.
    loader = playhead.dataloader(
        args.blend,
        dataset=WhisperInputs(args.seconds),
        micro_batches_per_step=8,
        sample_rate=RATE,
        max_duration=args.seconds,
    )
    trainer = SpeechTrainer(
        model=small_whisper(args.seconds),
        args=Seq2SeqTrainingArguments(
            output_dir=args.output,
            max_steps=args.steps,
            save_steps=args.save_every,
            save_total_limit=2,
            logging_steps=args.save_every,
            gradient_accumulation_steps=loader.batches_per_step,
            report_to=[],
        ),
        train_dataset=loader,
    )
    trainer.train(resume_from_checkpoint=last_checkpoint(args.output))
    loader.close()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
