"""Members of archives, found by name: each alone, in a numbered archive, or in any."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import ArchiveError
from playhead.formats import BadRowError, RowAudio
from playhead.index.build_tars import ArchiveIndex, TarIndex
from support.corpus import write_tar

if TYPE_CHECKING:
    from pathlib import Path


def archive(path: Path, *names: str) -> str:
    """An archive whose members hold their own names."""
    members = [(name, name.encode()) for name in names]
    return str(write_tar(path, members, tarfile.PAX_FORMAT))


def payload(path: str, offset: int, size: int) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 - the path is a str as the index has it
        file.seek(offset)
        return file.read(size).decode()


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=120).filter(
    lambda name: (
        not name.endswith("/") and not name.startswith("./") and ".." not in name and name[0] != "/"
    )
)


@settings(max_examples=40)
@given(st.lists(names, min_size=1, max_size=12, unique=True), st.data())
def test_every_member_is_where_its_name_is(
    tmp_path_factory: pytest.TempPathFactory, members: list[str], data: st.DataObject
):
    path = archive(tmp_path_factory.mktemp("tar") / "a.tar", *members)
    index = TarIndex(path)
    assert index.num_unused == len(members)
    wanted = data.draw(st.lists(st.sampled_from(members), max_size=20))
    found = index.find(wanted)
    pairs = zip(found.offset.tolist(), found.size.tolist(), strict=True)
    assert [payload(path, *pair) for pair in pairs] == wanted
    assert index.num_unused == len(set(members) - set(wanted))
    assert index.has([*wanted, "of no member"]).tolist() == [True] * len(wanted) + [False]
    with pytest.raises(BadRowError, match=r"(?i)no member 'of no member' in the tar .*a\.tar"):
        index.find([*wanted, "of no member"])


def test_an_archive_without_members(tmp_path: Path):
    index = TarIndex(archive(tmp_path / "a.tar"))
    assert index.num_unused == 0
    assert index.has(["a"]).tolist() == [False]
    assert index.find([]).offset.tolist() == []
    with pytest.raises(BadRowError, match=r"(?i)no member 'a'"):
        index.find(["a"])


def test_members_of_one_name_matter_only_to_who_wants_them(tmp_path: Path):
    path = archive(tmp_path / "a.tar", "a", "b", "a", "c", "./c")
    index = TarIndex(path)
    assert payload(path, *(int(one[0]) for one in index.find(["b"]))) == "b"
    with pytest.raises(BadRowError, match=r"holds 'a' more than once, at bytes \[512, 2560\]"):
        index.find(["b", "a"])
    # What `tar` writes with a dot in front is the same name.
    with pytest.raises(BadRowError, match="holds 'c' more than once"):
        index.find(["c"])


def test_archives_are_scanned_when_they_are_needed(tmp_path: Path):
    good, bad = archive(tmp_path / "a.tar", "a", "b"), str(tmp_path / "bad.tar")
    (tmp_path / "bad.tar").write_bytes(b"no archive" * 100)
    index = ArchiveIndex([good, bad])
    found = index.find(np.array([0], np.int32), ["b"])
    assert payload(good, int(found.offset[0]), int(found.size[0])) == "b"
    assert index.num_unused == 1
    with pytest.raises(ArchiveError, match=r"bad\.tar"):
        index.find(np.array([0, 1], np.int32), ["b", "a"])


def heard(paths: list[str], turns: list[RowAudio], first_shard: int = 5) -> list[str | None]:
    """What the places of turns hold; None where they are plain files."""
    places = ArchiveIndex(paths).find_turns(turns, first_shard)
    facts = zip(places.file.tolist(), places.offset.tolist(), places.size.tolist(), strict=True)
    return [
        None if file < 0 else f"{file}:{payload(paths[file - first_shard], offset, size)}"
        for file, offset, size in facts
    ]


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [
        archive(tmp_path / "0.tar", "x/a.wav", "x/both.wav", "x/twice.wav", "y/twice.wav"),
        archive(tmp_path / "1.tar", "x/both.wav", "y/b.wav", "z/a.wav"),
        archive(tmp_path / "2.tar"),
    ]


def test_turns_of_numbered_archives_of_any_and_of_none(paths: list[str]):
    turns = [
        RowAudio(path="/data/a.wav"),
        RowAudio(member="x/both.wav", tar=1),
        RowAudio(member="y/b.wav", tar=-1),
        RowAudio(member="x/both.wav", tar=0),
        RowAudio(path="/data/b.wav", tar=-1),
        RowAudio(member="elsewhere/b.wav", tar=-1),
    ]
    expected = [None, "6:x/both.wav", "6:y/b.wav", "5:x/both.wav", None, "6:y/b.wav"]
    assert heard(paths, turns) == expected
    assert heard(paths, []) == []
    assert heard([], turns[:1]) == [None]


def test_a_whole_name_wins_over_a_last_one(paths: list[str]):
    assert heard(paths, [RowAudio(member="x/a.wav", tar=-1)]) == ["5:x/a.wav"]
    assert heard(paths, [RowAudio(member="z/a.wav", tar=-1)]) == ["6:z/a.wav"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a.wav", r"(?i)the member \'a\.wav' is in .*0\.tar and in .*1\.tar"),
        ("x/both.wav", r"(?i)the member \'x/both\.wav' is in .*0\.tar and in .*1\.tar"),
        ("both.wav", r"(?i)the member \'both\.wav' is in .*0\.tar and in .*1\.tar"),
        ("twice.wav", r"0\.tar holds 'twice\.wav' more than once, at bytes \["),
        ("q/gone.wav", r"(?i)no member \'q/gone\.wav' in any of the tars"),
    ],
)
def test_a_name_that_means_no_one_member(paths: list[str], name: str, says: str):
    good = RowAudio(member="y/b.wav", tar=-1)
    with pytest.raises(BadRowError, match=says):
        heard(paths, [good, RowAudio(member=name, tar=-1), good])


def test_no_archives_hold_no_member():
    with pytest.raises(BadRowError, match=r"(?i)no member 'a\.wav' in any"):
        heard([], [RowAudio(member="a.wav", tar=-1)])


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(-1, 2)), max_size=6),
)
def test_turns_are_found_as_by_looking_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    archives: list[list[str]],
    wanted: list[tuple[str, int]],
):
    folder = tmp_path_factory.mktemp("tars")
    made = [archive(folder / f"{n}.tar", *members) for n, members in enumerate(archives)]
    wanted = [(name, tar) for name, tar in wanted if tar < len(archives)]
    expected: list[str] | None = []
    for name, tar in wanted:
        where = range(len(archives)) if tar < 0 else [tar]
        found = [n for n in where for member in archives[n] if member == name]
        expected = (
            None if len(found) != 1 or expected is None else [*expected, f"{found[0]}:{name}"]
        )
    turns = [RowAudio(member=name, tar=tar) for name, tar in wanted]
    if expected is None:
        with pytest.raises(BadRowError):
            heard(made, turns, 0)
    else:
        assert heard(made, turns, 0) == expected


def test_members_take_few_bytes_each(tmp_path: Path):
    """There may be very many: no object of Python for any of them."""
    index = TarIndex(archive(tmp_path / "a.tar", *map(str, range(50))))
    arrays = [value for value in vars(index).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in arrays) <= 26 * 50
