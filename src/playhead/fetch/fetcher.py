"""From a micro-batch to a batch: what a worker process does."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from playhead.errors import ConfigError
from playhead.fetch.augment import Augmenter
from playhead.fetch.bad import BadSample, Holes, chosen, is_about_audio, without
from playhead.fetch.encoded import attach_tokens, encode, encode_joined
from playhead.fetch.info import BatchInfo
from playhead.fetch.inspection import Inspection, Sample
from playhead.fetch.randomness import KeyedCalls
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.storage.retries import with_retries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.fetch.augment import Augmentation, Prepared
    from playhead.fetch.augment.noise import NoiseSpec
    from playhead.fetch.bad import BadAudio
    from playhead.formats import Example
    from playhead.index.pack import PackRef
    from playhead.plan.batch import MicroBatch
    from playhead.tokens.encoding import Encoding

    _Made = tuple[Any, Sequence[tuple[int, ...]] | None]

__all__ = ["ExampleDataset", "FetchSpec", "Fetcher"]


@runtime_checkable
class ExampleDataset(Protocol):
    """A dataset that makes batches of samples as they were read, without Lhotse's cuts.

    What has both attributes is taken for one; `collate` alone, as datasets of Lhotse have, is not
    enough.
    """

    reads_audio: bool
    """Whether it needs audio; if not, archives are not read."""

    def collate(
        self,
        examples: Sequence[Example],
        *,
        sample_rate: int | None,
        sample_keys: NDArray[np.uint64],
    ) -> dict[str, Any]:
        """Make a batch.

        Parameters
        ----------
        examples
            The samples, in order.
        sample_rate
            The rate in Hz that audio is wanted at; None is each file's own.
        sample_keys
            Shape (B,): a key for each sample's own randomness, whatever batch it comes in.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchSpec:
    """What batches are made from; paths and options only, so that it travels between processes."""

    leaves: tuple[Leaf, ...]
    """The leaves, in the order that micro-batches count them."""
    packs: tuple[PackRef, ...]
    """Their columns."""
    sample_rate: int | None = None
    """The rate in Hz that audio is resampled to; None keeps each file's own."""
    info: bool = False
    """Add a `BatchInfo` to the batches of Lhotse-style datasets too."""
    augmentation: Augmentation | None = None
    """What is done to the audio; None leaves it as it is."""
    noise: NoiseSpec | None = None
    """Where the noise comes from that is mixed in."""
    encoding: Encoding | None = None
    """What makes tokens of the texts; None makes none."""
    text_window: int | None = None
    """Tokens of the windows that texts are cut into; None leaves them whole."""
    metadata_only: bool = False
    """Give what rows say, and no audio."""
    fault_tolerant: bool = False
    """Leave samples out whose audio cannot be used, rather than fail."""
    formats: tuple[type, ...] = ()
    """Classes of input types that users registered: where they arrive, they are registered too."""


