"""Plain speech as a duplex conversation in which the agent is silent (`nemo_tarred_to_duplex`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.formats.transforms.in_memory import recorded, silence
from playhead.formats.transforms.options import number_of
from playhead.formats.transforms.registry import register_transform
from playhead.formats.transforms.simple_cuts import check_simple, with_task
from playhead.formats.transforms.speech import num_samples_of, supervisions_of
from playhead.formats.transforms.steps import CutStep, Said

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Example
    from playhead.formats.transforms.speech import Supervision

__all__ = ["SilentAgent", "WithSilentAgent"]


@register_transform("nemo_tarred_to_duplex")
class SilentAgent:
    """The user says what the sample says; the agent is silent.

    - The user's supervision is as long as the sample; the agent's has an empty text and lasts
      `agent_silence_duration` seconds without its sign: those behind the audio, which is prolonged
      by silence, where the number is positive, and the last ones of the audio where it is negative.
    - The cut gets a silent `target_audio` that is as long as itself.
    - The field `task` is `asr`.
    - Samples that do not have exactly one supervision stay as they are.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._silence = float(number_of(options, "agent_silence_duration"))
        self.shapes_rows = self._silence > 0

    def dropped(self, leaf: Leaf, example: Example) -> str | None:  # noqa: ARG002 - the protocol's
        """Drop nothing."""
        return None

    def example(self, leaf: Leaf, example: Example) -> Example:
        """Let the agent be silent; `RowTransform.example`."""
        if example.cut_data is not None and len(supervisions_of(example)) != 1:
            return example
        check_simple(example, "nemo_tarred_to_duplex")
        custom = with_task(leaf, example, "asr")
        step = WithSilentAgent(example.id, self._silence, custom["task"])
        prolonged = example.cut_data is not None and step.changes_audio
        return replace(
            example,
            audio=None if prolonged else example.audio,
            custom=custom,
            cut_steps=(*example.cut_steps, step),
        )


@dataclass(frozen=True)
class WithSilentAgent(CutStep):
    """Gives a cut of one supervision a second one, of a silent agent, and a silent target."""

    makes_target = True

    name: str
    """What the sample is called."""
    silence: float
    """How long the agent is silent behind the audio, seconds; less than 0: in its last seconds."""
    task: Any
    """The field of that name."""

    @property
    def changes_audio(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride] - it depends
        """Whether the audio gets longer."""
        return self.silence > 0

    def __call__(self, cut: Any) -> Any:
        """Return the duplex cut; `CutStep.__call__`."""
        from lhotse.utils import fastcopy  # noqa: PLC0415 - 2 s

        said = [one.to_dict() for one in cut.supervisions]
        seconds = cut.duration
        if self.silence > 0:
            cut = self._prolonged(cut)
        custom = dict(cut.custom or {})
        custom["task"] = self.task
        rate = int(cut.sampling_rate)
        custom["target_audio"] = silence(
            f"{self.name}_target", num_samples_of(cut.duration, rate), rate
        )
        duplex = fastcopy(cut, custom=custom)
        return Said(tuple(self.said(said, seconds)))(duplex)

    def seconds(self, before: float, rate: int | None) -> float:
        """Return the length with the silence behind; `CutStep.seconds`."""
        if self.silence <= 0:
            return before
        if rate is None:
            return before + self.silence
        return (num_samples_of(before, rate) + num_samples_of(self.silence, rate)) / rate

    def said(self, before: list[Supervision], seconds: float) -> list[Supervision]:
        """Return what the user says, and the agent's silence; `CutStep.said`."""
        (one,) = before
        shared = {key: one.get(key) for key in ("recording_id", "language")}
        shared["channel"] = 0
        return [
            {**shared, "id": f"{self.name}_user", "start": 0.0, "duration": seconds}
            | {"text": one.get("text"), "speaker": "user"},
            {**shared, "id": f"{self.name}_agent", "start": seconds + min(self.silence, 0.0)}
            | {"duration": abs(self.silence), "text": "", "speaker": "agent"},
        ]

    def _prolonged(self, cut: Any) -> Any:
        """Decode the audio, and write it again with silence behind."""
        from lhotse.utils import fastcopy  # noqa: PLC0415 - 2 s

        rate = int(cut.sampling_rate)
        samples = cut.load_audio()
        more = num_samples_of(cut.duration, rate) + num_samples_of(self.silence, rate)
        samples = np.pad(samples, ((0, 0), (0, more - samples.shape[1])))
        channels = cut.channel if isinstance(cut.channel, list) else [cut.channel]
        recording = recorded(cut.recording.id, samples, rate, channels)
        return fastcopy(
            cut, start=0.0, duration=recording.duration, recording=recording, features=None
        )
