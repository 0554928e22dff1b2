"""Edges of least padding are the best there are."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.bins import padding
from playhead.bins.equal_mass import equal_mass_edges
from playhead.bins.padding import least_padding_edges, padding_share
from support.spectra import spectrum_of


def closed(edges, spectrum):
    return sorted({*edges, spectrum.longest})


def padding_of(spectrum, edges):
    """The share of padding, sample by sample."""
    padded = [min(edge for edge in edges if edge >= length) for length in spectrum.lengths.tolist()]
    room = float(np.dot(padded, spectrum.weights))
    return 1 - float(np.dot(spectrum.lengths, spectrum.weights)) / room if room else 0.0


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=11),
    st.integers(2, 6),
)
def test_no_other_edges_need_less_padding(rows, num_buckets):
    lengths, weights = np.array(rows).T
    spectrum = spectrum_of(lengths, weights / 4)
    mine = closed(least_padding_edges(spectrum, num_buckets), spectrum)
    assert len(mine) <= num_buckets
    inner = spectrum.lengths[:-1].tolist()
    best = min(
        padding_of(spectrum, [*some, spectrum.longest])
        for count in range(num_buckets)
        for some in combinations(inner, min(count, len(inner)))
    )
    assert padding_of(spectrum, mine) == pytest.approx(best, abs=1e-12)
    assert padding_share(spectrum, mine) == pytest.approx(best, abs=1e-12)


@given(st.lists(st.integers(1, 3000), min_size=2, max_size=400), st.integers(2, 30))
def test_it_is_never_worse_than_equal_mass(lengths, num_buckets):
    spectrum = spectrum_of(lengths)
    best = closed(least_padding_edges(spectrum, num_buckets), spectrum)
    equal = closed(equal_mass_edges(spectrum, num_buckets), spectrum)
    assert padding_share(spectrum, best) <= padding_share(spectrum, equal) + 1e-12


def test_many_lengths_lose_next_to_nothing_to_the_first_choice_among_some(monkeypatch):
    lengths = np.random.default_rng(1).lognormal(1.9, 0.6, 30_000) * 1e5
    spectrum = spectrum_of(lengths.astype(np.int64))
    assert len(spectrum.lengths) > 20_000
    quick = padding_share(spectrum, closed(least_padding_edges(spectrum, 12), spectrum))
    monkeypatch.setattr(padding, "_MOST_CANDIDATES", 1 << 30)
    exact = padding_share(spectrum, closed(least_padding_edges(spectrum, 12), spectrum))
    assert exact <= quick <= exact * 1.0001


def test_one_length_needs_no_edges():
    assert least_padding_edges(spectrum_of([7, 7]), 4) == []
    assert padding_share(spectrum_of([7, 7]), [7]) == 0.0
    assert padding_share(spectrum_of([0]), [1]) == 1.0
    assert padding_share(spectrum_of([]), [1]) == 0.0
