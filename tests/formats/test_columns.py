from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lhotse.utils import compute_num_samples

from playhead.formats import BadRowError
from playhead.formats.columns import MAX_SECONDS, microseconds, rates, sample_counts


def exact_microseconds(text: str) -> int:
    """Round the decimal itself."""
    return int((Decimal(text) * 1_000_000).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


@given(st.integers(0, 10**12), st.integers(0, 9))
@example(625, 7)
@example(1875, 7)
@example(5, 7)
def test_decimals_are_rounded_half_to_even(digits: int, places: int):
    value = Decimal(digits).scaleb(-places)
    text = str(min(value, Decimal(10_000)))
    assert microseconds([float(text)]).tolist() == [exact_microseconds(text)]


@given(st.integers(0, 5_000_000), st.sampled_from([8000, 16000, 22050, 44100, 48000]))
def test_whole_samples_survive(samples: int, rate: int):
    seconds = samples / rate
    assert microseconds([seconds]).tolist() == [exact_microseconds(repr(seconds))]
    assert sample_counts([seconds], np.array([rate], np.int32)).tolist() == [samples]


@given(
    st.floats(0, 100_000, allow_nan=False),
    st.sampled_from([8000, 11025, 16000, 22050, 24000, 44100, 48000]),
)
@example(0.00003125, 16000)
@example(0.49999999999 / 8000, 8000)
def test_samples_are_counted_as_lhotse_does(seconds: float, rate: int):
    mine = sample_counts([seconds], np.array([rate], np.int32))
    assert mine.tolist() == [compute_num_samples(seconds, rate)]


@pytest.mark.parametrize("bad", [-0.1, float("nan"), float("inf"), MAX_SECONDS * 1.01])
def test_bad_lengths_are_refused(bad: float):
    with pytest.raises(BadRowError, match="duration is"):
        microseconds([1.0, bad])


def test_the_longest_sample_is_good():
    assert microseconds([MAX_SECONDS]).tolist() == [10**14]


def test_rates_are_whole_and_positive():
    assert rates([16000.0, None, 8000]).tolist() == [16000, 0, 8000]
    for bad in (-8000.0, 16000.5, 2.0**31):
        with pytest.raises(BadRowError, match="sampling rate"):
            rates([16000.0, bad])