class Fetcher:
    """Makes batches of micro-batches; the same batch from the same micro-batch, wherever it runs.

    Parameters
    ----------
    spec
        Where samples come from.
    dataset
        An `ExampleDataset`, or any dataset whose ``dataset[cuts]`` makes a batch of a Lhotse
        `CutSet`.

    Attributes
    ----------
    timings
        Where the time of this process went.
    """

    def __init__(self, spec: FetchSpec, dataset: Any) -> None:
        self.spec = spec
        self.dataset = dataset
        self.timings = Timings()
        self._reader = Reader(spec.leaves, spec.packs, self.timings)
        self._keyed = KeyedCalls(dataset)
        self._takes_examples = isinstance(dataset, ExampleDataset)
        reads_audio = not self._takes_examples or bool(dataset.reads_audio)
        self._with_audio = reads_audio and not spec.metadata_only
        self._augmenter = (
            Augmenter(spec.augmentation, spec.noise, spec.sample_rate)
            if spec.augmentation is not None and self._with_audio
            else None
        )
        self._inspection = Inspection(spec, takes_examples=self._takes_examples)

    def __reduce__(self) -> tuple[type[Fetcher], tuple[FetchSpec, Any]]:
        return type(self), (self.spec, self.dataset)

    def __call__(self, micro_batch: MicroBatch) -> Any:
        """Make the batch.

        Returns
        -------
        Any
            What the dataset makes; `Holes` around it where samples had to be left out.

        Raises
        ------
        ConfigError
            If the batch should say where it stands and is not a dict.
        AudioError
            If audio cannot be read or decoded and `FetchSpec.fault_tolerant` is off.
        GaveUpError
            If a disk or a network failed, and went on failing.
        PlayheadError, OSError
            If rows cannot be read.
        Exception
            Whatever the dataset raises, as it is.
        """
        try:
            batch = self._second_look(micro_batch)
        except Exception as error:
            add_note = getattr(error, "add_note", None)  # new in Python 3.11
            if add_note is not None:
                add_note(f"In step {micro_batch.step}, slot {micro_batch.slot}.")
            raise
        self.timings.batches += 1
        self.timings.samples += len(micro_batch.row)
        return batch

    def _second_look(self, micro_batch: MicroBatch) -> Any:
        """Make the batch; if audio is in the way, say which sample's, or do without it."""
        try:
            return self._made(micro_batch)
        except Exception as error:
            if not (self._with_audio and is_about_audio(error)):
                raise
            return self._without_bad(micro_batch, error)

    def _without_bad(self, micro_batch: MicroBatch, error: Exception) -> Any:
        """Make the batch of what can be decoded; the same call with the same keys."""
        examples = self._reader.read(micro_batch, with_audio=True)
        tags, channels = self._tags(micro_batch), self._channels(micro_batch)
        samples = [
            Sample(at, example, chosen(micro_batch, [at]), tags[at], channels[at])
            for at, example in enumerate(examples)
        ]
        bad: list[BadAudio] = []
        for number, find in enumerate(self._inspection.looks):
            try:
                found = find(samples)
            except PermissionError as forbidden:
                # Rights are no matter of the data.
                raise error from forbidden
            if found and not self.spec.fault_tolerant:
                raise found[0].error from error
            if number and not found:
                break
            bad = sorted([*bad, *found], key=lambda one: one.at)
            places = tuple(one.at for one in bad)
            samples = [sample for sample in samples if sample.at not in places]
            records = self._records(bad, micro_batch)
            if not samples:
                return Holes(None, records, places, empty=True)
            try:
                # If nothing was found, everything could be read by now: libsndfile and Lhotse take
                # an error of the disk for bad audio.
                batch = self._made(without(micro_batch, places), dropped=len(bad))
            except Exception as again:
                if not is_about_audio(again):
                    raise
                error = again
            else:
                return Holes(batch, records, places) if bad else batch
        raise error

    def _made(self, micro_batch: MicroBatch, dropped: int = 0) -> Any:
        def call() -> Any:
            return self._keyed(int(micro_batch.key), lambda: self._once(micro_batch, dropped))

        return with_retries(call)

    def _once(self, micro_batch: MicroBatch, dropped: int) -> Any:
        timings = self.timings
        begin, reading = time.perf_counter(), timings.read_seconds
        examples = self._reader.read(micro_batch, with_audio=self._with_audio)
        if self.spec.encoding is not None:
            encode(examples, self.spec.encoding, micro_batch.part.tolist(), self.spec.text_window)
        read = time.perf_counter()
        timings.parse_seconds += read - begin - (timings.read_seconds - reading)
        if self._takes_examples:
            batch, members = self._of_examples(examples, micro_batch)
        else:
            batch, members = self._of_cuts(examples, micro_batch)
        timings.dataset_seconds += time.perf_counter() - read
        if not (self.spec.info or self._takes_examples):
            return batch
        return _with_info(batch, BatchInfo.of(micro_batch, dropped=dropped, members=members))

    def _of_examples(self, examples: Sequence[Example], micro_batch: MicroBatch) -> _Made:
        keys, members = micro_batch.sample_keys, None
        if self._augmenter is not None:
            prepared = self._augmenter.of_examples(
                examples, micro_batch, self._tags(micro_batch), self._channels(micro_batch)
            )
            if self.spec.encoding is not None:
                _encode_joined(prepared, examples, self.spec.encoding)
            examples, members = prepared.examples, prepared.members
            keys = keys[[places[0] for places in members]]
        batch = self.dataset.collate(examples, sample_rate=self.spec.sample_rate, sample_keys=keys)
        return batch, members

    def _of_cuts(self, examples: Sequence[Example], micro_batch: MicroBatch) -> _Made:
        # Lhotse takes two seconds to import, which datasets of examples need not spend.
        from lhotse import CutSet  # noqa: PLC0415

        from playhead.fetch.backend import quick_audio_backend  # noqa: PLC0415
        from playhead.fetch.samples import samples_of  # noqa: PLC0415

        members: list[tuple[int, ...]] | None = None
        with quick_audio_backend():
            if self.spec.metadata_only:
                samples = self._without_audio(examples, micro_batch)
            else:
                samples, members = samples_of(examples, micro_batch, self.spec, self._augmenter)
            if self.spec.encoding is not None:
                _attach(samples, examples, members, self.spec.encoding)
            return self.dataset[CutSet(samples)], members

    def _without_audio(self, examples: Sequence[Example], micro_batch: MicroBatch) -> list[Any]:
        from playhead.fetch.samples import samples_without_audio  # noqa: PLC0415 - Lhotse, 2 s

        numbers = micro_batch.leaf.tolist()
        leaves = [self.spec.leaves[number] for number in numbers]
        packs = [self._reader.pack(number) for number in numbers]
        return samples_without_audio(examples, leaves, packs)

    def _tags(self, micro_batch: MicroBatch) -> list[Mapping[str, Any]]:
        return [self.spec.leaves[leaf].tags for leaf in micro_batch.leaf.tolist()]

    def _channels(self, micro_batch: MicroBatch) -> list[int | str | None]:
        leaves = self.spec.leaves
        return [leaves[leaf].options.channel_selector for leaf in micro_batch.leaf.tolist()]

    def _records(self, bad: Sequence[BadAudio], micro_batch: MicroBatch) -> tuple[BadSample, ...]:
        records: list[BadSample] = []
        for one in bad:
            number = int(micro_batch.leaf[one.at])
            pack, place = self._reader.pack(number), one.example.place
            records.append(
                BadSample(
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
            )
        return tuple(records)


def _encode_joined(prepared: Prepared, examples: Sequence[Example], encoding: Encoding) -> None:
    for example, places in zip(*prepared, strict=True):
        if len(places) > 1:
            members = [examples[at] for at in places]
            example.tokens = encode_joined(example, members, encoding).tokens


def _attach(
    cuts: Sequence[Any],
    examples: Sequence[Example],
    members: Sequence[tuple[int, ...]] | None,
    encoding: Encoding,
) -> None:
    for cut, places in zip(cuts, members or [(at,) for at in range(len(cuts))], strict=True):
        example = examples[places[0]]
        if len(places) > 1:
            texts = [one.text for one in cut.supervisions if one.text is not None]
            languages = [one.language for one in cut.supervisions if one.text is not None]
            example = replace(
                example,
                text=" ".join(texts) if texts else None,
                language=languages[0] if languages else None,
            )
            example = encode_joined(example, [examples[at] for at in places], encoding)
        attach_tokens(cut, example, encoding)


def _with_info(batch: Any, info: BatchInfo) -> Any:
    if not isinstance(batch, dict):
        raise ConfigError(
            f"info: true adds to a batch that is a dict, and the dataset made a "
            f"{type(batch).__name__}",
            fix="Return a dict from the dataset, or leave info out",
        )
    batch["playhead"] = info
    return batch
