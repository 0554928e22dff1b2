"""Speech with a transcript, or with a question and its answer, as a conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.formats.base import BadRowError
from playhead.formats.example import Example, Turn
from playhead.formats.row_fields import text_of
from playhead.formats.transforms.registry import register_transform
from playhead.formats.transforms.speech import seconds_of, supervisions_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.blend.leaf import Leaf

__all__ = ["QuestionedSpeech", "TranscribedSpeech", "conversation", "spoken"]


@register_transform("lhotse_as_conversation")
class TranscribedSpeech:
    """The user's turn is the audio, the assistant's is its transcript.

    - The transcript is that of the first supervision.
    - A field or tag `context` comes before the audio, as a turn of the user; `system_prompt` comes
      before all, as one of the system.
    - The transcript stands at the audio's turn too, where no prompt shows it.
    """

    shapes_rows = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        pass

    def dropped(self, leaf: Leaf, example: Example) -> str | None:  # noqa: ARG002 - the protocol's
        """Drop nothing."""
        return None

    def example(self, leaf: Leaf, example: Example) -> Example:
        """Make the conversation; `RowTransform.example`."""
        text = _first_text(example)
        if text is None:
            raise BadRowError(
                "the sample has no transcript, which is what the assistant says",
                fix="Add its text, or name the field that holds it with text_field",
            )
        turns = [spoken(leaf, example, text), Turn(role="assistant", text=text)]
        return conversation(example, turns)


@register_transform("sqa_as_conversation")
class QuestionedSpeech:
    """The user asks a question about the audio that follows it; the assistant answers.

    - Question and answer are the fields or tags of these names.
    - `context` and `system_prompt` come before the question, as for `lhotse_as_conversation`.
    - The audio's turn bears the row's `text` if there is one, else its first transcript.
    """

    shapes_rows = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        pass

    def dropped(self, leaf: Leaf, example: Example) -> str | None:  # noqa: ARG002 - the protocol's
        """Drop nothing."""
        return None

    def example(self, leaf: Leaf, example: Example) -> Example:
        """Make the conversation; `RowTransform.example`."""
        transcript = text_of(example.custom, "text", example.place)
        if transcript is None:
            transcript = _first_text(example, required=False)
        turns = [
            Turn(role="user", text=_field(example, "question")),
            spoken(leaf, example, transcript),
            Turn(role="assistant", text=_field(example, "answer")),
        ]
        return conversation(example, turns)


def spoken(leaf: Leaf, example: Example, transcript: str | None) -> Turn:
    """Make the turn of the user that a sample of speech is."""
    audio = replace(example, channel_selector=leaf.options.channel_selector)
    return Turn(
        role="user",
        text=transcript,
        audio=audio,
        locator=leaf.options.audio_locator_tag,
        duration=seconds_of(example),
    )


def conversation(example: Example, turns: Sequence[Turn]) -> Example:
    """Make a conversation of the turns that come from a sample, and of what it has for before them.

    `context` is a turn of the user before all others, `system_prompt` one of the system before it.

    Raises
    ------
    ManifestError
        If one of these is no text.
    """
    before = [
        Turn(role=role, text=text)
        for role, field in (("system", "system_prompt"), ("user", "context"))
        if (text := text_of(example.custom, field, example.place)) is not None
    ]
    return Example(
        id=example.id,
        text=None,
        language=example.language,
        audio=None,
        place=example.place,
        custom=example.custom,
        kind="conversation",
        turns=(*before, *turns),
    )


def _field(example: Example, name: str) -> str:
    text = text_of(example.custom, name, example.place)
    if text is None:
        raise BadRowError(
            f"the sample has no {name}", fix=f"Add the field `{name}` to it, or a tag of that name"
        )
    return text


def _first_text(example: Example, *, required: bool = True) -> str | None:
    if example.cut_data is None and not example.cut_steps:
        return example.text
    said = supervisions_of(example)
    if not said and required:
        raise BadRowError("the cut has no supervision", fix="Add one with its text")
    return said[0].get("text") if said else None
