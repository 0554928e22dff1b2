"""Playhead: counting the tokens of a manifest on two cores, beside the tokenizer library alone.

The library has the texts in memory already, and reads, checks and writes nothing. It is used in the
two ways that it offers, its own batches on two threads and small batches in two processes that have
started, and the better of them counts.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import random
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meter import Settings, main
from playhead.blend.leaf import Leaf
from playhead.index.build import open_leaves
from playhead.tokens.count import open_token_columns
from playhead.tokens.encoding import Encoding
from playhead.tokens.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

_ROWS, _QUICK_ROWS = 200_000, 40_000
_CORES = 2
_TURNS = 3
_BATCH = 2048
_VOCABULARY = 1024


def measure(settings: Settings) -> dict[str, float]:
    cores = sorted(os.sched_getaffinity(0))[:_CORES]
    os.sched_setaffinity(0, cores)
    texts = _sentences(_QUICK_ROWS if settings.quick else _ROWS)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder, "manifest.json")
        manifest.write_text("".join(map(_row, range(len(texts)), texts)))
        leaf = Leaf(
            key="rows", name="rows", type="nemo", weight=1, paths={"manifest": (str(manifest),)}
        )
        (pack,) = open_leaves([leaf], pack_dir=folder)
        for name, model, batch in (
            ("sentencepiece", _sentencepiece(texts), _sentencepiece_batch),
            ("tokenizers", _tokenizers(texts), _tokenizers_batch),
        ):
            path = Path(folder, name)
            path.write_bytes(model)
            encoding = Encoding(load_tokenizer(path))
            encode = partial(batch, str(path))
            own: list[float] = []
            alone: list[float] = []
            for turn in range(_TURNS):
                # Another language field, which no row has, makes another side file.
                turned = replace(leaf, options=replace(leaf.options, lang_field=f"l{turn}"))
                own.append(
                    _seconds(partial(open_token_columns, turned, pack, encoding, workers=_CORES))
                )
                alone.append(_seconds(partial(encode(_CORES), texts)))
                alone.append(_in_processes(encode, texts))
            figures[f"{name}_rows_per_s"] = len(texts) / min(own)
            figures[f"{name}_library_rows_per_s"] = len(texts) / min(alone)
            figures[f"{name}_share"] = min(alone) / min(own)
    return figures


def _seconds(act: Callable[[], object]) -> float:
    """Wall time of a call (s)."""
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def _in_processes(encode: Callable[[int], Callable[[list[str]], Any]], texts: list[str]) -> float:
    """Wall time of processes that have their share of the texts, from when all are ready (s)."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(_CORES + 1)

    def work(share: list[str]) -> None:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        batch = encode(1)
        barrier.wait()
        for start in range(0, len(share), _BATCH):
            batch(share[start : start + _BATCH])
        barrier.wait()

    processes = [
        context.Process(target=work, args=(texts[part::_CORES],)) for part in range(_CORES)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    begin = time.perf_counter()
    barrier.wait()
    seconds = time.perf_counter() - begin
    for process in processes:
        process.join()
    return seconds


def _sentencepiece_batch(path: str, threads: int) -> Callable[[list[str]], Any]:
    from sentencepiece import SentencePieceProcessor

    return partial(SentencePieceProcessor(model_file=path).encode, num_threads=threads)


def _tokenizers_batch(path: str, threads: int) -> Callable[[list[str]], Any]:  # noqa: ARG001 - it takes all cores
    from tokenizers import Tokenizer

    return partial(Tokenizer.from_file(path).encode_batch_fast, add_special_tokens=False)


def _sentencepiece(texts: list[str]) -> bytes:
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts[:10_000]),
        model_writer=model,
        vocab_size=_VOCABULARY,
        minloglevel=2,
    )
    return model.getvalue()


def _tokenizers(texts: list[str]) -> bytes:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=_VOCABULARY, show_progress=False)
    tokenizer.train_from_iterator(texts[:10_000], trainer)
    return tokenizer.to_str().encode()


def _sentences(count: int) -> list[str]:
    """Sentences of 4 to 25 words, some words far more often than others."""
    rng = random.Random(5)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(8_000)]
    common = [words[:50], words[:500], words]
    return [
        " ".join(rng.choice(rng.choice(common)) for _ in range(rng.randint(4, 25)))
        for _ in range(count)
    ]


def _row(number: int, text: str) -> str:
    row = {
        "audio_filepath": f"corpus/speaker_{number % 4999:05d}/utterance_{number:09d}.flac",
        "duration": 6.7,
        "text": text,
        "lang": "en",
        "speaker": f"speaker_{number % 4999:05d}",
    }
    return json.dumps(row) + "\n"


if __name__ == "__main__":
    main(measure)
