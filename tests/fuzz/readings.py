"""What a loader hands out, and what it may hand out of data that are damaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from lhotse import Recording
from lhotse.cut import Cut

import playhead
from playhead.fetch import waveform
from playhead.formats.example import audio_turns, turns_of

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
    audios: tuple[np.ndarray | None, ...] | None = None
    """Of a text or a conversation: the audio of its turns, in order; it has no other."""


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


class HeardCuts:
    """The same of cuts, with what they carry beside their audio."""

    def __getitem__(self, cuts: Any) -> dict[str, Any]:
        return {"samples": [_heard_cut(cut) for cut in cuts]}


def _heard_cut(cut: Any) -> Sample:
    if not isinstance(cut, Cut):
        for one in cut.list_cuts():
            one.load_audio()
        return Sample(cut.id, "", None)
    for name in ("target_audio", "context_audio"):
        # A recording that lacks a field is no recording to Lhotse.
        if isinstance((cut.custom or {}).get(name), Recording):
            cut.custom[name].load_audio()
    said = " ".join(f"{one.speaker}: {one.text}" for one in cut.supervisions)
    return Sample(cut.id, said, cut.load_audio())


def _heard(example: Any) -> Sample:
    if example.kind != "cut":
        turns = [
            (turn.role, turn.text if turn.audio is None else "<>") for turn in turns_of(example)
        ]
        said = " | ".join(f"{role}: {text}" for role, text in turns)
        sounds = [waveform(turn.audio, None) for turn in audio_turns(example)]
        audios = tuple(audio for audio, _ in sounds)
        rate = max((rate for _, rate in sounds), default=16000)
        return Sample(example.id, said, None, rate=rate, audios=audios)
    audio, rate = waveform(example, None)
    tokens = tuple(example.tokens.get("tokens", ()))
    return Sample(example.id, example.text or "", audio, tokens, rate)


def opened(config: dict[str, Any], **options: Any) -> playhead.Loader:
    """A loader of one pass in declared order, in this process."""
    plain = {"batch_size": 3, "shuffle": False, "force_finite": True, "bad_samples": None}
    return playhead.dataloader({**plain, **config}, **{"dataset": Heard(), **options})


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
    if sample.audios is not None:
        shapes = [None if one is None else one.shape for one in sample.audios]
        return f"{sample.id!r} {sample.text!r} {shapes}"
    audio = "no audio" if sample.audio is None else f"{sample.audio.shape} at {sample.rate}"
    return f"{sample.id!r} {sample.text!r} {audio} {sample.tokens}"


def _same(ours: Sample, allowed: Sample) -> bool:
    if (ours.id, ours.text, ours.tokens) != (allowed.id, allowed.text, allowed.tokens):
        return False
    if ours.audios is not None and allowed.audios is not None:
        return len(ours.audios) == len(allowed.audios) and all(
            one is not None and two is not None and _same_audio(one, two, ours.rate)
            for one, two in zip(ours.audios, allowed.audios, strict=True)
        )
    return allowed.audio is not None and _same_audio(ours.audio, allowed.audio, ours.rate)


def _same_audio(ours: np.ndarray, allowed: np.ndarray, rate: int) -> bool:
    if ours.shape == allowed.shape:
        return np.array_equal(ours, allowed, equal_nan=True)
    longer = ours.shape[-1] - allowed.shape[-1]
    if ours.shape[:-1] != allowed.shape[:-1] or not 0 < longer <= _FILLED * rate + 1:
        return False
    return np.array_equal(ours[..., : allowed.shape[-1]], allowed, equal_nan=True)
