"""Rows that were joined into one sample: its example, and its cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.formats import Example

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lhotse.cut import Cut

    from playhead.blend.leaf import Concatenation

__all__ = ["join_examples", "joined_cut"]


def join_examples(members: Sequence[Example], how: Concatenation | None) -> Example:
    """Make one sample of rows that follow each other; a single row stays as it is.

    It is called what its rows are, with ``+`` between; its text is theirs, joined by a space; its
    language and other fields are the first row's.

    Parameters
    ----------
    members
        The rows, in order, at least one.
    how
        The gap between them; None where rows are not joined.
    """
    first = members[0]
    if how is None or len(members) == 1:
        return first
    texts = [member.text for member in members if member.text]
    return Example(
        id="+".join(member.id for member in members),
        text=" ".join(texts) if texts else None,
        language=first.language,
        audio=None,
        place=first.place,
        custom=first.custom,
        channel_selector=first.channel_selector,
        members=tuple(members),
        gap=how.gap,
    )


def joined_cut(cuts: Sequence[Cut], gap: float, name: str) -> Cut:
    """Make one cut of cuts that follow each other.

    Supervisions and custom recordings stay with their part; in a gap all of them are silent.

    Parameters
    ----------
    cuts
        The cuts, at least one; those of lower rates are resampled to the highest.
    gap
        Silence between them, seconds.
    name
        What the cut is called.
    """
    from playhead.fetch.resampling import resample_cut  # noqa: PLC0415 - imports Lhotse, 2 s

    rate = max(cut.sampling_rate for cut in cuts)
    whole, *others = (resample_cut(cut, rate) for cut in cuts)
    for cut in others:
        if gap:
            whole = whole.pad(duration=whole.duration + gap, preserve_id=True)
        whole = whole.append(cut)
    return whole.with_id(name)
