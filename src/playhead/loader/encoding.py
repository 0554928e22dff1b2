"""From the tokenizer that a caller gives to what makes tokens of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.loader.settings import measures_tokens, needs_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.audio_tokens import AudioTokens
    from playhead.config import Options
    from playhead.tokens.encoding import Encoding

__all__ = ["encoding_of"]


def encoding_of(
    tokenizer: Any,
    options: Options,
    audio: AudioTokens | None = None,
    *,
    say: Callable[[str], None],
) -> Encoding | None:
    """Return what makes tokens of samples; None where nothing does.

    Without a tokenizer, or with `pretokenize: false`, filters on tokens have no effect, as in NeMo,
    and people are told.

    Parameters
    ----------
    tokenizer
        What the caller gave.
    options
        The options of the section.
    audio
        How many tokens audio takes, where samples are measured in tokens.
    say
        Told what has no effect, in a sentence.

    Raises
    ------
    ConfigError
        When the tokenizer cannot be used, or samples cannot be measured without one.
    """
    if tokenizer is not None and options.pretokenize:
        # Libraries are imported where a tokenizer is really used.
        from playhead.tokens.encoding import Encoding  # noqa: PLC0415
        from playhead.tokens.tokenizer import load_tokenizer  # noqa: PLC0415

        return Encoding(load_tokenizer(tokenizer), options.prompt_format, audio=audio)
    why = "there is no tokenizer" if options.pretokenize else "pretokenize is false"
    if any(isinstance(edge, tuple) for edge in options.bucket_duration_bins or ()):
        raise ConfigError(
            f"bucket_duration_bins has two dimensions and {why}",
            fix="Give dataloader(…, tokenizer=…), or bins of durations alone",
        )
    if measures_tokens(options):
        raise ConfigError(
            f"samples are measured in tokens and {why}",
            fix="Give dataloader(…, tokenizer=…), or take use_multimodal_sampling and the limits in"
            " tokens out",
        )
    idle = ["min_tps or max_tps"] if needs_tokens(options) else []
    idle += ["prompt_format"] if options.prompt_format is not None else []
    if idle:
        say(f"{' and '.join(idle)}: no effect, as {why}")
    return None
