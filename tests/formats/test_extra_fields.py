from __future__ import annotations

import gzip
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lhotse import CutSet
from lhotse.cut import PaddingCut
from lhotse.serialization import deserialize_item
from lhotse.testing.dummies import DummyManifest

from playhead.blend.leaf import ExtraField
from playhead.errors import ConfigError, DataError, SourceNotFoundError
from playhead.formats import Example
from playhead.formats.extra_fields import ExtraLines
from support.fetching import PLACE

if TYPE_CHECKING:
    from pathlib import Path


def example(**facts: Any) -> Example:
    facts = {"id": "a", "text": None, "language": None, "audio": None, **facts}
    return Example(place=PLACE, **facts)


def lines_of(path: Path, type: Any = "text_iter", name: str = "extra") -> ExtraLines:
    return ExtraLines([ExtraField(type=type, name=name, path=str(path))])


def added(lines: ExtraLines, row: int, key: int = 1, **facts: Any) -> Example:
    sample = example(**facts)
    lines.add(sample, row, key)
    return sample


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@given(
    st.lists(st.text(st.characters(exclude_characters="\n\r\ufeff", codec="utf-8"))),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_line_i_is_that_of_row_i(tmp_path_factory, texts, newline, ends):
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    # A blank last line without an end is no line.
    if not ends and texts and not texts[-1]:
        texts = texts[:-1]
        ends = True
    write(path, newline.join(texts) + (newline if ends and texts else ""))
    lines = lines_of(path)
    lines.check(len(texts))
    found = [added(lines, row).custom["extra"] for row in range(len(texts))]
    assert found == [text.strip() for text in texts]
    with pytest.raises(ConfigError, match=f"has {len(texts)} lines for {len(texts) + 1} rows"):
        lines.check(len(texts) + 1)


def test_lines_are_found_across_the_pieces_that_are_scanned(tmp_path, monkeypatch):
    monkeypatch.setattr("playhead.formats.extra_fields._CHUNK_BYTES", 7)
    texts = [f"line {n}" for n in range(50)]
    lines = lines_of(write(tmp_path / "x.txt", "\n".join(texts)))
    assert [added(lines, row).custom["extra"] for row in range(50)] == texts


def test_a_byte_order_mark_is_no_text(tmp_path):
    lines = lines_of(write(tmp_path / "x.txt", b"\xef\xbb\xbfa\nb\n"))
    assert [added(lines, row).custom["extra"] for row in range(2)] == ["a", "b"]


def test_more_lines_than_rows_are_an_error(tmp_path):
    """A line for every row of a manifest would be shifted by the rows that are dropped."""
    with pytest.raises(ConfigError, match=r"3 lines for 2 rows .* dropped \(_skipme\) have none"):
        lines_of(write(tmp_path / "x.txt", "a\nb\nc\n")).check(2)


def test_a_sample_has_the_same_line_whatever_its_row(tmp_path):
    path = write(tmp_path / "x.txt", "".join(f"{n}\n" for n in range(7)))
    lines = lines_of(path, "text_sample")
    lines.check(1000)
    drawn = [added(lines, row, key=row * 0x9E3779B97F4A7C15 % 2**64) for row in range(700)]
    chosen = [int(sample.custom["extra"]) for sample in drawn]
    again = lines_of(path, "text_sample")
    keys = [row * 0x9E3779B97F4A7C15 % 2**64 for row in range(700)]
    assert [int(added(again, 0, key=key).custom["extra"]) for key in keys] == chosen
    counts = [chosen.count(n) for n in range(7)]
    assert min(counts) > 60
    assert max(counts) < 140


def test_two_fields_choose_apart(tmp_path):
    path = write(tmp_path / "x.txt", "".join(f"{n}\n" for n in range(10)))
    fields = [ExtraField(type="text_sample", name=name, path=str(path)) for name in "ab"]
    lines = ExtraLines(fields)
    pairs = {tuple(added(lines, 0, key=key).custom.values()) for key in range(300)}
    assert len(pairs) > 60


def test_lines_win_over_the_row_and_leave_the_rest(tmp_path):
    lines = lines_of(write(tmp_path / "x.txt", "new\n"))
    given_fields = {"extra": "old", "other": 1}
    sample = added(lines, 0, custom=given_fields)
    assert sample.custom == {"extra": "new", "other": 1}
    assert given_fields["extra"] == "old"


def test_cuts_get_them_too(tmp_path):
    lines = lines_of(write(tmp_path / "x.txt", "first\nsecond\n"))
    simple = next(iter(DummyManifest(CutSet, begin_id=0, end_id=1)))
    simple.custom = {"kept": 1}
    silence = PaddingCut(
        "pad", duration=1.0, sampling_rate=16000, feat_value=0, num_samples=16000, num_features=23,
        frame_shift=0.01, num_frames=100,
    )  # fmt: skip
    for cut in (simple, silence.append(simple)):
        data = cut.to_dict()
        sample = added(lines, 1, cut_data=data)
        read = deserialize_item(sample.cut_data)
        assert read.extra == "second"
        assert read.kept == 1


def test_it_travels_to_workers_without_its_files(tmp_path):
    lines = lines_of(write(tmp_path / "x.txt", "a\nb\n"))
    lines.check(2)
    there = pickle.loads(pickle.dumps(lines))
    assert added(there, 1).custom == {"extra": "b"}
    assert not ExtraLines(())
    assert added(ExtraLines(()), 0).custom == {}


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (None, SourceNotFoundError, "does not exist"),
        ("folder", ConfigError, "is a folder"),
        (gzip.compress(b"a\nb\n", mtime=0), ConfigError, "is compressed"),
        (b"a\n", ConfigError, "has 1 lines for 2 rows"),
        (b"", ConfigError, "has 0 lines for 2 rows"),
    ],
)
def test_what_cannot_be_used_is_refused_at_the_start(tmp_path, data, error, says):
    path = tmp_path / "x.txt"
    if data == "folder":
        path.mkdir()
    elif data is not None:
        path.write_bytes(data)
    with pytest.raises(error, match=rf"(?i){says}.*x\.txt"):
        lines_of(path).check(2)


def test_nothing_to_choose_from(tmp_path):
    lines = lines_of(write(tmp_path / "x.txt", ""), "text_sample")
    with pytest.raises(ConfigError, match=r"no lines to choose from .*x\.txt"):
        lines.check(1)
    lines.check(0)
    with pytest.raises(DataError, match="has 0 lines and line 1 is wanted"):
        added(lines, 0)


def test_what_is_not_utf8_says_where(tmp_path):
    lines = lines_of(write(tmp_path / "x.txt", b"a\n\xffb\n"))
    with pytest.raises(DataError, match=r"not UTF-8.*byte 0 \(.*x\.txt:2, byte 2\)"):
        added(lines, 1)
    with pytest.raises(DataError, match="has 2 lines and line 3 is wanted"):
        added(lines, 2)
