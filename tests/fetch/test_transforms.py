"""Batches with each of Lhotse's augmentations are functions of the batch's key."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import subprocess
import sys
from pathlib import Path

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

from playhead.fetch import Fetcher, FetchSpec
from support.corpus import nemo_corpus, wav_bytes
from support.fetching import leaf_of, micro_batch, spec_of

ROWS_A, ROWS_B = [0, 3, 5, 2], [1, 2, 4]


def noises() -> CutSet:
    return CutSet.from_cuts(
        Recording.from_bytes(wav_bytes(0.3, seed=100 + i), f"noise{i}").to_cut() for i in range(20)
    )


def impulses() -> RecordingSet:
    return RecordingSet.from_recordings(
        Recording.from_bytes(wav_bytes(0.05, seed=200 + i), f"rir{i}") for i in range(9)
    )


MAKERS = {
    "speed": lambda: PerturbSpeed(factors=[0.9, 1.0, 1.1], p=0.7),
    "speed_given": lambda: PerturbSpeed(factors=[0.9, 1.1], p=0.7, randgen=random.Random()),
    "tempo": lambda: PerturbTempo(factors=[0.9, 1.1], p=0.7),
    "volume": lambda: PerturbVolume(p=0.7),
    "reverb": lambda: ReverbWithImpulseResponse(impulses(), p=0.7),
    "reverb_synthetic": lambda: ReverbWithImpulseResponse(p=0.7),
    "mix": lambda: CutMix(noises(), p=0.7),
    "mix_lazy": lambda: CutMix(noises().repeat(3).shuffle(rng=random.Random()), p=0.7),
    "mix_offset": lambda: CutMix(noises(), p=0.7, seed="trng", random_mix_offset=True),
    "mix_given": lambda: CutMix(noises(), p=0.7, seed=random.Random()),
    "compress": lambda: Compress(["opus", "mp3", "vorbis"], (0.2, 0.9), p=0.7, seed="trng"),
    "clip": lambda: ClippingTransform((0.0, 12.0), p=0.7, seed="trng"),
    "lowpass": lambda: LowpassUsingResampling(frequencies_interval=(3500, 7900), seed="trng"),
    "padding": lambda: ExtraPadding(extra_samples=1000, randomized=True),
    "concatenate": CutConcatenate,
    "smoothing": lambda: RandomizedSmoothing(sigma=0.1, sample_sigma=True, p=0.7),
    "spec": lambda: SpecAugment(time_warp_factor=5, p=0.9),
}
# What they need to compute the audio; which audio it would be is compared all the same.
NEEDS = {
    "tempo": "torchaudio",
    "reverb_synthetic": "torchaudio",
    "lowpass": "scipy",
    "clip": "scipy",
}


class Augmented:
    """What Lhotse's own datasets do: transforms of cuts, then of signals."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.transforms = [MAKERS[name]()]

    def __getitem__(self, cuts: CutSet) -> str:
        digest = hashlib.sha256()
        (transform,) = self.transforms
        if not isinstance(transform, torch.nn.Module):
            cuts = transform(cuts)
        for cut in cuts:
            digest.update(f"{cut.id} {cut.duration} {plan_of(cut)}".encode())
        if all(map(is_module_available, [NEEDS.get(self.name, "lhotse")])):
            audio, lengths = collate_audio(cuts)
            if isinstance(transform, RandomizedSmoothing):
                audio = transform(audio)
            if isinstance(transform, SpecAugment):
                audio = transform(audio[:, :16000].reshape(len(audio), 200, 80))
            digest.update(audio.numpy().tobytes() + lengths.numpy().tobytes())
        return digest.hexdigest()


def plan_of(cut) -> str:
    """Which transforms a cut has been given."""
    parts = [track.cut for track in cut.tracks] if hasattr(cut, "tracks") else [cut]
    recordings = [part.recording for part in parts if getattr(part, "recording", None)]
    names = [f"{recording.id} {recording.transforms}" for recording in recordings]
    return f"{names} {[getattr(track, 'snr', None) for track in getattr(cut, 'tracks', ())]}"


def corpus(folder: Path):
    manifest = nemo_corpus(folder, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5])
    return spec_of([leaf_of("nemo", manifest=manifest)], folder, sample_rate=16000)


def first_batches(spec: FetchSpec) -> dict[str, str]:
    """The batch A of a dataset that was never used before."""
    return {name: Fetcher(spec, Augmented(name))(micro_batch(ROWS_A, key=1)) for name in MAKERS}


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return corpus(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("name", MAKERS)
def test_a_batch_depends_on_its_key_alone(spec, name):
    batch_a, batch_b = micro_batch(ROWS_A, key=1), micro_batch(ROWS_B, key=2)
    fetch = Fetcher(spec, Augmented(name))
    first = fetch(batch_a)
    second = fetch(batch_b)
    assert fetch(batch_a) == first
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    other = Fetcher(spec, Augmented(name))
    assert other(batch_b) == second
    assert other(batch_a) == first
    if name != "concatenate":
        assert fetch(micro_batch(ROWS_A, key=3)) != first


@pytest.mark.parametrize("name", MAKERS)
def test_a_dataset_that_was_used_elsewhere_gives_the_same(spec, name):
    """Generators that exist already, and are anywhere, begin anew."""
    dataset = Augmented(name)
    cuts = CutSet.from_cuts(
        Recording.from_bytes(wav_bytes(1.0, seed=i), f"r{i}").to_cut() for i in range(5)
    )
    dataset[cuts]
    assert Fetcher(spec, dataset)(micro_batch(ROWS_A, key=1)) == Fetcher(spec, Augmented(name))(
        micro_batch(ROWS_A, key=1)
    )


def test_another_process_makes_the_same(spec):
    code = (
        f"import sys; sys.path[:0] = {[str(parent) for parent in Path(__file__).parents[:2]]}\n"
        "import json, pickle, random, numpy, torch\n"
        "random.seed(1); numpy.random.seed(1); torch.manual_seed(1)\n"
        "from test_transforms import first_batches\n"
        f"print(json.dumps(first_batches(pickle.loads({pickle.dumps(spec)!r}))))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == first_batches(spec)
