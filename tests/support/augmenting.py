"""Samples, keys and options to augment by hand, without files or a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from lhotse.cut import Cut, MixedCut

from playhead.config import Options
from playhead.fetch.augment import Augmentation, Augmenter
from playhead.formats import Audio, Example
from support.corpus import wav_bytes
from support.fetching import PLACE, micro_batch

RATE = 16000


def sample(seconds: float = 1.0, name: str = "a.wav", *, rate: int = RATE, **facts: Any) -> Example:
    """A NeMo row's sample, noise that its name decides."""
    data = wav_bytes(seconds, rate, channels=facts.pop("channels", 1), seed=sum(name.encode()))
    audio = Audio(source=data, duration=seconds, sampling_rate=rate)
    facts = {"text": f"text of {name}", "language": "en", "place": PLACE, **facts}
    return Example(id=name, audio=audio, **facts)


def of_cut(cut: Cut) -> Example:
    """A sample whose row is a cut."""
    return Example(
        id=cut.id, text=None, language=None, audio=None, place=PLACE, cut_data=cut.to_dict()
    )


def keyed(keys: Any, *, part=0, speed=None, start_us=None, span_us=None):
    """A micro-batch of samples with such keys, and what the plan decided of all or each."""
    keys = np.asarray(keys, np.uint64)

    def column(value: Any, kind: Any) -> Any:
        return None if value is None else np.broadcast_to(np.asarray(value, kind), keys.shape)

    return replace(
        micro_batch(np.arange(len(keys))),
        sample_keys=keys,
        part=column(part, np.int32),
        speed=column(speed, np.int16),
        start_us=column(start_us, np.int64),
        span_us=column(span_us, np.int64),
    )


def augmentation(sample_rate: int = RATE, **options: Any) -> Augmentation:
    """What options switch on."""
    found = Augmentation.from_options(Options(sample_rate=sample_rate, **options))
    assert found is not None
    return found


def augmenter(noise=None, sample_rate: int = RATE, **options: Any) -> Augmenter:
    """An augmenter for some options."""
    return Augmenter(augmentation(sample_rate, **options), noise, sample_rate)


def prepared(made: Augmenter, examples: list[Example], batch: Any) -> list[Cut]:
    """Cuts after everything that is done to single samples, and to batches."""
    cuts = made.prepare(examples, batch, [{}] * len(examples))
    return list(made.after(cuts, batch.sample_keys))


def audio_of(cut: Cut) -> np.ndarray:
    """The waveform, which is as long as the cut says, and finite."""
    samples = cut.load_audio()
    assert samples.dtype == np.float32
    assert samples.shape[1] == cut.num_samples
    assert np.isfinite(samples).all()
    return samples


def facts_of(cut: Cut) -> tuple[Any, ...]:
    """Everything of a cut that a dataset could look at, and what is heard."""
    tracks = cut.tracks if isinstance(cut, MixedCut) else ()
    return (
        cut.id,
        cut.duration,
        [(s.id, s.start, s.duration, s.text, s.language) for s in cut.supervisions],
        [(track.cut.id, track.offset, track.snr, track.tag) for track in tracks],
        audio_of(cut).tobytes(),
    )


@dataclass
class Slow:
    """Stands for what must not be loaded."""

    def __getattr__(self, name: str) -> Any:
        pytest.fail(f"{name} was asked for")
