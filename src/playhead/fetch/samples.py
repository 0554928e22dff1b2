"""The samples of a batch as datasets of cuts get them: cuts, texts and conversations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.fetch.augment.batchwise import after
from playhead.fetch.bad import chosen
from playhead.fetch.conversations import to_sample
from playhead.fetch.cuts import to_cut
from playhead.fetch.inspection import check_turn
from playhead.fetch.metadata import metadata_cut, metadata_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.fetch.augment import Augmenter
    from playhead.fetch.fetcher import FetchSpec
    from playhead.formats import Example
    from playhead.index.pack import LeafPack
    from playhead.plan.batch import MicroBatch

__all__ = ["Samples", "samples_of", "samples_without_audio"]


class Samples(NamedTuple):
    """What a dataset of cuts gets."""

    samples: list[Any]
    """Cuts, texts and conversations."""
    members: list[tuple[int, ...]] | None
    """Of which places in the batch each was made; None where each is its own."""


def samples_of(
    examples: Sequence[Example],
    micro_batch: MicroBatch,
    spec: FetchSpec,
    augmenter: Augmenter | None,
) -> Samples:
    """Make the samples of a batch; audio stays encoded until it is loaded.

    Augmentation treats stretches of audio; texts and the turns of conversations it leaves alone.

    Parameters
    ----------
    examples
        The samples as they were read.
    micro_batch
        What the plan says of them.
    spec
        Where they come from.
    augmenter
        What augments; None leaves all audio as it is.

    Raises
    ------
    AudioError, ManifestError
        If a sample cannot be used.
    """
    leaves = [spec.leaves[leaf] for leaf in micro_batch.leaf.tolist()]
    heard = [at for at, example in enumerate(examples) if example.kind == "cut"]
    made: list[Any] = [None] * len(examples)
    if augmenter is None:
        cuts = [_cut(examples[at], leaves[at], spec) for at in heard]
    else:
        cuts = augmenter.prepare(
            [examples[at] for at in heard],
            chosen(micro_batch, heard),
            [leaves[at].tags for at in heard],
            [leaves[at].options.channel_selector for at in heard],
        )
    for at, cut in zip(heard, cuts, strict=True):
        made[at] = cut
    for at, (example, leaf) in enumerate(zip(examples, leaves, strict=True)):
        if example.kind != "cut":
            made[at] = _written(example, leaf, partial(_turn, leaf=leaf, spec=spec))
    if augmenter is None or not augmenter.augmentation.is_batchwise:
        return Samples(made, None)
    joined = after(made, micro_batch.sample_keys.tolist(), augmenter.augmentation)
    return Samples([one.cut for one in joined], [one.members for one in joined])


def samples_without_audio(
    examples: Sequence[Example], leaves: Sequence[Leaf], packs: Sequence[LeafPack]
) -> list[Any]:
    """Make samples that say what rows say, over recordings that cannot be loaded.

    Parameters
    ----------
    examples
        The samples, read without audio.
    leaves, packs
        Of each its leaf, and the columns of that.
    """
    return [
        metadata_cut(example, pack, leaf.tags)
        if example.kind == "cut"
        else _written(example, leaf, metadata_turns(example, pack))
        for example, leaf, pack in zip(examples, leaves, packs, strict=True)
    ]


def _cut(example: Example, leaf: Leaf, spec: FetchSpec) -> Any:
    return to_cut(example, spec.sample_rate, leaf.tags, leaf.options.channel_selector)


def _turn(example: Example, leaf: Leaf, spec: FetchSpec) -> Any:
    check_turn(example)
    return to_cut(example, spec.sample_rate, {}, leaf.options.channel_selector)


def _written(example: Example, leaf: Leaf, make_cut: Callable[[Example], Any]) -> Any:
    return to_sample(example, leaf.tags, make_cut, leaf.options.token_equivalent_duration)
