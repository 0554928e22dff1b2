"""The columns of the data that bins are made of, opened as training would."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.blend.several import read_blends
from playhead.errors import ConfigError
from playhead.loader.opened import open_packs, planning_of, sides_of, tokens_of
from playhead.loader.row_facts import Asked
from playhead.tokens.fields import FieldFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.blend import Blend
    from playhead.config import Options
    from playhead.plan.columns import LeafColumns
    from playhead.plan.settings import Shape

__all__ = ["Opened", "Reading", "open_data"]

_TOKEN_SECONDS = 0.08
_OLD_BINS = ("bucket_duration_bins", "bucket_batch_size")
_OF_TOKENS = ("min_tokens", "max_tokens", "min_tpt", "max_tpt")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How the data of bins are read."""

    in_tokens: bool = False
    """Whether samples are measured in tokens."""
    two_lengths: bool = False
    """Whether bins are of two lengths."""
    tokenizer: Any = None
    """What makes tokens of texts; None where nothing does."""
    slots: Mapping[str, str] | None = None
    """Fields that the prompt of every sample has."""
    section: str | None = None
    """Which section of a training config; its training section if None."""
    data_blend_dir: str | None = None
    """What `${data_blend_dir}` stands for."""
    overrides: Mapping[str, Any] | None = None
    """Options that win over those of the config."""


class Opened(NamedTuple):
    """Data that bins can be made of."""

    leaves: tuple[LeafColumns, ...]
    """The columns of its leaves."""
    shape: Shape
    """What becomes of their rows, and the filters."""
    options: Options
    """The options that lengths depend on."""
    section: str | None
    """What the section is called; None for data that stand alone."""


def open_data(config: Any, reading: Reading, say: Callable[[str], None]) -> Opened:
    """Open the columns of a config; build what is missing, and count tokens where they matter.

    Parameters
    ----------
    config
        A YAML path, a section or a list of entries.
    reading
        How it is read.
    say
        Told what people should know, in a sentence.

    Raises
    ------
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    if (reading.in_tokens or reading.two_lengths) and reading.tokenizer is None:
        raise ConfigError("nothing counts tokens, which these bins need", fix="Give --tokenizer")
    blend = _read(config, reading)
    for note in blend.notes:
        # What becomes of samples with the bins that are to be replaced is nobody's concern.
        if not any(name in note for name in _OLD_BINS):
            say(note)
    blend = replace(blend, options=_measured(blend, reading, say))
    if reading.slots:
        tagged = [replace(leaf, tags={**leaf.tags, **reading.slots}) for leaf in blend.leaves]
        blend = replace(blend, leaves=tuple(tagged))
    packs = open_packs(blend, config)
    encoding = tokens_of(blend, packs, reading.tokenizer, say=say)
    asked = Asked(encoding=encoding, fields=FieldFilter.from_options(blend.options))
    planning = planning_of(blend, packs, sides_of(blend, packs, asked), asked, 1)
    return Opened(tuple(planning.leaves), planning.shape, blend.options, blend.section)


def _read(config: Any, reading: Reading) -> Blend:
    blends = read_blends(
        config,
        section=reading.section,
        overrides={
            **dict.fromkeys(_OLD_BINS),
            **({"use_multimodal_sampling": True} if reading.in_tokens else {}),
            **(reading.overrides or {}),
        },
        data_blend_dir=reading.data_blend_dir,
    )
    if len(blends.parts) > 1:
        raise ConfigError(
            f"the section has {len(blends.parts)} blends, and each has bins of its own:"
            f" {', '.join(blends.parts)}",
            fix="Choose one with --section",
        )
    return next(iter(blends.parts.values()))


def _measured(blend: Blend, reading: Reading, say: Callable[[str], None]) -> Options:
    """The options of a section, without what batches are limited by, and with what is measured."""
    options = replace(
        blend.options,
        use_bucketing=False,
        batch_size=1,
        batch_duration=None,
        quadratic_duration=None,
        batch_tokens=None,
        quadratic_factor=None,
        use_packed_sequence_sampling=False,
        use_multimodal_sampling=reading.in_tokens,
        pretokenize=True,
    )
    # A list has a ratio for each of the old bins.
    for name in ("max_tps", "max_tpt"):
        if isinstance(getattr(options, name), tuple):
            options = replace(options, **{name: None})
    if reading.tokenizer is None:
        usual = {name: type(options).__dataclass_fields__[name].default for name in _OF_TOKENS}
        given = [name for name in _OF_TOKENS if getattr(options, name) not in (None, usual[name])]
        if given:
            say(f"{' and '.join(given)}: not looked at, as there is no tokenizer")
            options = replace(options, **dict.fromkeys(given))
    said = (options, *(leaf.options for leaf in blend.leaves))
    nowhere = all(one.token_equivalent_duration is None for one in said)
    if reading.in_tokens and options.audio_token_estimator is None and nowhere:
        say(f"token_equivalent_duration is {_TOKEN_SECONDS}, as nothing else is said")
        options = replace(options, token_equivalent_duration=_TOKEN_SECONDS)
    return options
