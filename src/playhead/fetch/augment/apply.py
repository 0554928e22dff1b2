"""Augmentation of a batch: what the plan decided, and what each sample's key draws."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import ManifestError
from playhead.fetch.augment.speed import NORMAL, change_speed
from playhead.fetch.augment.stretch import take_of_example, take_stretch, window_id
from playhead.fetch.bad import chosen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from lhotse import CutSet
    from lhotse.cut import Cut
    from numpy.typing import NDArray

    from playhead.fetch.augment.noise import Noise, NoiseDraw, NoiseSpec
    from playhead.fetch.augment.settings import Augmentation
    from playhead.formats import Example
    from playhead.plan.batch import MicroBatch

__all__ = ["Augmenter", "Prepared"]

_NEEDS_AUDIO = "Attach its recording, or leave augmentation of audio out"


class _Item(NamedTuple):
    """One sample's share of what the plan decided."""

    key: int
    part: int
    speed: int
    start_us: int
    span_us: int


class Prepared(NamedTuple):
    """The samples of a batch for a dataset of examples."""

    examples: list[Example]
    """Those samples; joined ones are one, whose `cut` says what is heard."""
    members: list[tuple[int, ...]]
    """For each the places in the batch that it came from."""


class Augmenter:
    """Augments samples; the same for the same key, in whatever batch, process or order.

    Parameters
    ----------
    augmentation
        What to do.
    noise
        Where noise comes from; None where there is none.
    sample_rate
        The rate in Hz that audio is resampled to; None keeps each file's own.
    """

    def __init__(
        self, augmentation: Augmentation, noise: NoiseSpec | None, sample_rate: int | None
    ) -> None:
        self.augmentation = augmentation
        self.noise = noise
        self.sample_rate = sample_rate
        self._noise: Noise | None = None

    def __reduce__(self) -> tuple[type[Augmenter], tuple[Any, ...]]:
        return type(self), (self.augmentation, self.noise, self.sample_rate)

    def prepare(
        self,
        examples: Sequence[Example],
        micro_batch: MicroBatch,
        tags: Sequence[Mapping[str, Any]],
        channels: Sequence[int | str | None] | None = None,
    ) -> list[Cut]:
        """Make the cuts of samples that are audio, after all that is done to single samples.

        In this order: channel, rate, noise, speed, stretch, padding. A cut keeps the id of its
        sample; a window has its number behind it, as Lhotse names windows.

        Parameters
        ----------
        examples
            The samples.
        micro_batch
            What they are: their keys, and what the plan decided of each.
        tags
            For each sample what becomes an attribute of its cut.
        channels
            For each sample the `channel_selector` of its leaf; None is none for all.

        Raises
        ------
        AudioError, ManifestError
            If a sample, or the noise that is mixed into it, cannot be used.
        """
        from playhead.fetch.augment.recordings import keyed_ids  # noqa: PLC0415 - Lhotse, 2 s
        from playhead.fetch.cuts import to_cut  # noqa: PLC0415 - same
        from playhead.fetch.resampling import resample_cut  # noqa: PLC0415 - same

        items = _items_of(micro_batch)
        selected = channels or [None] * len(examples)
        cuts: list[Cut] = []
        lengths: list[int] = []
        for example, item, tag, channel in zip(examples, items, tags, selected, strict=True):
            with keyed_ids(item.key):
                cut = to_cut(example, None, tag, channel)
            if not (cut.has_recording or self.augmentation.only_stretches):
                raise ManifestError(
                    "the cut has no recording to augment",
                    where=str(example.place),
                    fix=_NEEDS_AUDIO,
                )
            lengths.append(round(cut.duration * 1_000_000))
            cuts.append(cut if self.sample_rate is None else resample_cut(cut, self.sample_rate))
        cuts = self._with_noise(cuts, items)
        facts = zip(cuts, lengths, items, tags, strict=True)
        return [self._shaped(*fact) for fact in facts]

    def after(self, cuts: Sequence[Cut], sample_keys: Sequence[int] | NDArray[np.uint64]) -> CutSet:
        """Make of prepared cuts what the dataset is given: joined, filtered, clipped and so on.

        Parameters
        ----------
        cuts
            What `prepare` made.
        sample_keys
            Their keys.
        """
        from lhotse import CutSet  # noqa: PLC0415 - 2 s

        if not self.augmentation.is_batchwise:
            return CutSet(list(cuts))
        from playhead.fetch.augment.batchwise import after  # noqa: PLC0415 - Lhotse, 2 s

        keys = [int(key) for key in sample_keys]
        return CutSet([joined.cut for joined in after(list(cuts), keys, self.augmentation)])

    def of_examples(
        self,
        examples: Sequence[Example],
        micro_batch: MicroBatch,
        tags: Sequence[Mapping[str, Any]],
        channels: Sequence[int | str | None] | None = None,
    ) -> Prepared:
        """Augment samples for a dataset of examples.

        Where only stretches are taken of files, they are taken of `Example.audio`, and Lhotse is
        not needed; else `Example.cut` is set, and `waveform` and `pad_waveforms` use it. Samples
        that are joined become one: its id and text are those of the joined cut, all else is the
        first one's.

        Parameters
        ----------
        examples, micro_batch, tags, channels
            As for `prepare`.
        """
        if self._is_fast(examples):
            fast = [
                self._stretched(example, item)
                for example, item in zip(examples, _items_of(micro_batch), strict=True)
            ]
            return Prepared(fast, [(place,) for place in range(len(fast))])
        from playhead.fetch.augment.batchwise import after  # noqa: PLC0415 - Lhotse, 2 s

        # What is not audio stays as it is: its place is taken by itself.
        samples: list[Any] = list(examples)
        heard = [at for at, example in enumerate(examples) if example.kind == "cut"]
        cuts = self.prepare(
            [examples[at] for at in heard],
            chosen(micro_batch, heard),
            [tags[at] for at in heard],
            None if channels is None else [channels[at] for at in heard],
        )
        for at, cut in zip(heard, cuts, strict=True):
            samples[at] = cut
        keys = [int(key) for key in micro_batch.sample_keys]
        joined = after(samples, keys, self.augmentation)
        taken: list[Any] = [
            _with_cut(examples[members[0]], one) if examples[members[0]].kind == "cut" else one
            for one, members in joined
        ]
        return Prepared(taken, [members for _, members in joined])

    def _is_fast(self, examples: Sequence[Example]) -> bool:
        return (
            self.augmentation.only_stretches
            and self.sample_rate is not None
            and all(
                example.kind != "cut" or (example.audio is not None and not example.cut_steps)
                for example in examples
            )
        )

    def _stretched(self, example: Example, item: _Item) -> Example:
        if example.kind != "cut":
            return example
        assert self.sample_rate is not None
        taken = take_of_example(
            example,
            item.start_us,
            item.span_us,
            self.sample_rate,
            keep_excessive=self.augmentation.keep_excessive_supervisions,
        )
        return (
            taken
            if self.augmentation.cut_into_windows_duration is None
            else replace(taken, id=window_id(taken.id, item.part))
        )

    def _with_noise(self, cuts: list[Cut], items: Sequence[_Item]) -> list[Cut]:
        if self.noise is None:
            return cuts
        from playhead.fetch.augment.noise import Noise, mix_noise  # noqa: PLC0415 - Lhotse, 2 s
        from playhead.fetch.augment.recordings import keyed_ids  # noqa: PLC0415 - same

        if self._noise is None:
            self._noise = Noise(self.noise)
        places = [_heard(cut, item) for cut, item in zip(cuts, items, strict=True)]
        draws: list[NoiseDraw | None] = []
        for cut, item, place in zip(cuts, items, places, strict=True):
            length = (place.stop - place.start) * 1_000_000 // cut.sampling_rate
            draws.append(self._noise.draw(item.key, length, self.augmentation))
        mixed: list[Cut] = []
        read = self._noise.read(draws)
        for cut, item, place, draw, found in zip(cuts, items, places, draws, read, strict=True):
            if draw is None:
                mixed.append(cut)
                continue
            with keyed_ids(item.key):
                noises = [_noise_cut(example, cut.sampling_rate) for example in found]
                mixed.append(mix_noise(cut, draw, noises, item.key, place))
        return mixed

    def _shaped(self, cut: Cut, whole_us: int, item: _Item, tags: Mapping[str, Any]) -> Cut:
        from lhotse.cut import MixedCut, PaddingCut  # noqa: PLC0415 - Lhotse, 2 s

        from playhead.fetch.augment.padding import pad_cut  # noqa: PLC0415 - same
        from playhead.fetch.augment.recordings import keyed_ids  # noqa: PLC0415 - same

        settings = self.augmentation
        with keyed_ids(item.key):
            shaped = change_speed(cut, item.speed, whole_us)
            shaped = take_stretch(
                shaped,
                item.start_us,
                item.span_us,
                keep_excessive=settings.keep_excessive_supervisions,
            )
            if settings.cut_into_windows_duration is not None:
                shaped = shaped.with_id(window_id(shaped.id, item.part))
            if settings.pad_min_duration is not None:
                shaped = pad_cut(
                    shaped, settings.pad_min_duration, settings.pad_direction, item.key
                )
        if isinstance(cut, MixedCut) and not isinstance(shaped, PaddingCut):
            # They stand with the first track, which may be gone.
            for name, value in tags.items():
                setattr(shaped, name, value)
        return shaped


