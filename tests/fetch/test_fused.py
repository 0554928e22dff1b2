"""Batches of several parts: prepared part by part, given to the dataset at once."""

from __future__ import annotations

import dataclasses
import pickle
import random

import numpy as np
import pytest
import torch
from lhotse.dataset.collation import collate_audio

from playhead.datasets import Ids, SpeechToText
from playhead.errors import AudioError, ConfigError
from playhead.fetch import Fetcher
from playhead.fetch.augment import Augmentation
from playhead.fetch.bad import Holes, without
from playhead.loader.fusion import joined
from support.corpus import nemo_corpus, tarred_corpus
from support.fetching import leaf_of, micro_batch, spec_of


class Recognition:
    """A dataset as Lhotse users write them, with some randomness."""

    def __init__(self):
        self.rng = random.Random(1)
        self.calls = 0

    def __getitem__(self, cuts):
        self.calls += 1
        audio, lengths = collate_audio(cuts)
        return {
            "audio": audio, "lengths": lengths, "ids": [cut.id for cut in cuts],
            "tags": [(cut.custom or {}).get("source") for cut in cuts],
            "draws": [self.rng.random(), random.random(), float(np.random.uniform())],
        }  # fmt: skip


SECONDS = [0.3, 0.5, 0.2, 0.4]


@pytest.fixture
def specs(tmp_path):
    """Two parts of two leaves and one."""
    one = nemo_corpus(tmp_path / "one", SECONDS, prefix="one")
    two = nemo_corpus(tmp_path / "two", SECONDS, prefix="two")
    pattern, tars = tarred_corpus(tmp_path / "three", SECONDS, 1)
    first = [leaf_of("nemo", manifest=one, tags={"source": 1}), leaf_of("nemo", manifest=two)]
    manifest, tar = pattern.replace("_OP_0..0_CL_", "0"), tars.replace("_OP_0..0_CL_", "0")
    second = [leaf_of("nemo_tarred", manifest=manifest, tar=tar, tags={"source": 3})]
    return (
        spec_of(first, tmp_path, sample_rate=16000, info=True),
        spec_of(second, tmp_path, sample_rate=16000),
    )


BATCH = [
    (micro_batch([3, 0], [1, 0], key=5, step=9, slot=2), 0),
    (micro_batch([2, 1], key=6, step=4, slot=2, repeated=[0, 1]), 2),
]


def equal(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, other[name]), name
        else:
            assert value == other[name], name


def test_micro_batches_are_joined_in_order():
    batch = joined(BATCH, step=20)
    assert batch.leaf.tolist() == [1, 0, 2, 2]
    assert batch.row.tolist() == [3, 0, 2, 1]
    assert batch.repeated.tolist() == [False, False, False, True]
    assert (batch.step, batch.slot) == (20, 2)
    assert batch.leaf.dtype == BATCH[0][0].leaf.dtype
    keys = {joined(some, step=0).key for some in (BATCH, BATCH[::-1], BATCH[:1], BATCH[1:])}
    assert len(keys) == 4
    # By itself a batch is its part's own.
    assert joined(BATCH[1:], step=4).key == 6


def test_what_the_plan_says_of_some_samples_alone_is_filled_up():
    shaped = dataclasses.replace(
        BATCH[0][0], speed=np.array([900, 1100], np.int16), span_us=np.array([7, -1])
    )
    batch = joined([BATCH[1], (shaped, 0)], step=0)
    assert batch.speed.tolist() == [1000, 1000, 900, 1100]
    assert batch.speed.dtype == np.int16
    assert batch.span_us.tolist() == [-1, -1, 7, -1]
    assert batch.start_us is None


@pytest.mark.parametrize("dataset", [Recognition, SpeechToText, Ids])
def test_the_dataset_is_called_once_with_all_samples(specs, dataset):
    fetch = Fetcher(specs[0], dataset(), *specs[1:])
    batch = fetch(joined(BATCH, step=20))
    parts = [Fetcher(spec, dataset())(part) for spec, (part, _) in zip(specs, BATCH, strict=True)]
    assert batch["ids"] == parts[0]["ids"] + parts[1]["ids"]
    info = batch["playhead"]
    assert (info.step, info.slot, info.repeated) == (20, 2, [False, False, False, True])
    if dataset is Recognition:
        # A generator that is new to the dataset is seeded, and the call made again, once.
        assert fetch.dataset.calls == 1
        assert batch["tags"] == [None, 1, 3, 3]
    if dataset is not Ids:
        for row, part in zip((0, 2), parts, strict=True):
            width = part["audio"].shape[1]
            assert torch.equal(batch["audio"][row : row + 2, :width], part["audio"])


