"""Length classes: inclusive borders, equal mass, and no class that one outlier makes expensive."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from playhead.plan.classes import class_by_bins, class_by_mass, set_apart
from support.plans import speech

_lengths = st.lists(st.integers(0, 10**11), min_size=1, max_size=60).map(np.array)


@given(_lengths, st.integers(1, 300))
def test_classes_go_from_long_to_short(lengths, count):
    classes = class_by_mass(lengths, count)
    for shorter, longer in zip(np.sort(lengths), np.sort(lengths)[1:], strict=False):
        below = classes[lengths == shorter].min()
        assert below >= classes[lengths == longer].max() or shorter == longer


def test_classes_have_equal_mass():
    lengths = np.random.default_rng(0).integers(500_000, 30_000_000, 50_000)
    classes = class_by_mass(lengths, 100)
    mass = np.bincount(classes, weights=lengths) / lengths.sum()
    assert mass.max() < 0.012
    assert 100 <= len(np.unique(classes)) <= 130


def test_one_outlier_does_not_make_its_class_expensive():
    """A ten-hour row among 30-s rows: in one class with it, they would all be batches of one."""
    lengths = np.append(speech(50_000), 36_000_000_000)
    classes = class_by_mass(lengths, 100)
    assert classes[-1] == 0
    assert np.count_nonzero(classes == 0) == 1
    for number in np.unique(classes):
        inside = lengths[classes == number]
        assert inside.max() <= 1.26 * max(inside.min(), 10_000)


def test_borders_are_inclusive():
    """A length that equals a border belongs to the class below it, as trainers' bins have it."""
    bins = (2_000_000, 5_000_000)
    lengths = np.array([0, 2_000_000, 2_000_001, 5_000_000])
    assert class_by_bins(lengths, bins).tolist() == [1, 1, 0, 0]


def test_above_the_last_border_classes_stay_narrow():
    bins = (2_000_000, 5_000_000)
    lengths = np.array([5_000_000, 5_000_001, 6_200_000, 30_000_000, 600_000_000])
    classes = class_by_bins(lengths, bins)
    assert classes[1] == classes[2]
    assert len(set(classes.tolist())) == 4
    assert classes.tolist() == sorted(classes.tolist(), reverse=True)


def test_samples_above_the_limit_have_a_class_of_their_own():
    lengths = np.array([5, 30, 31, 7])
    classes = np.array([1, 0, 0, 1], dtype=np.uint16)
    assert set_apart(classes, lengths, 30).tolist() == [2, 1, 0, 2]
    assert set_apart(classes, lengths, 31) is classes
    assert set_apart(classes, lengths, None) is classes
