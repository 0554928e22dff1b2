"""What a model of speech and text is trained on: token ids, what is learnt of them, and audio."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from playhead.errors import ConfigError, ManifestError
from playhead.fetch.waveforms import pad_waveforms
from playhead.formats.example import audio_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.formats import Example

__all__ = ["NO_LOCATOR", "SpokenText", "Stretch", "pad_stretches", "spoken_text", "stretches_of"]

NO_LOCATOR = -1
"""Where audio stands in a text that has no tag for it: before all of it."""


class Stretch(NamedTuple):
    """A stretch of audio of a batch."""

    sample: int
    """Which sample it belongs to."""
    turn: int
    """Which of the stretches of that sample it is, from 0."""
    audio: Example
    """The audio."""


class SpokenText(NamedTuple):
    """The tokens of a sample."""

    ids: Sequence[int]
    """All of them."""
    learnt: Sequence[bool]
    """True where a model is to learn the token: in what answers."""
    audio_at: list[int]
    """Where each stretch of its audio stands in `ids`; `NO_LOCATOR` where nothing marks it."""


def spoken_text(example: Example, audio_locator: int | None) -> SpokenText:
    """Return the tokens of a sample.

    Without a prompt format all tokens are learnt; of a pair those of its target.

    Parameters
    ----------
    example
        The sample, with its tokens.
    audio_locator
        The token that stands for a stretch of audio; None where none does.

    Raises
    ------
    ConfigError
        If there is no tokenizer.
    ManifestError
        If the text does not have one such token for each stretch of audio.
    """
    tokens = example.tokens
    if "input_ids" in tokens:
        ids = tokens["input_ids"]
        learnt = tokens["mask"] if "mask" in tokens else [False] * len(ids)
    elif "tokens" in tokens:
        ids = tokens["tokens"]
        answer = len(tokens.get("answer_tokens", ids))
        learnt = [False] * (len(ids) - answer) + [True] * answer
    else:
        raise ConfigError(
            "samples have no tokens for the dataset", fix="Give dataloader(…, tokenizer=…)"
        )
    return SpokenText(ids, learnt, _audio_at(example, ids, audio_locator))


def stretches_of(examples: Sequence[Example]) -> list[Stretch]:
    """Return all audio of a batch: what samples are, and their spoken turns, in order."""
    return [
        Stretch(number, turn, audio)
        for number, example in enumerate(examples)
        for turn, audio in enumerate(_audio_of(example))
    ]


def pad_stretches(
    stretches: Sequence[Stretch], sample_rate: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Decode all audio of a batch, which may have none, as `pad_waveforms` does."""
    if not stretches:
        return torch.zeros(0, 0, dtype=torch.float32), torch.zeros(0, dtype=torch.int64)
    return pad_waveforms([one.audio for one in stretches], sample_rate)


def _audio_of(example: Example) -> list[Example]:
    if example.kind == "cut":
        return [example]
    return [turn.audio for turn in audio_turns(example) if turn.audio is not None]


def _audio_at(example: Example, ids: Sequence[int], audio_locator: int | None) -> list[int]:
    count = len(_audio_of(example))
    found = [at for at, token in enumerate(ids) if token == audio_locator]
    if len(found) == count:
        return found
    if not found and (audio_locator is None or example.kind == "cut"):
        return [NO_LOCATOR] * count
    raise ManifestError(
        f"the text has the token {audio_locator} that stands for audio {len(found)} times, and the"
        f" sample has {count} stretches of audio",
        where=str(example.place),
        fix="Give the dataset the token of audio_locator_tag, and keep that out of the texts",
    )