@pytest.mark.parametrize("dataset", [Recognition, SpeechToText])
def test_the_same_batch_wherever_it_is_made(specs, dataset):
    asked = joined(BATCH, step=20)
    fetch = Fetcher(specs[0], dataset(), *specs[1:])
    first = fetch(asked)
    fetch(joined(BATCH[:1], step=3))
    equal(fetch(asked), first)
    equal(pickle.loads(pickle.dumps(fetch))(asked), first)


def test_randomness_is_that_of_the_joined_key(specs):
    fetch = Fetcher(specs[0], Recognition(), *specs[1:])
    draws = [fetch(joined(some, step=0))["draws"] for some in (BATCH, BATCH[::-1], BATCH[:1])]
    assert draws[0] != draws[1] != draws[2]
    alone = Fetcher(specs[0], Recognition())(BATCH[0][0])
    assert draws[2] == alone["draws"]


@pytest.mark.parametrize("dataset", [Recognition, SpeechToText])
def test_each_part_is_augmented_in_its_own_way(specs, dataset):
    longer = Augmentation(pad_min_duration=0.6, pad_direction="left")
    mixed = (specs[0], dataclasses.replace(specs[1], augmentation=longer))
    batch = Fetcher(mixed[0], dataset(), *mixed[1:])(joined(BATCH, step=0))
    lengths = batch["lengths" if dataset is Recognition else "audio_lens"].tolist()
    assert lengths == [round(seconds * 16000) for seconds in (0.4, 0.3, 0.6, 0.6)]


@pytest.mark.parametrize("dataset", [Recognition, SpeechToText])
def test_samples_that_a_part_joins_say_what_they_were(specs, dataset):
    joining = Augmentation(
        concatenate_samples=True, concatenate_duration_factor=5.0, db_norm=None,
        concatenate_gap_seconds=0.0,
    )  # fmt: skip
    mixed = (specs[0], dataclasses.replace(specs[1], augmentation=joining))
    batch = Fetcher(mixed[0], dataset(), *mixed[1:])(joined(BATCH, step=0))
    assert len(batch["ids"]) == 3
    assert batch["playhead"].repeated == [False, False, True]
    if dataset is SpeechToText:
        assert batch["audio_lens"].tolist() == [6400, 4800, round(0.7 * 16000)]


def test_rates_of_parts_that_are_never_joined_may_differ(specs):
    slow = dataclasses.replace(specs[1], sample_rate=8000)
    fetch = Fetcher(specs[0], SpeechToText(), slow)
    batch = fetch(joined(BATCH[1:], step=0))
    assert batch["audio_lens"].tolist() == [1600, 4000]
    with pytest.raises(ConfigError, match="16000 and 8000"):
        fetch(joined(BATCH, step=0))


def broken(specs, tmp_path, *, tolerant=(True, True)):
    """The second sample of part one and the first of part two cannot be decoded."""
    (tmp_path / "one/wav/one00000.wav").write_bytes(b"RIFF" + bytes(60))
    tar = tmp_path / "three/audio_0.tar"
    data = bytearray(tar.read_bytes())
    start = data.index(b"utt00002.wav") + 512
    data[start : start + 400] = bytes(400)
    tar.write_bytes(data)
    return [
        dataclasses.replace(spec, fault_tolerant=one)
        for spec, one in zip(specs, tolerant, strict=True)
    ]


@pytest.mark.parametrize("dataset", [Recognition, SpeechToText])
def test_holes_are_those_of_the_whole_batch(specs, tmp_path, dataset):
    one, two = broken(specs, tmp_path)
    asked = joined(BATCH, step=20)
    made = Fetcher(one, dataset(), two)(asked)
    assert isinstance(made, Holes)
    assert made.places == (1, 2)
    assert [(bad.leaf, bad.row, bad.step) for bad in made.bad] == [
        (one.leaves[0].key, 0, 20),
        (two.leaves[0].key, 2, 20),
    ]
    assert made.batch["playhead"].dropped == 2
    equal(
        {**made.batch, "playhead": None},
        {**Fetcher(one, dataset(), two)(without(asked, [1, 2])), "playhead": None},
    )


def test_a_batch_of_which_nothing_is_left(specs, tmp_path):
    one, two = broken(specs, tmp_path)
    asked = joined([(micro_batch([0], [0]), 0), (micro_batch([2]), 2)], step=1)
    made = Fetcher(one, SpeechToText(), two)(asked)
    assert made.empty
    assert made.places == (0, 1)


def test_each_part_bears_what_it_says_it_bears(specs, tmp_path):
    one, two = broken(specs, tmp_path, tolerant=(True, False))
    fetch = Fetcher(one, SpeechToText(), two)
    with pytest.raises(AudioError, match=r"audio_0\.tar/utt00002\.wav"):
        fetch(joined(BATCH, step=20))
    assert fetch(joined(BATCH[:1], step=20)).places == (1,)
