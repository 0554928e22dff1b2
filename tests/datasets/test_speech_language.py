"""Tokens and audio side by side: which token is learnt, and where each stretch of audio belongs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from playhead.datasets import PackedSpeechLanguage, SpeechLanguage
from playhead.errors import AudioError, ConfigError, ManifestError
from playhead.fetch import ExampleDataset
from playhead.formats import Audio, Example
from playhead.formats.example import Turn
from support.corpus import tone, wav_bytes
from support.fetching import PLACE

RATE = 16000
TAG = 7


def spoken(name, seconds, seed, channels=1):
    audio = Audio(source=wav_bytes(seconds, channels=channels, seed=seed))
    return Example(id=name, text="x", language="en", audio=audio, place=PLACE)


def example(name, kind, tokens, *turns):
    made = Example(
        id=name, text=None, language=None, audio=None, place=PLACE, kind=kind,
        turns=tuple(Turn(role="user", text="x", audio=one, locator="<a>") for one in turns),
    )  # fmt: skip
    made.tokens = tokens
    return made


def batch_examples():
    """A cut, a text, a conversation that is heard twice, and one that is only written."""
    cut = spoken("cut", 0.2, 1)
    cut.tokens = {"input_ids": [1, 2, 3], "mask": [False, True, True]}
    return [
        cut,
        example("text", "text", {"input_ids": [4, 5], "mask": [True, True]}),
        example(
            "talk",
            "conversation",
            {"input_ids": [9, TAG, 9, TAG, 8, 8], "mask": [False] * 4 + [True] * 2},
            spoken("first", 0.1, 2),
            None,
            spoken("second", 0.3, 3),
        ),
        example("chat", "sft", {"input_ids": [9, 8], "mask": [False, True]}),
    ]


def collate(dataset, examples):
    return dataset.collate(
        examples, sample_rate=RATE, sample_keys=np.arange(len(examples), dtype=np.uint64)
    )


@pytest.mark.parametrize("dataset", [SpeechLanguage(), PackedSpeechLanguage()])
def test_ids_are_whole_numbers_even_where_there_are_none(dataset):
    nothing = Example(id="a", text="", language=None, audio=None, place=PLACE, kind="text")
    nothing.tokens = {"tokens": []}
    assert collate(dataset, [nothing])["input_ids"].dtype == torch.int64


def heard(seconds, seed):
    return torch.from_numpy(tone(seconds, seed=seed)[:, 0] / 32768).float()


@pytest.mark.parametrize("dataset", [SpeechLanguage(), PackedSpeechLanguage()])
def test_they_are_datasets_of_examples_that_take_everything(dataset):
    assert isinstance(dataset, ExampleDataset)
    assert dataset.modalities == {"audio", "text", "conversation"}


def test_a_padded_batch():
    batch = collate(SpeechLanguage(audio_locator=TAG, pad_id=99), batch_examples())
    assert batch["input_ids"].tolist() == [
        [99, 99, 99, 1, 2, 3],
        [99, 99, 99, 99, 4, 5],
        [9, TAG, 9, TAG, 8, 8],
        [99, 99, 99, 99, 9, 8],
    ]
    assert batch["input_lens"].tolist() == [3, 2, 6, 2]
    assert batch["loss_mask"].int().tolist() == [
        [0, 0, 0, 0, 1, 1],
        [0, 0, 0, 0, 1, 1],
        [0, 0, 0, 0, 1, 1],
        [0, 0, 0, 0, 0, 1],
    ]
    assert batch["audio_row"].tolist() == [0, 2, 2]
    assert batch["audio_at"].tolist() == [-1, 1, 3]
    assert batch["audio_lens"].tolist() == [3200, 1600, 4800]
    for row, length, wave in zip(
        batch["audio"], [3200, 1600, 4800], [heard(0.2, 1), heard(0.1, 2), heard(0.3, 3)],
        strict=True,
    ):  # fmt: skip
        assert torch.equal(row[:length], wave)
        assert not row[length:].any()
    assert batch["ids"] == ["cut", "text", "talk", "chat"]
    assert batch["kinds"] == ["cut", "text", "conversation", "sft"]
    kinds = {name: value.dtype for name, value in batch.items() if isinstance(value, torch.Tensor)}
    assert kinds == {
        "input_ids": torch.int64, "input_lens": torch.int64, "loss_mask": torch.bool,
        "audio": torch.float32, "audio_lens": torch.int64, "audio_row": torch.int64,
        "audio_at": torch.int64,
    }  # fmt: skip


def test_a_packed_batch_holds_the_same():
    padded = collate(SpeechLanguage(audio_locator=TAG), batch_examples())
    packed = collate(PackedSpeechLanguage(audio_locator=TAG), batch_examples())
    starts = packed["cu_seqlens"].tolist()
    assert starts == [0, 3, 5, 11, 13]
    assert packed["cu_seqlens"].dtype == torch.int32
    longest = padded["input_ids"].shape[1]
    for row, (start, end) in enumerate(pairwise(starts)):
        first = longest - (end - start)
        for name in ("input_ids", "loss_mask"):
            assert torch.equal(packed[name][start:end], padded[name][row, first:])
        assert packed["position_ids"][start:end].tolist() == list(range(end - start))
    cuts = packed["audio_cu_seqlens"].tolist()
    for row, (start, end) in enumerate(pairwise(cuts)):
        assert torch.equal(
            packed["audio"][start:end], padded["audio"][row, : padded["audio_lens"][row]]
        )
    assert len(packed["audio"]) == cuts[-1] == 3200 + 1600 + 4800
    assert packed["audio_row"].tolist() == [0, 2, 2]
    assert packed["audio_at"].tolist() == [-1, 6, 8]
    assert [packed["input_ids"][at] for at in (6, 8)] == [TAG, TAG]
    assert (packed["ids"], packed["kinds"]) == (padded["ids"], padded["kinds"])


@pytest.mark.parametrize("dataset", [SpeechLanguage(), PackedSpeechLanguage()])
def test_batches_without_any_audio(dataset):
    batch = collate(dataset, batch_examples()[1:2])
    assert batch["audio"].numel() == 0
    assert batch["audio"].dtype == torch.float32
    assert batch["audio_row"].tolist() == batch["audio_at"].tolist() == []


def test_without_a_locator_nobody_says_where_audio_stands():
    batch = collate(SpeechLanguage(), batch_examples())
    assert batch["audio_at"].tolist() == [-1, -1, -1]


def test_without_a_prompt_all_is_learnt_but_what_is_asked():
    text = example("a", "text", {"tokens": [1, 2]})
    pair = example("b", "pair", {"tokens": [1, 2, 3], "answer_tokens": [3]})
    batch = collate(SpeechLanguage(), [text, pair])
    assert batch["loss_mask"].int().tolist() == [[0, 1, 1], [0, 0, 1]]


def test_a_prompt_that_waits_for_an_answer_has_nothing_to_learn():
    batch = collate(SpeechLanguage(), [example("a", "sft", {"input_ids": [1, 2]})])
    assert not batch["loss_mask"].any()


def test_a_cut_whose_prompt_has_the_tag_says_where():
    cut = spoken("cut", 0.1, 1)
    cut.tokens = {"input_ids": [1, TAG, 2], "mask": [False, False, True]}
    assert collate(SpeechLanguage(audio_locator=TAG), [cut])["audio_at"].tolist() == [1]


@pytest.mark.parametrize("ids", [[9, 8], [TAG, TAG, 8]])
def test_tags_and_audio_must_match(ids):
    talk = example(
        "talk", "conversation", {"input_ids": ids, "mask": [True] * len(ids)}, spoken("a", 0.1, 1)
    )
    with pytest.raises(ManifestError, match=r"token 7 .* times, and the sample has 1 .*row 7"):
        collate(SpeechLanguage(audio_locator=TAG), [talk])


def test_a_tokenizer_is_needed():
    with pytest.raises(ConfigError, match="tokenizer=…"):
        collate(SpeechLanguage(), [example("a", "text", {})])


def test_several_channels_are_refused():
    cut = spoken("cut", 0.1, 1, channels=2)
    cut.tokens = {"tokens": [1]}
    with pytest.raises(AudioError, match="2 channels"):
        collate(SpeechLanguage(), [cut])
