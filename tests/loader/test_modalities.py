"""What a dataset takes, said before anything is trained."""

from __future__ import annotations

import pytest
from lhotse.dataset import K2SpeechRecognitionDataset
from lhotse.dataset.unsupervised import UnsupervisedWaveformDataset

from playhead.blend.leaf import Leaf
from playhead.datasets import Ids, PackedSpeechLanguage, SpeechLanguage, SpeechToText
from playhead.errors import ConfigError
from playhead.fetch import FetchSpec
from playhead.loader.modalities import check_modalities, check_rates, modalities_of

EVERYTHING = {"audio", "text", "conversation"}


def leaf(kind, type_="txt"):
    return Leaf(key=kind, name=f"data/{kind}", type=type_, kind=kind, weight=1, paths={})


class Silent:
    """Says nothing of what it takes."""


class OfTheirs(K2SpeechRecognitionDataset):
    """A subclass is somebody's own code, and may take more."""


class Of:
    def __init__(self, modalities):
        self.modalities = modalities


@pytest.mark.parametrize(
    ("dataset", "taken"),
    [
        (SpeechToText(), {"audio"}),
        (Ids(), EVERYTHING),
        (SpeechLanguage(), EVERYTHING),
        (PackedSpeechLanguage(), EVERYTHING),
        (Silent(), EVERYTHING),
        (K2SpeechRecognitionDataset(), {"audio"}),
        (UnsupervisedWaveformDataset(), {"audio"}),
        (OfTheirs(), EVERYTHING),
        (Of("text"), {"text"}),
        (Of(["text", "audio"]), {"text", "audio"}),
    ],
)
def test_what_datasets_take(dataset, taken):
    assert modalities_of(dataset) == taken


@pytest.mark.parametrize("declared", [True, 3, [["audio"]], [1]])
def test_modalities_that_are_no_set_of_names_are_refused(declared):
    with pytest.raises(ConfigError, match=r"Of declares the modalities .*conversation"):
        modalities_of(Of(declared))


def test_an_unknown_modality_is_refused():
    with pytest.raises(ConfigError, match=r"Of declares the modalities 'video'.*conversation"):
        modalities_of(Of({"audio", "video"}))


@pytest.mark.parametrize(
    ("kind", "modality"),
    [
        ("text", "text"),
        ("pair", "text"),
        ("sft", "conversation"),
        ("messages", "conversation"),
        ("conversation", "conversation"),
    ],
)
def test_a_blend_that_a_dataset_cannot_take_is_refused_by_name(kind, modality):
    leaves = [leaf("cut", "nemo"), leaf(kind)]
    said = rf"SpeechToText takes stretches of audio, and leaf data/{kind} \(txt\) .*'{modality}'"
    with pytest.raises(ConfigError, match=said):
        check_modalities(SpeechToText(), leaves)
    check_modalities(SpeechToText(), leaves[:1])
    check_modalities(Silent(), leaves)
    check_modalities(Of({"audio", modality}), leaves)


def spec(kind, rate):
    return FetchSpec(leaves=(leaf(kind),), packs=(), sample_rate=rate)


def test_parts_of_a_batch_have_one_rate_where_the_dataset_decodes():
    specs = [spec("cut", 16000), spec("text", 8000), spec("conversation", 24000)]
    with pytest.raises(ConfigError, match=r"16000 and 24000 \(data/cut: 16000; data/conversation"):
        check_rates(SpeechLanguage(), specs)
    check_rates(SpeechLanguage(), specs[:2])
    # Names need no audio, and each cut has a rate of its own.
    check_rates(Ids(), specs)
    check_rates(Silent(), specs)
