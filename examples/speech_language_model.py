"""A tiny model that reads text and hears audio, trained on several blends at once.

python examples/speech_language_model.py blends.yaml --tokenizer spm.model --audio-tag '<audio>'
torchrun --nproc-per-node 2 examples/speech_language_model.py blends.yaml ...    # go on with two

`blends.yaml` has `multi_config: true`; with `sampler_fusion: zip` every micro-batch holds text,
conversations and speech together. Kill it at any line, and start it again on other ranks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy, pad

import playhead
from playhead.datasets import SpeechLanguage

FRAME = 1280  # samples that become one embedding: 0.08 s at 16 kHz, as the blends say
WIDTH = 64
LONGEST = 4096


class SpeechLanguageModel(torch.nn.Module):
    """A decoder of two layers; audio is cut into frames, which are embedded as tokens are."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, WIDTH)
        self.frames = torch.nn.Linear(FRAME, WIDTH)
        self.places = torch.nn.Embedding(LONGEST, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = torch.nn.Linear(WIDTH, vocabulary)

    def forward(self, batch: dict) -> torch.Tensor:
        """Mean loss of the tokens of a batch that are to be learnt."""
        rows = [self._row(batch, row) for row in range(len(batch["ids"]))]
        longest = max(len(targets) for _, targets in rows)
        heard = torch.stack([pad(x, (0, 0, 0, longest - len(x))) for x, _ in rows])
        targets = torch.stack([pad(y, (0, longest - len(y)), value=-100) for _, y in rows])
        heard = heard + self.places.weight[:longest]
        causal = torch.ones(longest, longest, dtype=torch.bool).triu(1)
        scores = self.out(self.layers(heard, mask=causal, is_causal=True))
        learnt = int((targets[:, 1:] >= 0).sum())
        loss = cross_entropy(
            scores[:, :-1].flatten(0, 1), targets[:, 1:].flatten(), reduction="sum"
        )
        return loss / max(1, learnt)

    def _row(self, batch: dict, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings and targets of a sample, with the frames of its audio where they belong."""
        width = batch["input_ids"].shape[1]
        first = width - int(batch["input_lens"][row])
        ids, learnt = batch["input_ids"][row], batch["loss_mask"][row]
        targets = torch.where(learnt, ids, -100)
        parts, wanted, done = [], [], first
        for number in torch.nonzero(batch["audio_row"] == row).flatten().tolist():
            samples = batch["audio"][number, : int(batch["audio_lens"][number])]
            samples = pad(samples, (0, -len(samples) % FRAME)).view(-1, FRAME)
            at = max(first, int(batch["audio_at"][number]))
            # The tag is replaced; what has none is heard before the text.
            parts += [self.tokens(ids[done:at]), self.frames(samples.to(self.out.weight.dtype))]
            wanted += [targets[done:at], torch.full((len(samples),), -100)]
            done = at + (int(batch["audio_at"][number]) >= 0)
        parts.append(self.tokens(ids[done:]))
        wanted.append(targets[done:])
        return torch.cat(parts), torch.cat(wanted)


def checksum(batch: dict) -> str:
    """SHA-256 of all tensors of a batch."""
    digest = hashlib.sha256()
    for name, value in sorted(batch.items()):
        if isinstance(value, torch.Tensor):
            digest.update(f"{name} {tuple(value.shape)}".encode() + value.numpy().tobytes())
    return digest.hexdigest()


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("blends")
    parser.add_argument("--tokenizer", required=True, help="a SentencePiece model")
    parser.add_argument("--audio-tag", required=True, help="audio_locator_tag of the blends")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoint.pt"))
    parser.add_argument("--log", type=Path, help="a folder: every rank writes its batches there")
    return parser.parse_args()


def save(path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, **more: Any) -> None:
    """Replace the checkpoint: what is killed here leaves the one before."""
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), **more}
    temporary = path.with_suffix(".tmp")
    torch.save(state, temporary)
    temporary.replace(path)


def train(args: argparse.Namespace, loader: playhead.Loader, model: torch.nn.Module) -> None:
    """Train until so many optimizer steps were made in all."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    if args.checkpoint.exists():
        saved = torch.load(args.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        step = saved["step"]
    log = None if args.log is None else (args.log / f"{os.getpid()}.jsonl").open("w")
    batches = iter(loader)
    while step < args.steps:
        for _ in range(loader.batches_per_step):
            batch = next(batches)
            loss = model(batch)
            (loss / loader.micro_batches_per_step).backward()
            if log is not None:
                line = {"step": step, "slot": batch["playhead"].slot, "loss": loss.item()}
                line |= {name: batch[name] for name in ("ids", "kinds")}
                log.write(json.dumps({**line, "sha256": checksum(batch)}) + "\n")
                log.flush()
        for parameter in model.parameters():
            if parameter.grad is None:  # steps without audio have none for its frames
                parameter.grad = torch.zeros_like(parameter)
            if dist.is_initialized():
                dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if loader.rank == 0 and step % args.save_every == 0:
            print(f"step {step}: loss {loss.item():.4f}, waited {loader.waits.share:.0%}")
            save(args.checkpoint, model, optimizer, loader=loader.state_dict(), step=step)


def main() -> None:
    """Make loader and model, and train."""
    args = arguments()
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    pieces = sentencepiece.SentencePieceProcessor(model_file=args.tokenizer)
    loader = playhead.dataloader(
        args.blends,
        dataset=SpeechLanguage(audio_locator=pieces.piece_to_id(args.audio_tag)),
        tokenizer=args.tokenizer,
        num_workers=args.workers,
        # Of any number of ranks that divides 6: the rest is accumulated.
        micro_batches_per_step=6,
    )
    # In double precision, sums over other ranks come out the same to many digits.
    train(args, loader, SpeechLanguageModel(pieces.vocab_size()).double())
    loader.close()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
