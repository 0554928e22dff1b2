"""NeMo's datasets get NeMo's classes, and what they would leave out is heard of."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from lhotse.cut import Cut
from lhotse.dataset import AudioSamples

from integrations.nemo import fake_nemo
from integrations.nemo.fake_nemo import build
from playhead.datasets import SpeechToText
from playhead.errors import AudioError, ConfigError
from playhead.integrations.nemo import get_lhotse_dataloader_from_config
from playhead.integrations.nemo.datasets import for_nemo
from support.corpus import nemo_corpus
from support.talk import section, tokenizer
from support.talk_base import FORMS

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*of config.* that"),
    pytest.mark.filterwarnings("ignore:.*samples were left out"),
]


class Samples:
    """Hands over what it gets."""

    def __getitem__(self, cuts):
        return list(cuts)


class Transcribed:
    """Loads audio as NeMo's datasets do: what cannot be decoded is left out."""

    def __init__(self):
        self.load_audio = AudioSamples(fault_tolerant=True)

    def __getitem__(self, cuts):
        audio, lengths, cuts = self.load_audio(cuts)
        return audio, lengths, list(cuts.ids)


class Talk(Transcribed):
    """And gives nothing where anything at all goes wrong, as NeMo's speech language models'."""

    def __getitem__(self, cuts):
        try:
            return super().__getitem__(cuts)
        except Exception:  # noqa: BLE001 - as there
            return None


class FallbackDataset:
    """NeMo's: the batch before, where there is none."""

    def __init__(self, dataset):
        self.dataset = dataset
        self._before = None

    def __getitem__(self, cuts):
        self._before = self.dataset[cuts] or self._before
        return self._before


def make(config, dataset, tokenizer=None):
    return get_lhotse_dataloader_from_config(config, 0, 1, dataset, tokenizer=tokenizer)


def talk(folder, name, **options):
    entry = FORMS[name].write(folder)
    config = section(input_cfg=[entry], batch_size=4, force_finite=True, shuffle=False, **options)
    return [one for batch in make(config, Samples(), tokenizer(folder)) for one in batch]


@pytest.fixture
def modules(monkeypatch):
    return build(monkeypatch)


def test_conversations_are_of_nemos_class(modules, tmp_path):
    found = talk(tmp_path, "multimodal_conversation", prompt_format="llama3")
    assert {type(one) for one in found} == {fake_nemo.NeMoMultimodalConversation}
    turns = [turn for one in found for turn in one.turns]
    assert {type(turn) for turn in turns} == {fake_nemo.AudioTurn, fake_nemo.TextTurn}
    heard = next(turn for turn in turns if isinstance(turn, fake_nemo.AudioTurn))
    assert isinstance(heard.cut, Cut)
    assert (heard.role, heard.audio_locator_tag) == ("user", "<audio>")
    for one in found:
        assert len(one.context_ids) + len(one.answer_ids) == len(one.input_ids) == len(one.mask)
        assert one.token_equivalent_duration == 0.08
        assert one.num_tokens >= len(one.input_ids)


def test_texts_and_pairs_are_of_nemos_classes(modules, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    text, *_ = talk(tmp_path / "a", "txt")
    assert type(text) is fake_nemo.TextExample
    assert isinstance(text.tokens, np.ndarray)
    assert len(text.tokens) > 0
    pair, *_ = talk(tmp_path / "b", "txt_pair", prompt_format="plain")
    assert type(pair) is fake_nemo.SourceTargetTextExample
    assert type(pair.source) is type(pair.target) is fake_nemo.TextExample
    assert pair.question is None
    assert isinstance(pair.input_ids, torch.Tensor)


def test_chats_are_conversations_which_every_dataset_takes(modules, tmp_path):
    chat, *_ = talk(tmp_path, "nemo_sft_jsonl", prompt_format="plain")
    assert type(chat) is fake_nemo.NeMoMultimodalConversation
    assert chat.turns


def test_cuts_need_no_nemo(tmp_path):
    manifest = nemo_corpus(tmp_path, [0.5] * 2)
    (batch,) = make({"manifest_filepath": str(manifest), "batch_size": 2}, Samples())
    assert all(isinstance(cut, Cut) for cut in batch)


@pytest.fixture
def damaged(tmp_path):
    manifest = nemo_corpus(tmp_path, [0.5] * 6)
    bad = tmp_path / "wav/utt00003.wav"
    bad.write_bytes(b"no audio")
    return {"manifest_filepath": str(manifest), "batch_size": 3, "shuffle": False}


@pytest.mark.parametrize(
    "dataset", [Transcribed(), Talk(), FallbackDataset(Talk()), FallbackDataset(Transcribed())]
)
def test_a_sample_that_cannot_be_decoded_is_named_or_counted(damaged, dataset, tmp_path):
    before = copy.deepcopy(vars(dataset))
    with pytest.raises(AudioError, match=r"utt00003\.wav"):
        list(make(damaged, dataset))
    bad = tmp_path / "bad.jsonl"
    tolerant = {"fault_tolerant_audio_loading": True, "bad_samples": str(bad)}
    loader = make({**damaged, **tolerant}, dataset)
    sizes = [len(lengths) for _, lengths, _ in loader]
    assert sizes == [3, 2]
    (line,) = bad.read_text().splitlines()
    assert json.loads(line)["row"] == 3
    assert vars(dataset).keys() == before.keys()


def test_a_dataset_that_makes_nothing_of_sound_audio_is_an_error(tmp_path):
    manifest = nemo_corpus(tmp_path, [0.5] * 2)

    class Nothing:
        def __getitem__(self, cuts):
            return None

    with pytest.raises(AudioError, match="Nothing made nothing of a batch of 2 samples"):
        list(make({"manifest_filepath": str(manifest), "batch_size": 2}, Nothing()))


def test_it_travels_to_other_processes():
    there = pickle.loads(pickle.dumps(for_nemo(FallbackDataset(Transcribed()))))
    assert there.dataset.load_audio.fault_tolerant is True


def test_playheads_own_datasets_stay_as_they_are():
    own = SpeechToText()
    assert for_nemo(own) is own


def test_what_a_dataset_declares_is_heeded(tmp_path):
    entry = FORMS["txt"].write(tmp_path)

    class Speech(Samples):
        modalities = frozenset({"audio"})

    config = section(input_cfg=[entry], batch_size=4)
    with pytest.raises(ConfigError, match="takes stretches of audio"):
        make(config, Speech(), tokenizer(Path(tmp_path)))
