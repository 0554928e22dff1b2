"""Whether a dataset can take what a blend holds, said before anything is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.fetch.fetcher import ExampleDataset, common_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Kind, Leaf
    from playhead.fetch.fetcher import FetchSpec

__all__ = ["MODALITIES", "check_locators", "check_modalities", "check_rates", "modalities_of"]

MODALITIES = frozenset({"audio", "text", "conversation"})
"""What a dataset may declare that it takes."""

_OF_KIND: dict[Kind, str] = {
    "cut": "audio",
    "text": "text",
    "pair": "text",
    "sft": "conversation",
    "messages": "conversation",
    "conversation": "conversation",
}
_NAMES = {
    "audio": "stretches of audio",
    "text": "texts",
    "conversation": "conversations",
}
# Lhotse's own datasets look at supervisions and features of cuts.
_AUDIO_ALONE = "lhotse.dataset."


def modalities_of(dataset: Any) -> frozenset[str]:
    """What a dataset takes: what it declares, everything where it says nothing.

    Those that come with Lhotse take audio alone.

    Parameters
    ----------
    dataset
        A dataset; its attribute `modalities` is a set of `audio`, `text` and `conversation`.

    Raises
    ------
    ConfigError
        When it declares something else.

    Examples
    --------
    >>> sorted(modalities_of(object()))
    ['audio', 'conversation', 'text']
    """
    declared = getattr(dataset, "modalities", None)
    if declared is None:
        is_lhotse = f"{type(dataset).__module__}.".startswith(_AUDIO_ALONE)
        return frozenset({"audio"}) if is_lhotse else MODALITIES
    try:
        named = {declared} if isinstance(declared, str) else set(declared)
    except TypeError:
        # No collection, or one of collections.
        named = {str(declared)}
    if not named <= MODALITIES:
        strange = ", ".join(sorted(map(repr, named - MODALITIES)))
        raise ConfigError(
            f"the dataset {type(dataset).__name__} declares the modalities {strange}",
            fix=f"Use some of {', '.join(sorted(MODALITIES))}",
        )
    return frozenset(named)


def check_modalities(dataset: Any, leaves: Sequence[Leaf]) -> None:
    """Refuse a blend of which the dataset cannot take every part.

    Parameters
    ----------
    dataset
        What will make the batches.
    leaves
        All sources of samples.

    Raises
    ------
    ConfigError
        Naming the dataset, the first source that it cannot take, and what that holds.
    """
    taken = modalities_of(dataset)
    for leaf in leaves:
        needed = _OF_KIND[leaf.kind]
        if needed not in taken:
            raise ConfigError(
                f"the dataset {type(dataset).__name__} takes"
                f" {' and '.join(_NAMES[name] for name in sorted(taken)) or 'nothing'}, and leaf"
                f" {leaf.name} ({leaf.type}) holds {_NAMES[needed]} (modality {needed!r})",
                fix="Use a dataset that takes them, such as playhead.datasets.SpeechLanguage, or"
                f" add {needed!r} to its `modalities` if it does",
            )


def check_locators(dataset: Any, specs: Sequence[FetchSpec]) -> None:
    """Refuse a dataset that looks for audio at another token than its tag has.

    Parameters
    ----------
    dataset
        What will make the batches; its attribute `audio_locator`, if it has one, is the token.
    specs
        The parts that batches come from.

    Raises
    ------
    ConfigError
        Naming the tag, its token and the dataset's.
    """
    wanted = getattr(dataset, "audio_locator", None)
    if wanted is None:
        return
    for spec in specs:
        if spec.encoding is None:
            continue
        tokenizer = spec.encoding.tokenizer
        for leaf in spec.leaves:
            tag = leaf.options.audio_locator_tag
            if tag is None or leaf.kind != "conversation":
                continue
            found = tokenizer.token_id(tag)
            if found is None:
                raise ConfigError(
                    f"the dataset {type(dataset).__name__} looks for audio at one token, and"
                    f" audio_locator_tag {tag!r} is none of the tokenizer",
                    fix="Use a tag that is a token of its own, or add it to the tokenizer",
                )
            if found != wanted:
                raise ConfigError(
                    f"the dataset {type(dataset).__name__} looks for audio at the token {wanted!r},"
                    f" and audio_locator_tag {tag!r} is the token {found}",
                    fix=f"Give it audio_locator={found}",
                )


def check_rates(dataset: Any, specs: Sequence[FetchSpec]) -> None:
    """Refuse to join samples of several rates in one batch where the dataset decodes at one.

    Datasets of cuts get each cut at its part's rate.

    Parameters
    ----------
    dataset
        What will make the batches.
    specs
        The parts that a batch is joined from.

    Raises
    ------
    ConfigError
        Naming the parts and their rates.
    """
    if isinstance(dataset, ExampleDataset) and dataset.reads_audio:
        common_rate(specs)
