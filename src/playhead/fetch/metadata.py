"""Cuts that say what rows say, over recordings that cannot be loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lhotse import MonoCut, Recording, SupervisionSegment
from lhotse.audio import AudioSource

from playhead.fetch.cuts import to_cut
from playhead.fetch.joined import joined_cut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lhotse.cut import Cut

    from playhead.formats import Example
    from playhead.index.pack import LeafPack

__all__ = ["metadata_cut", "metadata_turns"]

_USUAL_RATE = 16_000


def metadata_cut(example: Example, pack: LeafPack, tags: Mapping[str, Any]) -> Cut:
    """Make a sample's cut without looking at its audio.

    A row that is a cut gives that cut. Any other gives a `MonoCut` whose recording has no source;
    its length is the row's, its rate what the row says, else 16,000 Hz.

    Parameters
    ----------
    example
        The sample, read without audio.
    pack
        The columns of its leaf.
    tags
        Become attributes of the cut.
    """
    if example.members:
        rows = [metadata_cut(member, pack, {}) for member in example.members]
        cut = joined_cut(rows, example.gap, example.id)
    elif example.cut_data is not None:
        return to_cut(example, None, tags)
    else:
        row = example.place.row
        cut = _bare(example, int(pack.duration_us[row]) / 1_000_000, int(pack.rate[row]))
    for name, value in tags.items():
        setattr(cut, name, value)
    return cut


def metadata_turns(example: Example, pack: LeafPack) -> Callable[[Example], Cut]:
    """Return what makes such cuts of the audio turns of a conversation.

    Parameters
    ----------
    example
        The conversation, read without audio.
    pack
        The columns of its leaf.
    """
    # Two turns may have one name: files of it lie in many folders.
    seconds = {id(turn.audio): turn.duration for turn in example.turns if turn.audio is not None}

    def cut_of(turn: Example) -> Cut:
        if turn.cut_data is not None or turn.members:
            return metadata_cut(turn, pack, {})
        return _bare(turn, seconds[id(turn)] or 0.0, 0)

    return cut_of


def _bare(example: Example, seconds: float, rate: int) -> Cut:
    rate = rate or _USUAL_RATE
    recording = Recording(
        id=example.id,
        sources=[AudioSource(type="dummy", channels=[0], source="")],
        sampling_rate=rate,
        num_samples=round(seconds * rate),
        duration=seconds,
    )
    supervision = SupervisionSegment(
        id=example.id,
        recording_id=recording.id,
        start=0.0,
        duration=seconds,
        text=example.text,
        language=example.language,
    )
    return MonoCut(
        id=example.id,
        start=0.0,
        duration=seconds,
        channel=0,
        supervisions=[supervision],
        recording=recording,
        custom=dict(example.custom),
    )
