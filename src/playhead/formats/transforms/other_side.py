"""A conversation from the other one's side (`s2s_duplex_reverse_role`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.formats.base import BadRowError
from playhead.formats.transforms.options import name_of, names_of
from playhead.formats.transforms.registry import register_transform
from playhead.formats.transforms.simple_cuts import changed, check_simple, with_task
from playhead.formats.transforms.speech import time_of
from playhead.formats.transforms.steps import Reversed, swapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Example

__all__ = ["OtherSide"]

_NAME = "s2s_duplex_reverse_role"


@register_transform(_NAME)
class OtherSide:
    """The recording and the field `target_audio` are exchanged, and so are user and agent.

    - Speakers among `user_roles` are called `target_agent_name` then, those among `agent_roles`
      `target_user_name`; upper and lower case are the same there. Others keep their names.
    - The cut reaches to the end of what was its target, which may have another rate; features,
      which would be those of the other side, are left out.
    - The field `task` is the name of the transform.
    """

    shapes_rows = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._users = frozenset(map(str.lower, names_of(options, "user_roles")))
        self._agents = frozenset(map(str.lower, names_of(options, "agent_roles")))
        self._user_name = name_of(options, "target_user_name")
        self._agent_name = name_of(options, "target_agent_name")

    def dropped(self, leaf: Leaf, example: Example) -> str | None:  # noqa: ARG002 - the protocol's
        """Drop nothing."""
        return None

    def example(self, leaf: Leaf, example: Example) -> Example:
        """Make the sample of the other side; `RowTransform.example`."""
        check_simple(example, _NAME)
        if any(getattr(step, "makes_target", False) for step in example.cut_steps):
            custom = with_task(leaf, example, _NAME)
            return replace(
                example,
                audio=None if example.cut_data is not None else example.audio,
                custom=custom,
                cut_steps=(*example.cut_steps, Reversed(self._role, custom["task"])),
            )
        data: Any = example.cut_data or {}
        recording, target = data.get("recording"), (data.get("custom") or {}).get("target_audio")
        if not isinstance(recording, dict) or not isinstance(target, dict):
            missing = "target_audio" if isinstance(recording, dict) else "recording"
            raise BadRowError(
                f"the sample has no {missing} to exchange",
                fix="Use cuts with a recording and a custom recording `target_audio`",
            )
        start = data.get("start", 0.0)
        end = time_of(target, "duration", "the target_audio")
        if end <= start:
            raise BadRowError(
                f"the cut begins at {start} s, and its target_audio has {end} s",
                fix="Write a target_audio that is as long as the recording",
            )
        return changed(
            leaf,
            example,
            {"target_audio": recording, "task": _NAME},
            recording=target,
            duration=round(end - start, ndigits=8) if start else end,
            features=None,
            supervisions=swapped(data.get("supervisions") or (), self._role),
        )

    def _role(self, speaker: str | None) -> str | None:
        name = speaker.lower() if isinstance(speaker, str) else None
        if name in self._users:
            return self._agent_name
        return self._user_name if name in self._agents else speaker
