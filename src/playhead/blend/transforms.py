"""The types of entries that make other samples of those that the entries inside them read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.leaf import Kind

__all__ = ["TRANSFORMS", "TransformType"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TransformType:
    """A type of entry that transforms what is inside it."""

    kind: Kind = "cut"
    """What its samples are."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """The options that only this type has, with their defaults."""


_AGENTS = ("agent", "Agent", "assistant", "Assistant")

TRANSFORMS: Mapping[str, TransformType] = {
    "lhotse_as_conversation": TransformType(kind="conversation"),
    "lhotse_magpietts_data_as_continuation": TransformType(
        own={
            "add_extra_end_silence": False,
            "extra_end_silence_range": (0.5, 6.0),
            "max_cer": 0.03,
            "min_context_speaker_similarity": 0.6,
            "sample_rate": 22050,
            "target_speaker": None,
        }
    ),
    "nemo_tarred_to_duplex": TransformType(own={"agent_silence_duration": -0.08}),
    "s2s_as_conversation": TransformType(
        kind="conversation",
        own={
            "input_roles": ("user", "User"),
            "output_roles": ("assistant", "Assistant", "agent", "Agent"),
            "strip_timestamp_tokens": True,
        },
    ),
    "s2s_duplex_overlap_as_s2s_duplex": TransformType(
        own={
            "agent_roles": ("agent", "Assistant", "assistant"),
            "filter_samples_starting_with_agent": False,
            "move_agent_text_back_by": 0.0,
        }
    ),
    "s2s_duplex_reverse_role": TransformType(
        own={
            "agent_roles": _AGENTS,
            "target_agent_name": "agent",
            "target_user_name": "user",
            "user_roles": ("user", "User"),
        }
    ),
    "sqa_as_conversation": TransformType(kind="conversation"),
}
"""What `type` says, to what it is."""