def _items_of(micro_batch: MicroBatch) -> list[_Item]:
    size = len(micro_batch.row)
    speed, start, span = micro_batch.speed, micro_batch.start_us, micro_batch.span_us
    columns = (
        micro_batch.sample_keys.tolist(),
        micro_batch.part.tolist(),
        [NORMAL] * size if speed is None else speed.tolist(),
        [0] * size if start is None else start.tolist(),
        [-1] * size if span is None else span.tolist(),
    )
    return [_Item(*facts) for facts in zip(*columns, strict=True)]


def _heard(cut: Any, item: _Item) -> slice:
    """Find the samples of a cut that are left after speed and stretch: noise belongs there."""
    whole: int = cut.num_samples
    rate: int = cut.sampling_rate
    first = item.start_us * item.speed * rate // (1_000_000 * NORMAL)
    if item.span_us < 0:
        return slice(min(first, whole), whole)
    end = (item.start_us + item.span_us) * item.speed * rate // (1_000_000 * NORMAL) + 1
    return slice(min(first, whole), min(end, whole))


def _noise_cut(example: Example, rate: int) -> Cut:
    from playhead.fetch.cuts import select_channel, to_cut  # noqa: PLC0415 - Lhotse, 2 s

    return select_channel(to_cut(example, rate, {}), 0, example.place)


def _with_cut(example: Example, cut: Cut) -> Example:
    texts = [one.text for one in cut.supervisions if one.text is not None]
    return replace(example, id=cut.id, text=" ".join(texts) if texts else None, audio=None, cut=cut)
