"""Segments of user and agent that overlap, as supervisions (`s2s_duplex_overlap_as_s2s_duplex`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.formats.base import BadRowError
from playhead.formats.transforms.options import flag_of, names_of, number_of
from playhead.formats.transforms.registry import register_transform
from playhead.formats.transforms.simple_cuts import check_simple, with_supervisions
from playhead.formats.transforms.speech import time_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Example
    from playhead.formats.transforms.speech import Supervision

__all__ = ["DuplexSegments"]

_NAME = "s2s_duplex_overlap_as_s2s_duplex"
_FIX = "Write a list of objects with start, end and text, and an empty one where nobody speaks"


@register_transform(_NAME)
class DuplexSegments:
    """The fields `agent_segments` and `user_segments` become supervisions, in order of time.

    - A segment has `start` and `end` in seconds, and `text`; where two begin together, the agent's
      comes first. Speakers are called `agent` and `user`, supervisions like the sample.
    - `move_agent_text_back_by` seconds are what the agent's supervisions begin earlier; they end
      where they did, and may begin before the sample does.
    - `filter_samples_starting_with_agent` drops samples in which the first supervision is of one of
      `agent_roles`, or in which there is none.
    - The field `task` is the name of the transform.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._shift = number_of(options, "move_agent_text_back_by")
        self._agents = names_of(options, "agent_roles")
        self.shapes_rows = flag_of(options, "filter_samples_starting_with_agent")

    def dropped(self, leaf: Leaf, example: Example) -> str | None:  # noqa: ARG002 - the protocol's
        """Drop samples that do not begin with the user, if that is asked for."""
        if not self.shapes_rows:
            return None
        said = self._said(example)
        if not said:
            return "nobody speaks"
        return "the agent speaks first" if said[0]["speaker"] in self._agents else None

    def example(self, leaf: Leaf, example: Example) -> Example:
        """Give the sample its supervisions; `RowTransform.example`."""
        check_simple(example, _NAME)
        return with_supervisions(leaf, example, self._said(example), _NAME)

    def _said(self, example: Example) -> list[Supervision]:
        agent = _segments(example, "agent_segments", "agent", self._shift)
        user = _segments(example, "user_segments", "user", 0.0)
        return sorted(agent + user, key=lambda said: said["start"])


def _segments(example: Example, field: str, speaker: str, shift: float) -> list[Supervision]:
    segments = example.custom.get(field)
    if not isinstance(segments, list) or not all(isinstance(one, dict) for one in segments):
        said = "no" if segments is None else "another kind of"
        raise BadRowError(f"the sample has {said} `{field}`", fix=_FIX)
    return [_supervision(example, one, field, speaker, shift) for one in segments]


def _supervision(
    example: Example, segment: Mapping[str, Any], field: str, speaker: str, shift: float
) -> Supervision:
    what = f"one of the `{field}`"
    start, end = time_of(segment, "start", what), time_of(segment, "end", what)
    text = segment.get("text")
    if not isinstance(text, str):
        raise BadRowError(f"the text of {what} is {text!r}", fix=_FIX)
    return {
        "id": example.id,
        "recording_id": example.id,
        "start": start - shift,
        "duration": end - start + shift,
        "channel": 0,
        "text": text,
        "speaker": speaker,
    }
