"""Samples whose audio exists nowhere, as its store says for good."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from playhead.errors import SourceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.formats import Example, Place

__all__ = ["demand_audio", "mark_missing", "missing", "with_rows_and_turns"]


def missing(what: str, place: Place) -> SourceNotFoundError:
    """Return the error of audio that a row names and nobody has."""
    return SourceNotFoundError(
        "the audio file does not exist",
        where=str(place) if place.member == what else f"{place}, audio {what}",
        fix="Restore it, or correct the row's path",
    )


def mark_missing(example: Example, what: str) -> None:
    """Note that the audio of a sample exists nowhere.

    Parameters
    ----------
    example
        The sample; it is changed.
    what
        The file, or the archive and the member.
    """
    example.place = replace(example.place, member=what, member_byte=None)
    example.missing = missing(what, example.place)


def demand_audio(examples: Sequence[Example]) -> None:
    """Refuse samples whose audio exists nowhere.

    Raises
    ------
    SourceNotFoundError
        If one's does; the error names it.
    """
    for example in with_rows_and_turns(examples):
        if example.missing is not None:
            raise example.missing


def with_rows_and_turns(examples: Sequence[Example]) -> Iterator[Example]:
    """Give samples, the rows that they were joined from, and their audio turns."""
    for example in examples:
        yield example
        yield from with_rows_and_turns(example.members)
        turns = [turn.audio for turn in example.turns if turn.audio is not None]
        yield from with_rows_and_turns(turns)
