"""NeMo's datasets as Playhead calls them: with NeMo's classes, and without losing samples."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from playhead.errors import AudioError
from playhead.fetch.fetcher import ExampleDataset
from playhead.integrations.nemo.samples import to_nemo
from playhead.loader.modalities import modalities_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lhotse import CutSet

__all__ = ["for_nemo"]


def for_nemo(dataset: Any) -> Any:
    """Make of a dataset that NeMo was given what a loader of Playhead calls.

    Datasets of NeMo leave out what they cannot decode, and say so in a log alone; when nothing of
    a batch is left, `FallbackDataset` gives the batch before again, whichever that is in its
    worker. Here the loader hears of it: it names the sample, or leaves it out as
    `fault_tolerant_audio_loading` says, counted and listed.

    Parameters
    ----------
    dataset
        The dataset; it stays as it is.
    """
    if isinstance(dataset, ExampleDataset):
        return dataset
    if type(dataset).__name__ == "FallbackDataset":
        dataset = dataset.dataset
    strict = copy.copy(dataset)
    for name, value in vars(strict).copy().items():
        if getattr(value, "fault_tolerant", None) is True and callable(value):
            setattr(strict, name, _AllOrNothing(value))
    return _NemoDataset(strict)


class _NemoDataset:
    """A dataset that gets texts and conversations as NeMo's own classes."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.modalities = modalities_of(dataset)

    def __getitem__(self, cuts: CutSet) -> Any:
        from lhotse import CutSet  # noqa: PLC0415 - slow, and workers have it by now

        samples: Iterable[Any] = iter(cuts)
        batch = self.dataset[CutSet([to_nemo(sample) for sample in samples])]
        if batch is None:
            raise AudioError(
                f"{type(self.dataset).__name__} made nothing of a batch of {len(cuts)} samples",
                fix="Look at the warnings of NeMo above: they say why",
            )
        return batch


class _AllOrNothing:
    """What loads the audio of a batch for a dataset, and leaves nothing out of it."""

    def __init__(self, load: Any) -> None:
        self._load = load

    def __call__(self, cuts: CutSet, *args: Any, **options: Any) -> Any:
        loaded = self._load(cuts, *args, **options)
        # What leaves samples out says at the end which are left.
        left = len(loaded[-1])
        if left < len(cuts):
            raise AudioError(
                f"the audio of {len(cuts) - left} of {len(cuts)} samples cannot be loaded",
                fix="Look at the warnings of Lhotse above: they say which and why",
            )
        return loaded

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._load, name)
