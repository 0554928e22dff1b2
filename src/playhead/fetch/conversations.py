"""Texts and conversations as datasets of cuts get them, among the cuts of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from playhead.formats.example import turns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch
    from lhotse.cut import Cut

    from playhead.formats import Example

    Sample: TypeAlias = "Cut | Written"

__all__ = [
    "AudioTurn",
    "Conversation",
    "TextPair",
    "TextSample",
    "TextTurn",
    "Written",
    "to_sample",
]


@dataclass(kw_only=True)
class Written:
    """A sample that is no cut, with what the tokenizer makes of it.

    Its custom fields are attributes too, as those of cuts are.
    """

    id: str
    """What it is called."""
    custom: dict[str, Any] = field(default_factory=dict[str, Any])
    """All other fields of its row, and the tags of its leaf."""
    tokens: Any = None
    """Its tokens, int64 of shape (U,), where there is no prompt format."""
    input_ids: torch.Tensor | None = None
    """All tokens that the prompt format makes of it, int64 of shape (U,)."""
    context_ids: torch.Tensor | None = None
    """Those before the answer."""
    answer_ids: torch.Tensor | None = None
    """Those of the answer."""
    mask: torch.Tensor | None = None
    """True where `input_ids` is an answer, bool of shape (U,)."""
    input_length: int | None = None
    """Tokens before the answer, audio counted in."""
    output_length: int | None = None
    """Tokens of the answer, audio counted in."""
    total_length: int | None = None
    """All tokens, audio counted in."""
    num_tokens: int | None = None
    """The same."""

    def __getattr__(self, name: str) -> Any:
        custom = self.__dict__.get("custom") or {}
        if name in custom:
            return custom[name]
        message = f"{type(self).__name__} has no attribute {name!r}"
        raise AttributeError(message)


@dataclass(kw_only=True)
class TextSample(Written):
    """A text."""

    text: str
    """The text."""
    language: str | None = None
    """Its language."""


@dataclass(kw_only=True)
class TextPair(Written):
    """A text, and what answers it."""

    source: TextSample
    """What is asked."""
    target: TextSample
    """What answers."""
    question: TextSample | None = None
    """What stands before the source."""


@dataclass(kw_only=True)
class TextTurn:
    """A turn that is written."""

    value: str
    """What is written."""
    role: str
    """Who: `user`, `assistant`, `system` or `tool`."""


@dataclass(kw_only=True)
class AudioTurn:
    """A turn that is spoken."""

    cut: Cut
    """Its audio."""
    role: str
    """Who: `user`, `assistant`, `system` or `tool`."""
    audio_locator_tag: str
    """What stands for the audio in the prompt."""
    text: str | None = None
    """Its transcript."""


@dataclass(kw_only=True)
class Conversation(Written):
    """Turns that are written or spoken."""

    language: str | None = None
    """Its language, where its row or its source says one."""
    turns: list[TextTurn | AudioTurn]
    """The turns, in order."""
    token_equivalent_duration: float | None = None
    """Seconds of audio that take the room of one token."""

    @property
    def has_audio_turns(self) -> bool:
        """Whether any turn is spoken."""
        return any(isinstance(turn, AudioTurn) for turn in self.turns)

    @property
    def has_text_turns(self) -> bool:
        """Whether any turn is written."""
        return any(isinstance(turn, TextTurn) for turn in self.turns)

    @property
    def is_text_only(self) -> bool:
        """Whether every turn is written."""
        return not self.has_audio_turns

    def list_cuts(self) -> list[Cut]:
        """Return the audio of the spoken turns, in order."""
        return [turn.cut for turn in self.turns if isinstance(turn, AudioTurn)]


def to_sample(
    example: Example,
    tags: Mapping[str, Any],
    make_cut: Callable[[Example], Cut],
    token_equivalent_duration: float | None = None,
) -> Sample:
    """Make of a sample what a dataset of cuts gets: a cut, a text or a conversation.

    Parameters
    ----------
    example
        The sample.
    tags
        Become custom fields of what is no cut.
    make_cut
        Makes a cut of a sample that is audio.
    token_equivalent_duration
        What a conversation says of it.

    Raises
    ------
    AudioError, ManifestError
        As `to_cut`.
    """
    if example.kind == "cut":
        return make_cut(example)
    if example.kind == "pair":
        return _pair(example, tags)
    custom = {**example.custom, **tags}
    if example.kind == "text":
        return TextSample(
            id=example.id, text=example.text or "", language=example.language, custom=custom
        )
    return Conversation(
        id=example.id,
        custom=custom,
        language=example.language,
        turns=[
            TextTurn(value=turn.text or "", role=turn.role)
            if turn.audio is None
            else AudioTurn(
                cut=make_cut(turn.audio),
                role=turn.role,
                audio_locator_tag=turn.locator or "",
                text=turn.text,
            )
            for turn in turns_of(example)
        ],
        token_equivalent_duration=token_equivalent_duration,
    )


def _pair(example: Example, tags: Mapping[str, Any]) -> TextPair:
    # A tag may be called as a half is: of that it says nothing.
    said = example.custom

    def part(name: str) -> TextSample:
        return TextSample(
            id=f"{example.id}-{name}", text=said[name], language=said.get(f"{name}_language")
        )

    others = {key: value for key, value in said.items() if key not in _OF_PAIRS}
    return TextPair(
        id=example.id,
        custom={**others, **tags},
        source=part("source"),
        target=part("target"),
        question=part("question") if said.get("question") else None,
    )


_HALVES = ("source", "target", "question")
_OF_PAIRS = (*_HALVES, *(f"{half}_language" for half in _HALVES))
