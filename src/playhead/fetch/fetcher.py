"""From a micro-batch to a batch: what a worker process does."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from playhead.errors import AudioError, ConfigError
from playhead.fetch.info import BatchInfo
from playhead.fetch.randomness import KeyedCalls
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.fetch.waveforms import waveform

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.formats import Example
    from playhead.index.pack import PackRef
    from playhead.plan.batch import MicroBatch

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
        self._with_audio = not self._takes_examples or bool(dataset.reads_audio)

    def __reduce__(self) -> tuple[type[Fetcher], tuple[FetchSpec, Any]]:
        return type(self), (self.spec, self.dataset)

    def __call__(self, micro_batch: MicroBatch) -> Any:
        """Make the batch.

        Raises
        ------
        ConfigError
            If the batch should say where it stands and is not a dict.
        AudioError
            If audio cannot be read or decoded.
        PlayheadError, OSError
            If rows cannot be read.
        Exception
            Whatever the dataset raises, as it is.
        """
        try:
            batch = self._keyed(int(micro_batch.key), lambda: self._made(micro_batch))
        except Exception as error:
            add_note = getattr(error, "add_note", None)  # new in Python 3.11
            if add_note is not None:
                add_note(f"In step {micro_batch.step}, slot {micro_batch.slot}.")
            if _is_about_audio(error):
                self._find_bad_audio(micro_batch, error)
            raise
        self.timings.batches += 1
        self.timings.samples += len(micro_batch.row)
        return self._with_info(batch, micro_batch)

    def _made(self, micro_batch: MicroBatch) -> Any:
        timings = self.timings
        begin, reading = time.perf_counter(), timings.read_seconds
        examples = self._reader.read(micro_batch, with_audio=self._with_audio)
        read = time.perf_counter()
        timings.parse_seconds += read - begin - (timings.read_seconds - reading)
        if self._takes_examples:
            batch = self.dataset.collate(
                examples,
                sample_rate=self.spec.sample_rate,
                sample_keys=micro_batch.sample_keys,
            )
        else:
            batch = self._of_cuts(examples, micro_batch)
        timings.dataset_seconds += time.perf_counter() - read
        return batch

    def _of_cuts(self, examples: Sequence[Example], micro_batch: MicroBatch) -> Any:
        # Lhotse takes two seconds to import, which datasets of examples need not spend.
        from lhotse import CutSet  # noqa: PLC0415

        from playhead.fetch.backend import quick_audio_backend  # noqa: PLC0415
        from playhead.fetch.cuts import to_cut  # noqa: PLC0415

        cuts = [
            to_cut(example, self.spec.sample_rate, self.spec.leaves[leaf].tags)
            for example, leaf in zip(examples, micro_batch.leaf.tolist(), strict=True)
        ]
        with quick_audio_backend():
            return self.dataset[CutSet(cuts)]

    def _find_bad_audio(self, micro_batch: MicroBatch, error: Exception) -> None:
        """Raise an error that says which sample it is, if one cannot be decoded."""
        try:
            for example in self._reader.read(micro_batch, with_audio=True):
                waveform(example, self.spec.sample_rate)
        except AudioError as found:
            raise found from error

    def _with_info(self, batch: Any, micro_batch: MicroBatch) -> Any:
        if not (self.spec.info or self._takes_examples):
            return batch
        if not isinstance(batch, dict):
            raise ConfigError(
                f"info: true adds to a batch that is a dict, and the dataset made a "
                f"{type(batch).__name__}",
                fix="Return a dict from the dataset, or leave info out",
            )
        batch["playhead"] = BatchInfo.of(micro_batch)
        return batch


def _is_about_audio(error: BaseException) -> bool:
    """Whether Lhotse or libsndfile says so."""
    module = type(error).__module__
    return module.startswith("lhotse.audio") or module.partition(".")[0] == "soundfile"
