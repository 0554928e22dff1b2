"""The samples of a batch, read and augmented, as the dataset wants them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.fetch.augment import Augmenter
from playhead.fetch.bad import BadSample, chosen
from playhead.fetch.encoded import attach_tokens, encode, encode_joined
from playhead.fetch.inspection import Inspection, Sample
from playhead.fetch.missing_audio import demand_audio
from playhead.fetch.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.fetch.augment import Prepared
    from playhead.fetch.bad import BadAudio
    from playhead.fetch.fetcher import FetchSpec
    from playhead.fetch.inspection import Look
    from playhead.fetch.timings import Timings
    from playhead.formats import Example
    from playhead.plan.batch import MicroBatch
    from playhead.tokens.encoding import Encoding

__all__ = ["Made", "Preparer"]


class Made(NamedTuple):
    """The samples of a batch, as the dataset wants them."""

    samples: list[Any]
    """Examples; or cuts, texts and conversations."""
    members: list[tuple[int, ...]]
    """For each the places in the micro-batch that it was made of."""


class Preparer:
    """Makes the samples of micro-batches of one config; what becomes of them is not its matter.

    Parameters
    ----------
    spec
        Where samples come from, and what is done to them.
    timings
        Where reads are counted.
    takes_examples
        Whether examples are wanted; cuts otherwise.
    reads_audio
        Whether audio is wanted.
    """

    def __init__(
        self, spec: FetchSpec, timings: Timings, *, takes_examples: bool, reads_audio: bool
    ) -> None:
        self.spec = spec
        self.with_audio = reads_audio and not spec.metadata_only
        self._timings = timings
        self._takes_examples = takes_examples
        self._reader = Reader(spec.leaves, spec.packs, timings, spec.cache, spec.access)
        self._augmenter = (
            Augmenter(spec.augmentation, spec.noise, spec.sample_rate)
            if spec.augmentation is not None and self.with_audio
            else None
        )
        self._inspection = Inspection(spec, takes_examples=takes_examples)

    def make(self, micro_batch: MicroBatch) -> Made:
        """Make the samples of a micro-batch, with their tokens.

        Raises
        ------
        AudioError, ManifestError, SourceNotFoundError
            If a sample cannot be used.
        PlayheadError, OSError
            If it cannot be read.
        """
        timings, encoding = self._timings, self.spec.encoding
        begin, reading = time.perf_counter(), timings.read_seconds
        examples = self._reader.read(micro_batch, with_audio=self.with_audio)
        if self.with_audio:
            demand_audio(examples)
        if encoding is not None:
            encode(examples, encoding, micro_batch)
        timings.parse_seconds += time.perf_counter() - begin - (timings.read_seconds - reading)
        if self._takes_examples:
            return self._examples(examples, micro_batch)
        return self._cuts(examples, micro_batch)

    def _examples(self, examples: list[Example], micro_batch: MicroBatch) -> Made:
        if self._augmenter is None:
            return Made(examples, _each(examples))
        prepared = self._augmenter.of_examples(
            examples, micro_batch, self._tags(micro_batch), self._channels(micro_batch)
        )
        if self.spec.encoding is not None:
            _encode_joined(prepared, examples, self.spec.encoding)
        return Made(prepared.examples, prepared.members)

    def _cuts(self, examples: Sequence[Example], micro_batch: MicroBatch) -> Made:
        from playhead.fetch.samples import samples_of  # noqa: PLC0415 - imports Lhotse, 2 s

        members: list[tuple[int, ...]] | None = None
        if self.spec.metadata_only:
            samples = self._without_audio(examples, micro_batch)
        else:
            samples, members = samples_of(examples, micro_batch, self.spec, self._augmenter)
        made = Made(samples, _each(examples) if members is None else members)
        if self.spec.encoding is not None:
            _attach(made, examples, self.spec.encoding)
        return made

    def _without_audio(self, examples: Sequence[Example], micro_batch: MicroBatch) -> list[Any]:
        from playhead.fetch.samples import samples_without_audio  # noqa: PLC0415 - Lhotse, 2 s

        numbers = micro_batch.leaf.tolist()
        leaves = [self.spec.leaves[number] for number in numbers]
        packs = [self._reader.pack(number) for number in numbers]
        return samples_without_audio(examples, leaves, packs)

    def one_by_one(self, micro_batch: MicroBatch) -> list[Sample]:
        """Read the samples of a micro-batch to look at each by itself."""
        examples = self._reader.read(micro_batch, with_audio=True)
        tags, channels = self._tags(micro_batch), self._channels(micro_batch)
        return [
            Sample(at, example, chosen(micro_batch, [at]), tags[at], channels[at])
            for at, example in enumerate(examples)
        ]

    @property
    def looks(self) -> list[Look]:
        """The ways to find samples that cannot be used, in order."""
        return self._inspection.looks

    def record(self, one: BadAudio, micro_batch: MicroBatch) -> BadSample:
        """Say which sample of a micro-batch cannot be used, and why."""
        number = int(micro_batch.leaf[one.at])
        pack, place = self._reader.pack(number), one.example.place
        return BadSample(
            leaf=self.spec.leaves[number].key,
            name=place.leaf,
            shard=place.shard,
            row=place.row,
            byte=place.byte,
            row_crc=int(pack.row_crc[place.row]),
            member=place.member,
            id=one.example.id,
            reason=one.reason,
            step=int(micro_batch.step),
            slot=int(micro_batch.slot),
        )

    def _tags(self, micro_batch: MicroBatch) -> list[Mapping[str, Any]]:
        return [self.spec.leaves[leaf].tags for leaf in micro_batch.leaf.tolist()]

    def _channels(self, micro_batch: MicroBatch) -> list[int | str | None]:
        leaves = self.spec.leaves
        return [leaves[leaf].options.channel_selector for leaf in micro_batch.leaf.tolist()]


def _each(examples: Sequence[Example]) -> list[tuple[int, ...]]:
    return [(at,) for at in range(len(examples))]


def _encode_joined(prepared: Prepared, examples: Sequence[Example], encoding: Encoding) -> None:
    for example, places in zip(*prepared, strict=True):
        if len(places) > 1:
            members = [examples[at] for at in places]
            example.tokens = encode_joined(example, members, encoding).tokens


def _attach(made: Made, examples: Sequence[Example], encoding: Encoding) -> None:
    for sample, places in zip(*made, strict=True):
        example = examples[places[0]]
        if len(places) > 1:
            texts = [one.text for one in sample.supervisions if one.text is not None]
            languages = [one.language for one in sample.supervisions if one.text is not None]
            example = replace(
                example,
                text=" ".join(texts) if texts else None,
                language=languages[0] if languages else None,
            )
            example = encode_joined(example, [examples[at] for at in places], encoding)
        attach_tokens(sample, example, encoding)
