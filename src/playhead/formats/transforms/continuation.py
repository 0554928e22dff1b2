"""Synthetic speech that an agent goes on with (`lhotse_magpietts_data_as_continuation`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.formats.base import BadRowError
from playhead.formats.transforms.in_memory import recorded, resampled, silence
from playhead.formats.transforms.options import flag_of, name_of, number_of, range_of
from playhead.formats.transforms.registry import register_transform
from playhead.formats.transforms.simple_cuts import changed, check_simple
from playhead.formats.transforms.speech import num_samples_of, supervisions_of, time_of
from playhead.formats.transforms.steps import CutStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Example

__all__ = ["Continuation", "WithSilentSource"]

_NAME = "lhotse_magpietts_data_as_continuation"
_USER_SECONDS = 0.08
_AGENT_MORE_SECONDS = 1.0


@register_transform(_NAME)
class Continuation:
    """The source is silent; the target is the cut's `target_audio`, at `sample_rate` Hz.

    - Dropped are: samples whose first supervision has a `cer` above `max_cer`, a
      `context_speaker_similarity` below `min_context_speaker_similarity`, or a speaker in whose
      name `target_speaker` does not occur; and those with a `validation_status` that is not
      `pass`. What a sample does not say drops nothing, but for the speaker.
    - The user's supervision is a dummy of 0.08 s, the agent's lasts for the target without them;
      both begin at 0 and come from the first one.
    - `add_extra_end_silence` puts silence behind both sides. How long depends on the sample's id
      alone: the id's hash chooses evenly from `extra_end_silence_range`, in seconds, so that the
      index knows the length and every pass has the same. The user's supervision gets so much
      longer, the agent's one second more than that.
    - `context_audio`, if there is one, is resampled as well.
    - The sample is called like the row with ``_source`` behind; the field `task` is the name of the
      transform. Other fields of the row stay.
    """

    shapes_rows = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._adds_silence = flag_of(options, "add_extra_end_silence")
        self._range = range_of(options, "extra_end_silence_range")
        self._rate = int(number_of(options, "sample_rate", least=1, whole=True))
        self._max_cer = number_of(options, "max_cer")
        self._min_similarity = number_of(options, "min_context_speaker_similarity")
        self._speaker = name_of(options, "target_speaker")

    def dropped(self, leaf: Leaf, example: Example) -> str | None:  # noqa: ARG002 - the protocol's
        """Drop what was synthesised badly, or with another voice."""
        said = supervisions_of(example)
        first: Mapping[str, Any] = said[0] if said else {}
        custom: Mapping[str, Any] = first.get("custom") or {}
        what = "the first supervision"
        if "cer" in custom and time_of(custom, "cer", what) > self._max_cer:
            return "max_cer"
        if example.custom.get("validation_status", "pass") != "pass":
            return "validation_status"
        key = "context_speaker_similarity"
        if key in custom and time_of(custom, key, what) < self._min_similarity:
            return "min_context_speaker_similarity"
        if said and self._speaker is not None and self._speaker not in (first.get("speaker") or ""):
            return "target_speaker"
        return None

    def example(self, leaf: Leaf, example: Example) -> Example:
        """Make the duplex sample; `RowTransform.example`."""
        check_simple(example, _NAME)
        said = supervisions_of(example)
        if not said:
            raise BadRowError("the cut has no supervision", fix="Add one with its text")
        custom = (example.cut_data or {}).get("custom") or {}
        target = custom.get("target_audio")
        if not isinstance(target, dict):
            raise BadRowError(
                "the sample has no target_audio",
                fix="Use cuts with a custom recording `target_audio`",
            )
        spoken = time_of(target, "duration", "the target_audio")
        more = self._silence_of(example.id)
        extra = num_samples_of(more, self._rate)
        num_samples = num_samples_of(spoken, self._rate) + extra
        more_agent = more + _AGENT_MORE_SECONDS if self._adds_silence else 0.0
        seconds = spoken - _USER_SECONDS + more_agent
        user = {**said[0], "duration": _USER_SECONDS + more, "text": "dummy text"}
        agent = {**said[0], "duration": seconds}
        supervisions = [
            {**one, "start": 0.0, "speaker": speaker}
            for one, speaker in ((user, "user"), (agent, "agent"))
        ]
        name = f"{example.id}_source"
        made = changed(
            leaf,
            example,
            {"task": _NAME},
            id=name,
            type="MonoCut",
            start=0.0,
            duration=num_samples / self._rate,
            channel=0,
            recording=_unwritten(name, num_samples, self._rate),
            features=None,
            supervisions=supervisions,
        )
        return replace(made, cut_steps=(*example.cut_steps, WithSilentSource(self._rate, extra)))

    def _silence_of(self, name: str) -> float:
        """Seconds of silence behind the sample of that name."""
        if not self._adds_silence:
            return 0.0
        least, most = self._range
        digest = blake2b(name.encode(), digest_size=8, person=b"end silence").digest()
        # Of 53 bits, so that each is a float of its own and none is 1.
        return least + (int.from_bytes(digest, "little") >> 11) * 2.0**-53 * (most - least)


@dataclass(frozen=True, slots=True)
class WithSilentSource(CutStep):
    """Makes a cut's recording, which is silent, and resamples the others."""

    changes_audio = True
    makes_target = True

    rate: int
    """Samples a second of all."""
    extra: int
    """Samples of silence behind the target."""

    def __call__(self, cut: Any) -> Any:
        """Return the cut with its audio; `CutStep.__call__`."""
        from lhotse.utils import fastcopy  # noqa: PLC0415 - 2 s

        custom = dict(cut.custom)
        custom["target_audio"] = self._at_rate(custom["target_audio"], self.extra)
        if custom.get("context_audio") is not None:
            custom["context_audio"] = self._at_rate(custom["context_audio"], 0)
        recording = cut.recording
        return fastcopy(
            cut,
            recording=silence(recording.id, recording.num_samples, self.rate),
            custom=custom,
        )

    def _at_rate(self, recording: Any, extra: int) -> Any:
        if recording.sampling_rate == self.rate and not extra:
            return recording
        samples = np.pad(resampled(recording, self.rate), ((0, 0), (0, extra)))
        return recorded(recording.id, samples, self.rate, recording.channel_ids)


def _unwritten(name: str, num_samples: int, rate: int) -> dict[str, Any]:
    """Describe a recording whose samples nobody has made yet."""
    return {
        "id": name,
        "sources": [{"type": "shar", "channels": [0], "source": ""}],
        "sampling_rate": rate,
        "num_samples": num_samples,
        "duration": num_samples / rate,
        "channel_ids": [0],
    }
