"""Datasets of every kind, each with the right verdict."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import time
import uuid

import numpy as np
import pytest
import torch
from lhotse import CutSet, Recording, RecordingSet
from lhotse.dataset.collation import collate_audio
from lhotse.dataset.cut_transforms import (
    ClippingTransform,
    Compress,
    CutConcatenate,
    CutMix,
    ExtraPadding,
    LowpassUsingResampling,
    PerturbSpeed,
    PerturbTempo,
    PerturbVolume,
    ReverbWithImpulseResponse,
)
from lhotse.dataset.signal_transforms import RandomizedSmoothing, SpecAugment
from lhotse.utils import is_module_available

import playhead
from playhead.check import check_repeatable, repeatable
from playhead.fetch import randomness
from support.corpus import nemo_corpus, wav_bytes

MODULE_RNG = random.Random(1)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(folder / "cache"))
        manifest = nemo_corpus(folder, [0.3 + 0.05 * n for n in range(12)])
        yield {"manifest_filepath": str(manifest), "batch_size": 3, "shuffle": True, "seed": 1}


def checked(config, dataset, batches=3, workers=0):
    return check_repeatable(playhead.dataloader(config, dataset=dataset), batches, workers=workers)


def noises() -> CutSet:
    return CutSet.from_cuts(
        Recording.from_bytes(wav_bytes(0.2, seed=100 + i), f"noise{i}").to_cut() for i in range(9)
    )


def impulses() -> RecordingSet:
    return RecordingSet.from_recordings(
        Recording.from_bytes(wav_bytes(0.05, seed=200 + i), f"rir{i}") for i in range(9)
    )


TRANSFORMS = {
    "speed": lambda: PerturbSpeed(factors=[0.9, 1.0, 1.1], p=0.7),
    "tempo": lambda: PerturbTempo(factors=[0.9, 1.1], p=0.7),
    "volume": lambda: PerturbVolume(p=0.7),
    "reverb": lambda: ReverbWithImpulseResponse(impulses(), p=0.7),
    "mix": lambda: CutMix(noises(), p=0.7, seed="trng"),
    "compress": lambda: Compress(["opus", "mp3", "vorbis"], (0.2, 0.9), p=0.7, seed="trng"),
    "clip": lambda: ClippingTransform((0.0, 12.0), p=0.7, seed="trng"),
    "lowpass": lambda: LowpassUsingResampling(frequencies_interval=(3500, 7900), seed="trng"),
    "padding": lambda: ExtraPadding(extra_samples=1000, randomized=True),
}
# Those that draw from a generator of their own, which seeding the globals does not reach.
OWN = sorted(TRANSFORMS.keys() - {"padding"})
NEEDS = {"tempo": "torchaudio", "lowpass": "scipy", "clip": "scipy"}


class Augmented:
    """Cuts through a transform of Lhotse; their audio where its library is there."""

    def __init__(self, name, **others):
        self.name = name
        self.transforms = [TRANSFORMS[name]()]
        self.others = others

    def __getitem__(self, cuts):
        for transform in self.transforms:
            cuts = transform(cuts)
        batch = {"cuts": cuts.drop_supervisions()}
        if is_module_available(NEEDS.get(self.name, "lhotse")):
            batch["audio"], batch["lengths"] = collate_audio(cuts)
        return batch


@pytest.mark.parametrize("name", TRANSFORMS)
def test_lhotses_transforms_are_repeatable(config, name):
    result = checked(config, Augmented(name))
    assert result.repeatable, result.differences
    assert result.advice is None
    if name in OWN:
        assert all(item.why_not_seeded is None for item in result.generators)
        assert any(item.path.startswith("dataset.transforms[0]") for item in result.generators)


@pytest.mark.parametrize("name", OWN)
def test_lhotses_transforms_are_not_repeatable_if_nobody_reseeds_what_they_own(
    config, name, monkeypatch
):
    """The proof would be worth nothing if it held without the answer."""
    monkeypatch.setattr(randomness, "seed_generators", lambda found, key: None)
    result = checked(config, Augmented(name), batches=4)
    assert not result.repeatable
    assert result.differences[0].where.startswith('batch["cuts"]')


def test_all_transforms_in_a_fresh_process(config):
    dataset = Everything()
    result = checked(config, dataset, workers=1)
    assert result.repeatable, result.differences
    assert result.workers == 1
    assert len(result.generators) >= len(OWN)


class Everything:
    """All transforms at once, cuts alone."""

    def __init__(self):
        self.transforms = {name: make() for name, make in TRANSFORMS.items()}
        self.concatenate = CutConcatenate()

    def __getitem__(self, cuts):
        return {name: transform(cuts) for name, transform in self.transforms.items()} | {
            "concatenated": self.concatenate(cuts)
        }


class OfSignals:
    """Transforms of tensors, which draw from the global generators."""

    def __init__(self):
        self.smooth = RandomizedSmoothing(sigma=0.1, sample_sigma=True, p=0.7)
        self.mask = SpecAugment(time_warp_factor=5, p=0.9)

    def __getitem__(self, cuts):
        audio, _ = collate_audio(cuts)
        features = self.smooth(audio)[:, :4000].reshape(len(audio), 50, 80)
        return {"features": self.mask(features)}


class Base:
    """Reads rows and no audio; `draw` is what the batch holds."""

    reads_audio = False

    def collate(self, examples, *, sample_rate, sample_keys):
        return {"ids": [example.id for example in examples], "drawn": self.draw()}


class Globals(Base):
    def draw(self):
        return [random.random(), np.random.random(3), torch.rand(2), np.random.standard_normal()]


class Slots(Base):
    __slots__ = ("rng",)

    def __init__(self):
        self.rng = np.random.default_rng()

    def draw(self):
        return self.rng.random(4)


class InDict(Base):
    def __init__(self):
        self.of = {"python": random.Random(), "torch": [torch.Generator()]}

    def draw(self):
        return self.of["python"].random(), torch.rand(2, generator=self.of["torch"][0])


class InClosure(Base):
    def __init__(self):
        rng = np.random.RandomState()
        self.draw = lambda: rng.random_sample(3)


class InPartial(Base):
    def __init__(self):
        self.draw = functools.partial(random.Random.random, random.Random())


class Lazy(Base):
    """Makes its generator when it is first used, as many do."""

    rng = None

    def draw(self):
        if self.rng is None:
            self.rng = random.Random()
        return self.rng.random()


class Hooked(Base):
    """Hides its generator where nobody looks, and is given the key."""

    def __init__(self):
        self.hidden = {frozenset(): iter(())}
        self.make = itertools.repeat

    def set_rng(self, key):
        self.state = key

    def draw(self):
        self.state = (self.state * 6364136223846793005 + 1) % 2**64
        return self.state


REPEATABLE = [Globals, Slots, InDict, InClosure, InPartial, Lazy, Hooked]


@pytest.mark.parametrize("dataset", REPEATABLE)
def test_these_are_repeatable(config, dataset):
    result = checked(config, dataset())
    assert result.repeatable, result.differences
    assert all(item.why_not_seeded is None for item in result.generators)
    assert bool(result.generators) == (dataset is not Globals)


def test_transforms_of_signals_are_repeatable(config):
    assert checked(config, OfSignals()).repeatable


@pytest.mark.parametrize("dataset", [Slots, InDict, InClosure, InPartial, Lazy])
def test_generators_that_are_found_are_why(config, dataset, monkeypatch):
    monkeypatch.setattr(randomness, "seed_generators", lambda found, key: None)
    assert not checked(config, dataset()).repeatable


def test_globals_that_are_seeded_are_why(config, monkeypatch):
    monkeypatch.setattr(randomness, "_seed_globals", lambda key: None)
    monkeypatch.setattr(randomness, "_globals_kept", contextlib.nullcontext)
    result = checked(config, Globals())
    assert {difference.where for difference in result.differences} == {'batch["drawn"][0]'}


class CountsCalls(Base):
    def __init__(self):
        self.calls = 0

    def draw(self):
        self.calls += 1
        return self.calls


class ReadsTheClock(Base):
    def draw(self):
        return {"now": time.time()}


class FromTheSystem(Base):
    def __init__(self):
        self.rng = random.SystemRandom()

    def draw(self):
        return self.rng.random()


class OfTheClass(Base):
    rng = np.random.default_rng()

    def draw(self):
        return self.rng.random(2)


class OfTheModule(Base):
    def draw(self):
        return MODULE_RNG.random()


class InSet(Base):
    def __init__(self):
        self.pool = {random.Random()}

    def draw(self):
        return [rng.random() for rng in self.pool]


class FromEntropy(Base):
    def draw(self):
        return os.urandom(4)


class ReusesABuffer(Base):
    """Hands out the same tensor again and again, with something of the batch before in it."""

    def __init__(self):
        self.buffer = torch.zeros(3)

    def draw(self):
        self.buffer += 1
        return self.buffer


class RemembersTheLastBatch(Base):
    """What was read before stands in the next batch."""

    last = ""

    def collate(self, examples, *, sample_rate, sample_keys):
        last, self.last = self.last, examples[0].id
        return {"ids": [example.id for example in examples], "last": last}


NOT_REPEATABLE = {
    CountsCalls: 'batch["drawn"]',
    ReadsTheClock: 'batch["drawn"]["now"]',
    FromTheSystem: 'batch["drawn"]',
    OfTheClass: 'batch["drawn"]',
    OfTheModule: 'batch["drawn"]',
    InSet: 'batch["drawn"][0]',
    FromEntropy: 'batch["drawn"]',
    ReusesABuffer: 'batch["drawn"]',
    RemembersTheLastBatch: 'batch["last"]',
}
NAMED = {
    FromTheSystem: ("dataset.rng", "operating system"),
    OfTheClass: (".OfTheClass.rng", "belongs to the class"),
    OfTheModule: (".MODULE_RNG", "global of a module"),
    InSet: ("dataset.pool", "in a set"),
}


@pytest.mark.filterwarnings("ignore:the dataset.rng is a random.SystemRandom")
@pytest.mark.parametrize("dataset", NOT_REPEATABLE)
def test_these_are_not(config, dataset):
    result = checked(config, dataset())
    assert not result.repeatable
    assert {difference.where for difference in result.differences} == {NOT_REPEATABLE[dataset]}
    assert {difference.when for difference in result.differences} == {repeatable.AGAIN}
    assert result.advice
    loose = {item.path: item.why_not_seeded for item in result.generators if item.why_not_seeded}
    # This module has a global of its own, which all of them can reach and one draws from.
    assert len(loose) == (dataset in NAMED)
    for place, found in loose.items():
        path, why = NAMED[dataset]
        assert place.endswith(path)
        assert why in found
        assert path in result.advice


class OrderOfASet(Base):
    """Texts hash differently in every process."""

    def draw(self):
        return list({f"word{number}" for number in range(20)})


class FailsElsewhere(Base):
    def __init__(self):
        self.home = os.getpid()

    def draw(self):
        if os.getpid() != self.home:
            raise KeyError("only here")


def test_what_only_another_process_makes_differently(config):
    assert checked(config, OrderOfASet()).repeatable
    result = checked(config, OrderOfASet(), workers=1)
    assert {difference.when for difference in result.differences} == {repeatable.ELSEWHERE}
    assert "Only another process" in result.advice


def test_what_fails_in_another_process_alone_is_raised(config):
    assert checked(config, FailsElsewhere()).repeatable
    with pytest.raises(KeyError, match="only here"):
        checked(config, FailsElsewhere(), workers=1)


class Fails(Base):
    def draw(self):
        raise LookupError("my own mistake")


def test_a_dataset_that_fails_does_so_in_its_own_words(config):
    """Not in those of a worker, with a traceback inside the text."""
    with pytest.raises(LookupError, match=r"^my own mistake") as raised:
        checked(config, Fails(), workers=1)
    assert "Traceback" not in str(raised.value)


def test_a_dataset_that_cannot_be_sent_is_forked(config):
    result = checked(config, InClosure(), workers=1)
    assert result.repeatable
    assert result.workers == 1
    assert any("forked" in note for note in result.notes)


class HoldsALock(Base):
    def draw(self):
        return {"lock": __import__("threading").Lock(), "generator": (n for n in range(3))}


def test_what_cannot_be_compared_is_named(config):
    result = checked(config, HoldsALock())
    assert result.repeatable
    assert [place.partition(": ")[0] for place in result.not_compared] == [
        'batch["drawn"]["lock"]',
        'batch["drawn"]["generator"]',
    ]


class Unique(Base):
    def draw(self):
        return uuid.uuid4().hex


def test_the_loader_does_not_move_and_nothing_else_does(config):
    loader = playhead.dataloader({**config, "force_finite": True}, dataset=Globals())
    batches = iter(loader)
    first = next(batches)
    state = loader.state_dict()
    random.seed(3)
    before = random.getstate(), torch.get_rng_state().tolist()
    assert check_repeatable(loader, 2, workers=0).batches == 2
    assert (random.getstate(), torch.get_rng_state().tolist()) == before
    assert loader.state_dict() == state
    assert len([first, *batches]) == len(loader)


def test_fewer_batches_than_asked_for(config):
    finite = {**config, "force_finite": True, "batch_size": 12}
    result = checked(finite, Globals(), batches=5)
    assert result.batches == 1
    assert any("one batch only" in note for note in result.notes)


def test_what_cannot_be_asked_for(config):
    with pytest.raises(playhead.ConfigError, match="0 batches and 0 workers"):
        checked(config, Globals(), batches=0)
    with pytest.raises(playhead.ConfigError, match="-1 workers"):
        checked(config, Globals(), workers=-1)


def test_what_is_left_of_a_batch_with_bad_audio_is_compared(config, tmp_path):
    manifest = nemo_corpus(tmp_path, [0.2] * 6)
    (tmp_path / "wav" / "utt00003.wav").write_bytes(b"no audio")
    tolerant = {**config, "manifest_filepath": str(manifest), "fault_tolerant_audio_loading": True}
    dataset = playhead.datasets.SpeechToText()
    assert checked(tolerant, dataset, batches=2).repeatable
    monitored = Recalls()
    result = checked(tolerant, monitored, batches=2)
    assert {difference.where for difference in result.differences} == {'batch["last"]'}


class Recalls:
    """Hears its audio, and remembers the last batch."""

    reads_audio = True
    last = ""

    def collate(self, examples, *, sample_rate, sample_keys):
        last, self.last = self.last, examples[0].id
        audio, _ = playhead.fetch.pad_waveforms(examples, sample_rate)
        return {"audio": audio, "last": last}


def test_the_readymade_datasets_are_repeatable(config):
    for dataset in (playhead.datasets.SpeechToText(), playhead.datasets.Ids()):
        result = checked(config, dataset)
        assert (result.repeatable, result.generators, result.not_compared) == (True, (), ())
        assert len(result.notes) == 1
