"""Bins as keys: what is printed and what is written are the same numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playhead.bins.config_keys import keys_of, lines_of, yaml_of
from playhead.bins.decimals import in_decimals, rounded_up
from playhead.bins.quantized import quantized
from playhead.bins.result import Bins
from playhead.blend.yaml_loader import parse_yaml
from playhead.config import Options
from playhead.loader.settings import microseconds


@given(st.lists(st.integers(1, 10**14), min_size=1))
def test_every_number_survives_yaml_and_command_lines(units):
    bounds = [in_decimals(number, 5) for number in units]
    keys = {"bucket_duration_bins": [*bounds, [bounds[0], 3]], "use_bucketing": False}
    assert parse_yaml(yaml_of(keys, ["a\nb"]).encode(), "x.yaml") == keys
    printed = dict(line.split("=", 1) for line in lines_of(keys))
    assert parse_yaml(printed["bucket_duration_bins"].encode(), "x") == keys["bucket_duration_bins"]
    assert printed["use_bucketing"] == "0"


def test_lenient_bins_say_that_they_are():
    pairs = Bins(in_tokens=False, bounds=((2.5, 9), (4.0, 12)), ratios=None, longest=4.0)
    lenient = Options(bucketing_2d_strict_mode=False)
    assert keys_of(pairs, lenient)["bucketing_2d_strict_mode"] is False
    flat = Bins(in_tokens=False, bounds=(2.5, 4.0), ratios=None, longest=4.0)
    for bins, options in ((pairs, Options()), (flat, lenient)):
        assert "bucketing_2d_strict_mode" not in keys_of(bins, options)


@given(st.integers(1, 10**12))
def test_bounds_in_seconds_are_whole_microseconds_again(units):
    assert microseconds(in_decimals(units, 5)) == units * 10
    assert microseconds(in_decimals(units, 3)) == units * 1000


@given(st.floats(0, 1e9), st.integers(0, 6))
def test_nothing_is_rounded_down(value, decimals):
    assert value <= rounded_up(value, decimals) <= value + 10**-decimals * 1.001


@given(
    st.lists(st.integers(1, 100_000), min_size=1).map(sorted), st.sampled_from(["pow2", "pow2sum"])
)
def test_round_edges_are_round_and_the_last_is_not_below(edges, how):
    found = quantized(edges, how)
    assert found == sorted(set(found))
    assert len(found) <= len(set(edges))
    assert edges[-1] <= found[-1] < max(64, 2 * edges[-1])
    ones = 1 if how == "pow2" else 2
    assert all(edge >= 32 and edge.bit_count() <= ones for edge in found)
