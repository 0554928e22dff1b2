"""How many tokens audio takes in a blend that is measured in tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.audio_tokens import AudioTokens
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.config import Options
    from playhead.index.pack import LeafPack

__all__ = ["audio_tokens_of"]

_US = 1_000_000
# Where there is no audio, any rule gives the same lengths.
_NO_AUDIO = AudioTokens.of_duration(_US)


def audio_tokens_of(
    options: Options, leaves: Sequence[Leaf], packs: Sequence[LeafPack]
) -> AudioTokens:
    """Return how many tokens audio takes.

    `audio_token_estimator` wins over `token_equivalent_duration`; the latter may stand in entries
    alone, as long as it is the same in all of them.

    Parameters
    ----------
    options
        The options of the section.
    leaves, packs
        The leaves and their columns.

    Raises
    ------
    ConfigError
        When there is audio and nothing says how many tokens it takes, or two entries differ.
    """
    if options.audio_token_estimator is not None:
        return AudioTokens.of_estimator(options.audio_token_estimator, options.sample_rate)
    given = [(options, "the section"), *((leaf.options, leaf.name) for leaf in leaves)]
    said: dict[float, str] = {}
    for one, name in given:
        if one.token_equivalent_duration is not None:
            said.setdefault(one.token_equivalent_duration, name)
    if len(said) > 1:
        raise ConfigError(
            "token_equivalent_duration is "
            + " and ".join(f"{seconds:g} in {name}" for seconds, name in sorted(said.items())),
            fix="Set one for the whole section",
        )
    for seconds in said:
        return AudioTokens.of_duration(round(seconds * _US))
    for leaf, pack in zip(leaves, packs, strict=True):
        if leaf.kind == "cut" or bool((pack.duration_us > 0).any()):
            raise ConfigError(
                f"leaf {leaf.name} has audio, and nothing says how many tokens that takes",
                fix="Set token_equivalent_duration, the seconds that a token of audio stands for"
                " (such as 0.08), or audio_token_estimator",
            )
    return _NO_AUDIO
