"""Edges of equal mass are those of Lhotse, also where samples weigh differently."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from lhotse.dataset.sampling.dynamic_bucketing import estimate_duration_buckets

from playhead.bins.equal_mass import equal_mass_edges
from support.spectra import spectrum_of

# Of 1/32 s: exact in binary and in units of 10 µs, so that no rounding decides.
_UNITS = 3125


class _Seconds:
    """Lhotse measures cuts by this; here the cuts are numbers already."""

    def measure_length(self, example):
        return example


@given(
    st.lists(st.integers(1, 1300) | st.integers(1, 6), min_size=2, max_size=200),
    st.integers(2, 40),
)
def test_edges_are_those_of_lhotse(lengths, num_buckets):
    num_buckets = min(num_buckets, len(lengths))
    mine = equal_mass_edges(spectrum_of(np.array(lengths) * _UNITS), num_buckets)
    theirs = estimate_duration_buckets([length / 32 for length in lengths], num_buckets, _Seconds())
    assert mine == [round(edge * 100_000) for edge in theirs]


def test_edges_of_real_durations_are_those_of_lhotse():
    seconds = np.round(np.random.default_rng(0).lognormal(1.9, 0.6, 20_000).clip(0.5, 30), 5)
    units = np.round(seconds * 100_000).astype(np.int64)
    theirs = estimate_duration_buckets(seconds.tolist(), 30, _Seconds())
    mine = equal_mass_edges(spectrum_of(units), 30)
    assert mine == [round(edge * 100_000) for edge in theirs]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), min_size=1, max_size=60))
def test_a_sample_of_weight_n_is_n_samples(rows):
    lengths, weights = np.array(rows, dtype=np.int64).T
    copied = np.repeat(lengths, weights)
    # Of one weight each: cells of several weights are taken for their mean.
    alike = np.full(len(copied), 0.25)
    assert equal_mass_edges(spectrum_of(copied, alike), 4) == equal_mass_edges(
        spectrum_of(copied), 4
    )


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=300), st.integers(2, 20))
def test_buckets_have_about_the_same_mass(lengths, num_buckets):
    lengths = np.sort(np.array(lengths))
    edges = equal_mass_edges(spectrum_of(lengths), num_buckets)
    share = lengths.sum() / num_buckets
    # An edge that comes n times stands for n buckets; what lies on edges may be on either side.
    for edge in set(edges):
        below = lengths[lengths < edge].sum()
        above = lengths[lengths <= edge].sum()
        number = edges.index(edge) + 1
        most = number * (share + lengths.max())
        assert below <= most
        assert above >= number * share


def test_samples_without_length_make_no_edges():
    assert equal_mass_edges(spectrum_of([0, 0, 0]), 3) == []
    assert equal_mass_edges(spectrum_of([]), 3) == []
