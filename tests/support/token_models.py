"""Small tokenizers, trained on sentences of our own once per process."""

from __future__ import annotations

import io
import random
from functools import lru_cache
from typing import TYPE_CHECKING

from playhead.formats import Example, Place

if TYPE_CHECKING:
    from pathlib import Path

PLACE = Place(leaf="leaf", shard="/data/rows.jsonl", row=3, byte=120)
CANARY_TOKENS = (
    "<|startoftranscript|>",
    "<|startofcontext|>",
    "<|endoftext|>",
    "<|en|>",
    "<|de|>",
    "<|transcribe|>",
    "<|translate|>",
    "<|emo:undefined|>",
    "<|emo:happy|>",
    *(f"<|{no}{name}|>" for name in ("pnc", "itn", "timestamp", "diarize") for no in ("", "no")),
    *(f"<|{second}|>" for second in range(4)),
)
_WORDS = {
    "en": "the a quick brown dog cat jumps over lazy river house we speak and listen today",
    "de": "der die das schnelle braune hund katze springt über fluss haus wir sprechen",
}


def sentences(count: int, language: str = "en", seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    words = _WORDS[language].split()
    return [" ".join(rng.choices(words, k=rng.randint(2, 12))) for _ in range(count)]


@lru_cache
def sentencepiece_bytes(
    language: str = "en", vocab: int = 60, special: bool = False, pad: bool = False
) -> bytes:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(300, language)),
        model_writer=model,
        vocab_size=vocab + (len(CANARY_TOKENS) if special else 0),
        user_defined_symbols=list(CANARY_TOKENS) if special else [],
        pad_id=3 if pad else -1,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


@lru_cache
def hf_bytes(language: str = "en", vocab: int = 300) -> bytes:
    """Adds a beginning of sentence by itself, truncates and pads: all of that must be left out."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=["<unk>", "<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(sentences(300, language), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=9)
    return tokenizer.to_str().encode()


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def example(
    text: str | None = "we speak", language: str | None = "en", cut=None, **custom
) -> Example:
    return Example(
        id="x",
        text=text,
        language=language,
        audio=None,
        place=PLACE,
        custom=custom,
        cut_data=cut,
    )


class Words:
    """A person's own tokenizer: one token a word."""

    def __init__(self, base: int = 0) -> None:
        self.base = base

    def encode(self, text: str) -> list[int]:
        return [self.base + len(word) for word in text.split()]


class ByLanguage:
    """The same by language, as NeMo's aggregate tokenizers are called."""

    langs = ("en", "de")

    def text_to_ids(self, text: str, lang_id: str) -> list[int]:
        first = {"en": 0, "de": 100}[lang_id]
        return [first + len(word) for word in text.split()]
