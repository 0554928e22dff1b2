from __future__ import annotations

import decimal
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.blend.weights import UNIT, shares, temperatures, whole_weight
from playhead.config import Spot
from playhead.errors import ConfigError

WHERE = Spot("blend.yaml", ("input_cfg",))
weights = st.lists(st.integers(0, 10**6) | st.floats(0, 1e6), min_size=1, max_size=20).filter(any)


def test_weights_are_exact_proportions_as_they_are_written():
    third = [Fraction(1, 10), Fraction(2, 10), Fraction(7, 10)]
    assert shares([0.1, 0.2, 0.7], 1, WHERE) == third
    assert shares([1, 2, 7], 1, WHERE) == third
    assert shares(["1e-3", 0.002, "0.007"], 1, WHERE) == third


def test_siblings_without_weights_are_equal():
    assert shares([None, None, None], 0.5, WHERE) == [Fraction(1, 3)] * 3


def test_zero_leaves_out():
    assert shares([0, 1, 0.0], 0, WHERE) == [0, 1, 0]
    assert shares([0, 1, 0.0], 1, WHERE) == [0, 1, 0]


def test_one_child_has_everything_whatever_its_weight():
    assert shares([0.003], 0.5, WHERE) == [1]


@pytest.mark.parametrize("temperature", [0.3, 0.5, 2, 0])
def test_temperature_is_an_exponent(temperature):
    given_weights = [0.7, 12, 4500.5]
    powers = [weight**temperature for weight in given_weights]
    found = shares(given_weights, temperature, WHERE)
    for share, power in zip(found, powers, strict=True):
        assert float(share) == pytest.approx(power / math.fsum(powers), rel=1e-14)


def test_powers_are_the_same_on_every_machine():
    # Integers out of decimal arithmetic; a C library's pow() need not agree on the last bit.
    found = [whole_weight(share) for share in shares([0.1, 3, 17.25, 1e9], 0.3, WHERE)]
    assert found == [4258925, 11815072, 19968100, 4258925198]
    with decimal.localcontext() as context:
        context.prec = 3
        again = [whole_weight(share) for share in shares([0.1, 3, 17.25, 1e9], 0.3, WHERE)]
    assert again == found


@given(weights, st.sampled_from([0, 0.25, 0.5, 1, 1.5]))
def test_shares_sum_to_one_and_keep_the_order_of_the_weights(listed, temperature):
    found = shares(listed, temperature, WHERE)
    assert sum(found) == 1
    for (weight, share), (other, theirs) in zip(
        zip(listed, found, strict=True), zip(listed[1:], found[1:], strict=True), strict=False
    ):
        assert (share == 0) == (weight == 0)
        if weight <= other:
            assert share <= theirs


@given(weights)
def test_rounded_weights_are_within_half_a_unit_each(listed):
    rounded = [whole_weight(share) for share in shares(listed, 1, WHERE)]
    assert abs(sum(rounded) - UNIT) <= len(rounded)


def test_a_share_above_zero_is_never_rounded_away():
    assert whole_weight(Fraction(1, 10**30)) == 1
    assert whole_weight(Fraction(0)) == 0
    assert whole_weight(Fraction(1)) == UNIT


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ([1, None, None], r"2 of 3 siblings have no weight \(blend.yaml: input_cfg\[1\]\)"),
        ([1, -0.5], r"weight -0.5 is not a number of at least 0 \(blend.yaml: input_cfg\[1\]\)"),
        ([math.nan, 1], "weight nan is not a number"),
        ([math.inf, 1], "weight inf is not a number"),
        ([True, 1], "weight True is not a number"),
        (["a lot", 1], "weight 'a lot' is not a number"),
        ([[1], 1], r"weight \[1\] is not a number"),
        ([0, 0.0], r"All weights are 0 \(blend.yaml: input_cfg\)"),
        ([0], "All weights are 0"),
    ],
)
def test_impossible_weights(listed, said):
    with pytest.raises(ConfigError, match=said):
        shares(listed, 1, WHERE)


def test_a_temperature_for_every_level():
    assert temperatures(None, 3, WHERE) == [1, 1, 1]
    assert temperatures(0.5, 3, WHERE) == [0.5, 0.5, 0.5]
    assert temperatures((0.5, 1, 0.0), 3, WHERE) == [0.5, 1, 0.0]
    with pytest.raises(ConfigError, match="has 2 numbers, and input_cfg has 3 levels"):
        temperatures((0.5, 1), 3, WHERE)
    with pytest.raises(ConfigError, match="has 2 numbers, and input_cfg has 1 level "):
        temperatures((0.5, 1), 1, WHERE)
