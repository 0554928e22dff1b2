"""Which members of a WebDataset's archive are one conversation, and which audio is which turn."""

from __future__ import annotations

from itertools import groupby
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from playhead.formats.base import BadRowError, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["bound_members", "keyed_samples", "paired_samples", "sample_key"]

_ROW = ".json"
_PAIRS = (
    "Write the JSON and the audio of each sample one after the other, with names that differ in "
    "their suffix, or set wds_sample_index_version: 2 if samples have other numbers of members"
)
_KEYS = (
    "Write the members of a sample one after the other, one of them its JSON, with names that are "
    "the same up to the first dot"
)


def paired_samples(names: Sequence[str]) -> Iterator[Sample]:
    """Group members by twos: a JSON and its audio, in either order (version 1).

    Raises
    ------
    BadRowError
        If two that follow each other are no such pair, or the last one is alone.

    Examples
    --------
    >>> list(paired_samples(["a.json", "a.wav", "b.flac", "b.json"]))
    [Sample(row=0, audio=(1,)), Sample(row=3, audio=(2,))]
    """
    if len(names) % 2:
        raise BadRowError(
            f"the tar has {len(names)} members, which are no pairs: the last is {names[-1]!r}",
            fix=_PAIRS,
        )
    for at in range(0, len(names), 2):
        one, other = names[at : at + 2]
        is_row = one.endswith(_ROW)
        same = PurePosixPath(one).with_suffix("") == PurePosixPath(other).with_suffix("")
        if is_row == other.endswith(_ROW) or not same:
            raise BadRowError(
                f"the members {one!r} and {other!r} are not a JSON and its audio", fix=_PAIRS
            )
        yield Sample(at, (at + 1,)) if is_row else Sample(at + 1, (at,))


def keyed_samples(names: Sequence[str]) -> Iterator[Sample]:
    """Group members by their key: a JSON and any number of audios, in any order (version 2).

    A sample of nothing but JSON is a conversation without audio; NeMo refuses it.

    Raises
    ------
    BadRowError
        If a sample has no JSON or several, its members are apart, or a name comes twice.

    Examples
    --------
    >>> list(keyed_samples(["a.json", "a.1.wav", "a.2.wav", "b.wav", "b.json"]))
    [Sample(row=0, audio=(1, 2)), Sample(row=4, audio=(3,))]
    """
    done: set[str] = set()
    for key, group in groupby(range(len(names)), lambda at: sample_key(names[at])):
        members = list(group)
        if key in done:
            raise BadRowError(f"the members of the sample {key!r} are apart", fix=_KEYS)
        done.add(key)
        if len({names[at] for at in members}) < len(members):
            raise BadRowError(
                f"two members of the sample {key!r} have the same name", fix="Rename one"
            )
        rows = [at for at in members if names[at].endswith(_ROW)]
        if len(rows) != 1:
            raise BadRowError(f"the sample {key!r} has {len(rows)} members {_ROW}", fix=_KEYS)
        yield Sample(rows[0], tuple(at for at in members if at != rows[0]))


def sample_key(name: str) -> str:
    """A member's name up to the first dot behind its folder.

    Examples
    --------
    >>> sample_key("v1.0/a.user.wav"), sample_key("./a.json")
    ('v1.0/a', 'a')
    """
    folder, slash, last = name.removeprefix("./").rpartition("/")
    return folder + slash + last.partition(".")[0]


def bound_members(wanted: Sequence[str | None], there: Sequence[str]) -> list[int]:
    """Which member of a sample each audio turn means.

    That is the one of the very name, else the only one whose name without folder is the same, else
    the only one at all; a turn whose row names no file means the only one.

    Parameters
    ----------
    wanted
        What the turns name, shape (T,).
    there
        Names of the sample's audio members.

    Returns
    -------
    list[int]
        Places in `there`, shape (T,).

    Raises
    ------
    BadRowError
        If none is meant, or several, or two files of the row mean the same.

    Examples
    --------
    >>> bound_members(["/data/a.2.wav", "a.1.wav"], ["a.1.wav", "a.2.wav"])
    [1, 0]
    """
    found: list[int] = []
    meant: dict[int, str | None] = {}
    for name in wanted:
        at = _bound(name, there)
        if meant.setdefault(at, name) != name:
            raise BadRowError(
                f"the row's audio {meant[at]!r} and {name!r} are both the member {there[at]!r}",
                fix="Write a member for each, or set wds_sample_index_version: 2",
            )
        found.append(at)
    return found


def _bound(name: str | None, there: Sequence[str]) -> int:
    if name in there:
        return there.index(name)
    last = None if name is None else PurePosixPath(name).name
    same = [at for at, member in enumerate(there) if PurePosixPath(member).name == last]
    if len(same) == 1:
        return same[0]
    if len(there) == 1:
        return 0
    said = "the row names no audio" if name is None else f"the row's audio is {name!r}"
    members = ", ".join(map(repr, there)) or "none"
    raise BadRowError(
        f"{said}, and the members beside it are {members}",
        fix="Name one of them as 'sound'" if there else "Write its audio beside it",
    )
