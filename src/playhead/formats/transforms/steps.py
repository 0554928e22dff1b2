"""What becomes of a Lhotse cut that only Lhotse can do, and what is known of it before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.formats.transforms.speech import Supervision

__all__ = ["CutStep", "Reversed", "Said", "Stretch", "swapped"]


class CutStep:
    """A step of `Example.cut_steps`; this one changes nothing."""

    changes_audio = False
    """Whether the cut that comes out sounds otherwise, or lasts otherwise."""
    makes_target = False
    """Whether it gives the cut a `target_audio`."""

    def __call__(self, cut: Any) -> Any:
        """Return the Lhotse cut that comes out."""
        return cut

    def seconds(self, before: float, rate: int | None) -> float:  # noqa: ARG002 - others use it
        """Return the length of the cut that comes out.

        Parameters
        ----------
        before
            The length of the one that goes in.
        rate
            Its samples a second; None where that is not known.
        """
        return before

    def said(self, before: list[Supervision], seconds: float) -> list[Supervision]:  # noqa: ARG002 - others use it
        """Return the supervisions that come out.

        Parameters
        ----------
        before
            Those that go in.
        seconds
            The length of the cut that goes in.
        """
        return before


@dataclass(frozen=True, slots=True)
class Said(CutStep):
    """Gives a cut other supervisions."""

    supervisions: tuple[Supervision, ...]
    """What they are."""

    def __call__(self, cut: Any) -> Any:
        """Return the cut with them; `CutStep.__call__`."""
        from lhotse import SupervisionSegment  # noqa: PLC0415 - 2 s
        from lhotse.utils import fastcopy  # noqa: PLC0415 - same

        # Lhotse takes the dicts apart that it is given.
        said = [SupervisionSegment.from_dict(msgspec.to_builtins(s)) for s in self.supervisions]
        return fastcopy(cut, supervisions=said)

    def said(self, before: list[Supervision], seconds: float) -> list[Supervision]:  # noqa: ARG002 - the base's
        """Return them; `CutStep.said`."""
        return list(self.supervisions)


@dataclass(frozen=True, slots=True)
class Stretch(CutStep):
    """Keeps the stretch of a cut in which somebody speaks, and what is said there."""

    changes_audio = True

    supervision: Supervision
    """Who speaks, with times in the whole cut; the stretch is called as it is."""
    start: float
    """Where it begins, in seconds."""
    duration: float
    """How long it is, in seconds."""

    def __call__(self, cut: Any) -> Any:
        """Return the stretch; `CutStep.__call__`."""
        name = self.supervision["id"]
        part = cut.truncate(offset=self.start, duration=self.duration, preserve_id=True)
        return part.filter_supervisions(lambda said: said.id == name).with_id(name)

    def seconds(self, before: float, rate: int | None) -> float:  # noqa: ARG002 - the base's
        """Return its length; `CutStep.seconds`."""
        return self.duration

    def said(self, before: list[Supervision], seconds: float) -> list[Supervision]:  # noqa: ARG002 - the base's
        """Return what is said in it; `CutStep.said`."""
        return [{**self.supervision, "start": 0.0}]


@dataclass(frozen=True, slots=True)
class Reversed(CutStep):
    """Exchanges a cut's recording and its `target_audio`, which is as long, and who is who."""

    changes_audio = True
    makes_target = True

    role: Callable[[str | None], str | None]
    """The speaker to a speaker."""
    task: Any
    """The field of that name."""

    def __call__(self, cut: Any) -> Any:
        """Return the cut from the other side; `CutStep.__call__`."""
        from lhotse.utils import fastcopy  # noqa: PLC0415 - 2 s

        custom = {**cut.custom, "task": self.task}
        recording, custom["target_audio"] = custom["target_audio"], cut.recording
        return fastcopy(
            cut,
            recording=recording,
            custom=custom,
            supervisions=[
                fastcopy(said, speaker=self.role(said.speaker)) for said in cut.supervisions
            ],
        )

    def said(self, before: list[Supervision], seconds: float) -> list[Supervision]:  # noqa: ARG002 - the base's
        """Return the supervisions from the other side; `CutStep.said`."""
        return swapped(before, self.role)


def swapped(
    said: Sequence[Supervision], role: Callable[[str | None], str | None]
) -> list[Supervision]:
    """Return supervisions with other speakers."""
    return [{**one, "speaker": role(one.get("speaker"))} for one in said]
