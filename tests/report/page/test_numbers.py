"""Numbers that people read are near what they stand for, and have their units."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.report.page.numbers import count, exact, hours, length, number, share, span, volume

sizes = st.floats(1e-6, 1e12)
SECONDS = {"d": 86400, "h": 3600, "min": 60, "s": 1}
BYTES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def read(text):
    return float(text.replace(",", ""))


@given(sizes)
def test_a_number_is_off_by_half_a_percent_at_most(value):
    assert read(number(value)) == pytest.approx(value, rel=0.0051, abs=1e-8)
    assert read(number(value, digits=4)) == pytest.approx(value, rel=0.00051, abs=1e-8)


@given(st.floats(0, 1))
def test_a_share_is_never_all_or_nothing_by_rounding(value):
    text = share(value)
    assert text.endswith(" %")
    assert (text == "0 %") == (value == 0)
    assert (text == "100 %") == (value == 1)
    if text[0] not in "<>":
        assert read(text[:-2]) == pytest.approx(100 * value, abs=0.051)


@given(st.floats(0.01, 1e9))
def test_a_time_says_what_it_stands_for(seconds):
    text = span(seconds)
    parts = re.findall(r"([\d.,]+) (d|h|min|s)", text)
    assert " ".join(f"{many} {unit}" for many, unit in parts) == text
    assert 1 <= len(parts) <= 2
    assert sum(read(many) * SECONDS[unit] for many, unit in parts) == pytest.approx(
        seconds, rel=0.026
    )
    # The smaller unit never fills the larger one.
    if len(parts) == 2:
        (_, large), (many, small) = parts
        assert 0 < read(many) * SECONDS[small] < SECONDS[large]


@given(sizes)
def test_bytes_say_what_they_stand_for(value):
    many, unit = volume(value).split()
    assert read(many) * BYTES[unit] == pytest.approx(value, rel=0.0051, abs=1e-8)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_a_dash(value):
    for write in (number, share, hours, span, volume):
        assert write(value) == "-", write
    assert length(value, "seconds") == "-"
    assert count(None) == "-"


@given(st.floats(allow_nan=False) | st.integers())
def test_a_program_reads_the_very_same_number(value):
    assert type(value)(exact(value)) == value
