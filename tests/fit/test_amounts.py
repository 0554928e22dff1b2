"""Amounts of memory are read as people write them, and shown so that they can be read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError
from playhead.fit.amounts import read_amount, shown_amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("80GiB", 80 << 30),
        ("80 gib", 80 << 30),
        ("80G", 80 << 30),
        ("0.5m", 1 << 19),
        ("24GB", 24 * 10**9),
        ("123456", 123456),
        ("7 B", 7),
    ],
)
def test_an_amount_is_read(text, amount):
    assert read_amount(text, "--memory") == amount


@pytest.mark.parametrize(
    "text", ["", "GiB", "-3GiB", "0GiB", "80 cows", "8e9", "1GiB2", "9" * 40, "9" * 400, "0.4b"]
)
def test_anything_else_is_refused(text):
    with pytest.raises(ConfigError, match=r"no amount of memory.*--memory"):
        read_amount(text, "--memory")


@given(st.integers(1, 1 << 55))
def test_what_is_shown_is_read_again_within_its_last_digit(amount):
    shown = shown_amount(amount)
    assert abs(read_amount(shown, "") - amount) <= max(1, amount // 190)
    assert "1024" not in shown
