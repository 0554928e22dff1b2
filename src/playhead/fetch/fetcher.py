"""From a micro-batch to a batch: what a worker process does."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from playhead.errors import ConfigError
from playhead.fetch.access_mode import AccessMode
from playhead.fetch.bad import Holes, chosen, is_about_audio, without
from playhead.fetch.info import BatchInfo
from playhead.fetch.preparer import Preparer
from playhead.fetch.randomness import KeyedCalls
from playhead.fetch.timings import Timings
from playhead.storage.retries import with_retries
from playhead.storage.shard_cache import CacheSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.fetch.augment import Augmentation
    from playhead.fetch.augment.noise import NoiseSpec
    from playhead.fetch.bad import BadAudio
    from playhead.fetch.inspection import Sample
    from playhead.formats import Example
    from playhead.index.pack import PackRef
    from playhead.plan.batch import MicroBatch
    from playhead.tokens.encoding import Encoding

__all__ = ["ExampleDataset", "FetchSpec", "Fetcher", "common_rate"]


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
    metadata_only: bool = False
    """Give what rows say, and no audio."""
    fault_tolerant: bool = False
    """Leave samples out whose audio cannot be used, rather than fail."""
    cache: CacheSettings = field(default_factory=CacheSettings)
    """Where shards are kept that are read from whole copies."""
    access: AccessMode = AccessMode.RANGES
    """How members of archives on AIStore are fetched."""
    formats: tuple[type, ...] = ()
    """Classes of input types that users registered: where they arrive, they are registered too."""


class _Share(NamedTuple):
    """What one part has in a batch; its samples stand together."""

    part: Preparer
    first: int
    """The place of its first sample in the batch."""
    micro_batch: MicroBatch
    """Its samples, with leaves as the part counts them."""


class Fetcher:
    """Makes batches of micro-batches; the same batch from the same micro-batch, wherever it runs.

    Parameters
    ----------
    spec
        Where samples come from.
    dataset
        An `ExampleDataset`, or any dataset whose ``dataset[cuts]`` makes a batch of a Lhotse
        `CutSet`. It is called once for a batch, whatever parts that is made of.
    *further
        Where samples come from of further parts: micro-batches count their leaves behind those of
        the parts before, and hold the samples of one part together.

    Attributes
    ----------
    timings
        Where the time of this process went.
    """

    def __init__(self, spec: FetchSpec, dataset: Any, *further: FetchSpec) -> None:
        self.spec = spec
        self.dataset = dataset
        self.timings = Timings()
        self._further = further
        self._keyed = KeyedCalls(dataset)
        self._takes_examples = isinstance(dataset, ExampleDataset)
        reads_audio = not self._takes_examples or bool(dataset.reads_audio)
        self._parts = [
            Preparer(
                one, self.timings, takes_examples=self._takes_examples, reads_audio=reads_audio
            )
            for one in (spec, *further)
        ]
        counts = [len(part.spec.leaves) for part in self._parts]
        self._first_leaves = np.cumsum([0, *counts[:-1]])

    @property
    def with_audio(self) -> list[bool]:
        """For each part whether its archives are read."""
        return [part.with_audio for part in self._parts]

    @property
    def is_fault_tolerant(self) -> bool:
        """Whether samples may be left out of a batch, which then comes as `Holes`."""
        return any(part.spec.fault_tolerant for part in self._parts)

    def __reduce__(self) -> tuple[type[Fetcher], tuple[Any, ...]]:
        return type(self), (self.spec, self.dataset, *self._further)

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

    def _shares(self, micro_batch: MicroBatch) -> list[_Share]:
        """What each part has in a batch, in the order of the batch."""
        if len(self._parts) == 1:
            return [_Share(self._parts[0], 0, micro_batch)]
        owner = np.searchsorted(self._first_leaves, micro_batch.leaf, side="right") - 1
        firsts = np.flatnonzero(np.diff(owner, prepend=-1))
        shares: list[_Share] = []
        for first, end in zip(firsts.tolist(), [*firsts[1:].tolist(), len(owner)], strict=True):
            number = int(owner[first])
            own = chosen(micro_batch, np.arange(first, end))
            own = replace(own, leaf=own.leaf - np.int32(self._first_leaves[number]))
            shares.append(_Share(self._parts[number], first, own))
        return shares

    def _second_look(self, micro_batch: MicroBatch) -> Any:
        """Make the batch; if audio is in the way, say which sample's, or do without it."""
        try:
            return self._made(micro_batch)
        except Exception as error:
            heard = any(share.part.with_audio for share in self._shares(micro_batch))
            if not (heard and is_about_audio(error)):
                raise
            return self._without_bad(micro_batch, error)

    def _without_bad(self, micro_batch: MicroBatch, error: Exception) -> Any:
        """Make the batch of what can be decoded; the same call with the same keys."""
        shares = [one for one in self._shares(micro_batch) if one.part.with_audio]
        samples = [one.part.one_by_one(one.micro_batch) for one in shares]
        bad: list[tuple[_Share, BadAudio]] = []
        for number in range(len(shares[0].part.looks)):
            found = self._found(shares, samples, number, error)
            if number and not found:
                break
            bad = sorted([*bad, *found], key=_place)
            places = tuple(map(_place, bad))
            samples = [
                [sample for sample in of_share if one.first + sample.at not in places]
                for one, of_share in zip(shares, samples, strict=True)
            ]
            records = tuple(one.part.record(found, one.micro_batch) for one, found in bad)
            if len(places) == len(micro_batch.row):
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

    def _found(
        self,
        shares: Sequence[_Share],
        samples: Sequence[Sequence[Sample]],
        number: int,
        error: Exception,
    ) -> list[tuple[_Share, BadAudio]]:
        """What one way of looking finds among all shares."""
        found: list[tuple[_Share, BadAudio]] = []
        for share, of_share in zip(shares, samples, strict=True):
            try:
                bad = share.part.looks[number](of_share)
            except PermissionError as forbidden:
                # Rights are no matter of the data.
                raise error from forbidden
            if bad and not share.part.spec.fault_tolerant:
                raise bad[0].error from error
            found += [(share, one) for one in bad]
        return found

    def _made(self, micro_batch: MicroBatch, dropped: int = 0) -> Any:
        def call() -> Any:
            return self._keyed(int(micro_batch.key), lambda: self._once(micro_batch, dropped))

        return with_retries(call)

    def _once(self, micro_batch: MicroBatch, dropped: int) -> Any:
        timings = self.timings
        begin, reading = time.perf_counter(), timings.read_seconds + timings.parse_seconds
        shares = self._shares(micro_batch)
        samples: list[Any] = []
        members: list[tuple[int, ...]] = []
        with self._backend():
            for share in shares:
                made = share.part.make(share.micro_batch)
                samples += made.samples
                members += [tuple(share.first + at for at in places) for places in made.members]
            batch = self._of_samples(samples, members, micro_batch, shares)
        spent = time.perf_counter() - begin
        timings.dataset_seconds += spent - (timings.read_seconds + timings.parse_seconds - reading)
        if not (self._takes_examples or any(share.part.spec.info for share in shares)):
            return batch
        return _with_info(batch, BatchInfo.of(micro_batch, dropped=dropped, members=members))

    def _backend(self) -> AbstractContextManager[None]:
        if self._takes_examples:
            return nullcontext()
        # Lhotse takes two seconds to import, which datasets of examples need not spend.
        from playhead.fetch.backend import quick_audio_backend  # noqa: PLC0415

        return quick_audio_backend()

    def _of_samples(
        self,
        samples: list[Any],
        members: Sequence[tuple[int, ...]],
        micro_batch: MicroBatch,
        shares: Sequence[_Share],
    ) -> Any:
        if not self._takes_examples:
            from lhotse import CutSet  # noqa: PLC0415 - as above

            return self.dataset[CutSet(samples)]
        return self.dataset.collate(
            samples,
            sample_rate=_rate(shares),
            sample_keys=micro_batch.sample_keys[[places[0] for places in members]],
        )


