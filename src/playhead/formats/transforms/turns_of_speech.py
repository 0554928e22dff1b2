"""Speech of several speakers as a conversation (`s2s_as_conversation`)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.formats.base import BadRowError
from playhead.formats.example import Turn
from playhead.formats.transforms.options import flag_of, names_of
from playhead.formats.transforms.registry import register_transform
from playhead.formats.transforms.simple_cuts import changed
from playhead.formats.transforms.speech import (
    num_samples_of,
    rate_of,
    seconds_of,
    supervisions_of,
    time_of,
)
from playhead.formats.transforms.steps import CutStep, Stretch
from playhead.formats.transforms.to_conversation import conversation, spoken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Example
    from playhead.formats.transforms.speech import Supervision

__all__ = ["TurnsOfSpeech", "without_timestamps"]

_TIMESTAMP = re.compile(r"<\|\d+\|>")
# Lhotse keeps times to the sample; what is less than this outside of a cut is a rounding.
_NEAR_SECONDS = 1e-3


def without_timestamps(text: str) -> str:
    """Leave out tokens of time, and all white space but single blanks between words.

    Examples
    --------
    >>> without_timestamps("<|0|> good <|4|> <|5|> day <|9|>")
    'good day'
    """
    return " ".join(_TIMESTAMP.sub("", text).split())


@register_transform("s2s_as_conversation")
class TurnsOfSpeech:
    """Each supervision is a turn: of the user the stretch of audio, of the assistant the text.

    - The supervision's speaker says whose turn it is: `input_roles` are the user, `output_roles`
      the assistant; a sample in which somebody else speaks is dropped and counted.
    - Turns come in the order of the supervisions; overlaps belong to both.
    - A turn's audio is called like its supervision, has its channels, and reaches to the end of the
      cut at most.
    - `strip_timestamp_tokens` takes tokens such as ``<|12|>`` out of the texts.
    - `context` and `system_prompt` come before all turns, as for `lhotse_as_conversation`.
    """

    shapes_rows = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._inputs = names_of(options, "input_roles")
        self._outputs = names_of(options, "output_roles")
        self._strips = flag_of(options, "strip_timestamp_tokens")

    def dropped(self, leaf: Leaf, example: Example) -> str | None:  # noqa: ARG002 - the protocol's
        """Drop samples with a speaker who is neither user nor assistant."""
        known = self._inputs | self._outputs
        if all(said.get("speaker") in known for said in supervisions_of(example)):
            return None
        return "speaker of no role"

    def example(self, leaf: Leaf, example: Example) -> Example:
        """Make the conversation; `RowTransform.example`."""
        said = supervisions_of(example)
        if not said:
            raise BadRowError("the cut has no supervision", fix="Add one for each turn")
        return conversation(example, [self._turn(leaf, example, one) for one in said])

    def _turn(self, leaf: Leaf, example: Example, said: Supervision) -> Turn:
        speaker, text = said.get("speaker"), said.get("text")
        if text is not None and self._strips:
            text = without_timestamps(text)
        if speaker in self._inputs:
            return spoken(leaf, _stretch(leaf, example, said), text)
        if speaker not in self._outputs:
            raise BadRowError(
                f"the speaker {speaker!r} is neither user nor assistant",
                fix="Name the speaker in input_roles or output_roles, and index again",
            )
        if text is None:
            raise BadRowError(
                f"the assistant's supervision {said.get('id')!r} has no text", fix="Add its text"
            )
        return Turn(role="assistant", text=text)


def _stretch(leaf: Leaf, example: Example, said: Supervision) -> Example:
    """Return the sample of one supervision of a sample."""
    what = f"the supervision {said.get('id')!r}"
    start, duration = time_of(said, "start", what), time_of(said, "duration", what)
    whole = seconds_of(example)
    end = start + duration if whole is None else min(start + duration, whole)
    if start < -_NEAR_SECONDS or end <= max(start, 0.0):
        raise BadRowError(
            f"{what} reaches from {start} s to {start + duration} s of a cut of {whole} s",
            fix="Write times within the cut, in which something is heard",
        )
    start = max(start, 0.0)
    moving = any(getattr(step, "changes_audio", True) for step in example.cut_steps)
    data = example.cut_data
    if data is None and not moving:
        return _of_a_file(example, said, start, end)
    if data is not None and data["type"] != "MixedCut" and not example.cut_steps:
        return _of_a_cut(leaf, example, said, start, end)
    step: CutStep = Stretch(said, start, round(end - start, ndigits=8))
    return replace(
        example,
        id=said["id"],
        text=said.get("text"),
        language=said.get("language"),
        audio=None if data is not None else example.audio,
        cut_steps=(*example.cut_steps, step),
    )


def _of_a_file(example: Example, said: Supervision, start: float, end: float) -> Example:
    audio = example.audio
    if audio is not None:
        audio = replace(
            audio,
            start=round(audio.start + start, ndigits=8),
            duration=round(end - start, ndigits=8),
        )
    return replace(
        example,
        id=said["id"],
        text=said.get("text"),
        language=said.get("language"),
        audio=audio,
        cut_steps=(),
    )


def _of_a_cut(leaf: Leaf, example: Example, said: Supervision, start: float, end: float) -> Example:
    """Cut a stretch out of a cut at whole samples, as Lhotse does."""
    data: Any = example.cut_data
    rate = rate_of(data)
    first = num_samples_of(start, rate)
    last = min(first + num_samples_of(said["duration"], rate), num_samples_of(end, rate))
    fields: dict[str, Any] = {}
    if data["type"] == "MultiCut":
        channels = said.get("channel", 0)
        channels = channels if isinstance(channels, list) else [channels]
        is_one = len(channels) == 1
        fields["type"] = "MonoCut" if is_one else "MultiCut"
        fields["channel"] = channels[0] if is_one else channels
    return changed(
        leaf,
        example,
        {},
        id=said["id"],
        start=(num_samples_of(data.get("start", 0.0), rate) + first) / rate,
        duration=(last - first) / rate,
        supervisions=[{**said, "start": 0.0}],
        **fields,
    )
