from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.blend.leaf import ExtraField
from playhead.errors import ConfigError, DataError, SourceNotFoundError
from playhead.formats import Example, Place, extra_fields
from playhead.formats.extra_fields import ExtraLines

if TYPE_CHECKING:
    from pathlib import Path

PLACE = Place(leaf="l", shard="m.json", row=0, byte=0)


def example() -> Example:
    return Example(id="x", text=None, language=None, audio=None, place=PLACE, custom={"a": 1})


def lines_of(path: Path, data: str | bytes, type_: str = "text_iter", name: str = "extra"):
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return ExtraField(type=type_, name=name, path=str(path))


def added(lines: ExtraLines, row: int, key: int = 0) -> dict:
    sample = example()
    lines.add(sample, row, key)
    return dict(sample.custom)


def test_line_i_belongs_to_row_i(tmp_path: Path):
    lines = ExtraLines([lines_of(tmp_path / "a", "null\neins\r\n\ndreiß")])
    lines.check(4, "l")
    assert [added(lines, row)["extra"] for row in range(4)] == ["null", "eins", "", "dreiß"]
    assert added(lines, 0) == {"a": 1, "extra": "null"}


TEXTS = st.lists(
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1
)


@given(TEXTS, st.booleans(), st.integers(1, 8))
def test_any_lines(tmp_path_factory, texts: list[str], end: bool, piece: int):
    path = tmp_path_factory.mktemp("lines") / "a"
    data = "\n".join(texts) + ("\n" if end or not texts[-1] else "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extra_fields, "_PIECE", piece)
        lines = ExtraLines([lines_of(path, data)])
    assert [added(lines, row)["extra"] for row in range(len(texts))] == texts
    lines.check(len(texts), "l")
    with pytest.raises(ConfigError, match=f"has {len(texts)} lines for the {len(texts) + 1} rows"):
        lines.check(len(texts) + 1, "l")


def test_a_key_chooses_a_line_and_every_line_is_chosen(tmp_path: Path):
    one = lines_of(tmp_path / "a", "a\nb\nc\nd\n", "text_sample", "one")
    two = lines_of(tmp_path / "a", "a\nb\nc\nd\n", "text_sample", "two")
    lines, again = ExtraLines([one, two]), ExtraLines([one, two])
    lines.check(1000, "l")
    keys = [number * 0x9E3779B97F4A7C15 % 2**64 for number in range(4000)]
    chosen = [added(lines, row, key) for row, key in enumerate(keys)]
    assert chosen == [added(again, 0, key) for key in keys]
    counts = Counter(sample["one"] for sample in chosen)
    assert set(counts) == set("abcd")
    assert min(counts.values()) > 900
    same = sum(sample["one"] == sample["two"] for sample in chosen)
    assert 850 < same < 1150


def test_files_that_cannot_be_used(tmp_path: Path):
    with pytest.raises(SourceNotFoundError, match="extra_fields"):
        ExtraLines([ExtraField(type="text_iter", name="x", path=str(tmp_path / "none"))])
    with pytest.raises(ConfigError, match="at least one line"):
        ExtraLines([lines_of(tmp_path / "empty", "")])
    with pytest.raises(ConfigError, match="cannot be used"):
        ExtraLines([ExtraField(type="text_iter", name="x", path=str(tmp_path))])
    bad = ExtraLines([lines_of(tmp_path / "latin", b"good\n\xff\xfe\n")])
    assert added(bad, 0)["extra"] == "good"
    with pytest.raises(DataError, match=r"latin:2, byte 5"):
        added(bad, 1)
