"""What becomes of a Lhotse cut that only Lhotse can do, and what is known of it before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.formats.transforms.speech import Supervision

__all__ = ["CutStep"]


class CutStep:
    """A step of `Example.cut_steps`; it changes nothing."""

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