def _place(found: tuple[_Share, BadAudio]) -> int:
    share, bad = found
    return share.first + bad.at


def _rate(shares: Sequence[_Share]) -> int | None:
    """The rate that a batch is decoded at; where nothing is, any part's will do."""
    heard = [share.part.spec for share in shares if share.part.with_audio]
    return common_rate(heard) if heard else shares[0].part.spec.sample_rate


def common_rate(specs: Sequence[FetchSpec]) -> int | None:
    """The rate of the audio of a batch that several parts share: that of those that have audio.

    Raises
    ------
    ConfigError
        If they have several.
    """
    heard = [
        spec for spec in specs if any(leaf.kind in ("cut", "conversation") for leaf in spec.leaves)
    ]
    rates = list(dict.fromkeys(spec.sample_rate for spec in heard or specs))
    if len(rates) > 1:
        raise ConfigError(
            f"the parts of a batch have sample_rate {' and '.join(map(str, rates))}",
            where="; ".join(f"{spec.leaves[0].name}: {spec.sample_rate}" for spec in heard),
            fix="Give all parts that are zipped one sample_rate",
        )
    return rates[0]


def _with_info(batch: Any, info: BatchInfo) -> Any:
    if not isinstance(batch, dict):
        raise ConfigError(
            f"info: true adds to a batch that is a dict, and the dataset made a "
            f"{type(batch).__name__}",
            fix="Return a dict from the dataset, or leave info out",
        )
    batch["playhead"] = info
    return batch
