"""What a loader hands out, and what it may hand out of data that are damaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import playhead
from playhead.fetch import waveform

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_BATCHES = 200
# Lhotse fills up with mirrored sound what a file lacks of half a second at its end.
_FILLED = 0.5


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample as it is compared; its audio is None where it cannot be decoded."""

    id: str
    text: str
    audio: np.ndarray | None
    tokens: tuple[int, ...] = ()
    rate: int = 16000


@dataclass(frozen=True)
class Reading:
    """What was handed out, and how many samples were said to be left out."""

    samples: list[Sample]
    skipped: int


class Heard:
    """A dataset that gives what was read."""

    reads_audio = True

    def collate(self, examples: Sequence[Any], *, sample_rate: int | None, sample_keys: Any) -> Any:
        return {"samples": [_heard(example) for example in examples]}


def _heard(example: Any) -> Sample:
    audio, rate = waveform(example, None)
    tokens = tuple(example.tokens.get("tokens", ()))
    return Sample(example.id, example.text or "", audio, tokens, rate)


def opened(config: dict[str, Any], **options: Any) -> playhead.Loader:
    """A loader of one pass in declared order, in this process."""
    plain = {"batch_size": 3, "shuffle": False, "force_finite": True, "bad_samples": None}
    return playhead.dataloader({**plain, **config}, dataset=Heard(), **options)


def read(loader: playhead.Loader) -> Reading:
    """All that a loader of one pass hands out, each sample once."""
    samples: list[Sample] = []
    skipped = 0
    for number, batch in enumerate(loader):
        assert number < _MOST_BATCHES, "the pass does not end"
        info = batch["playhead"]
        skipped += info.dropped
        samples += [
            one
            for one, repeated in zip(batch["samples"], info.repeated, strict=True)
            if not repeated
        ]
    for leaf in loader.report().leaves:
        # Rows that ask for it are left out by whoever reads them.
        skipped += sum(leaf.dropped.values()) - leaf.dropped.get("_skipme", 0)
    return Reading(samples, skipped)


def unlike(reading: Reading, allowed: Sequence[Sample]) -> str | None:
    """Say how a reading differs from what is allowed, but for samples that were counted."""
    at = missing = 0
    for sample in reading.samples:
        begin = at
        while at < len(allowed) and not _same(sample, allowed[at]):
            at += 1
        if at == len(allowed):
            likely = allowed[begin] if begin < len(allowed) else None
            return f"{_shown(sample)} where {_shown(likely)} should be"
        missing += at - begin
        at += 1
    missing += len(allowed) - at
    if missing > reading.skipped:
        return f"{missing} samples are missing and {reading.skipped} were counted"
    return None


def _shown(sample: Sample | None) -> str:
    if sample is None:
        return "nothing"
    audio = "no audio" if sample.audio is None else f"{sample.audio.shape} at {sample.rate}"
    return f"{sample.id!r} {sample.text!r} {audio} {sample.tokens}"


def _same(ours: Sample, allowed: Sample) -> bool:
    if (ours.id, ours.text, ours.tokens) != (allowed.id, allowed.text, allowed.tokens):
        return False
    return allowed.audio is not None and _same_audio(ours.audio, allowed.audio, ours.rate)


def _same_audio(ours: np.ndarray, allowed: np.ndarray, rate: int) -> bool:
    if ours.shape == allowed.shape:
        return np.array_equal(ours, allowed, equal_nan=True)
    longer = ours.shape[-1] - allowed.shape[-1]
    if ours.shape[:-1] != allowed.shape[:-1] or not 0 < longer <= _FILLED * rate + 1:
        return False
    return np.array_equal(ours[..., : allowed.shape[-1]], allowed, equal_nan=True)
