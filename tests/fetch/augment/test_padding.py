from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lhotse import CutSet, MonoCut
from lhotse.cut import MixedCut, PaddingCut

from playhead.fetch.augment.padding import pad_cut
from playhead.fetch.cuts import to_cut
from support.augmenting import RATE, audio_of, augmenter, keyed, prepared, sample


def directions(seconds=1.5):
    cut = to_cut(sample(), RATE, {})
    return Counter(
        tuple(
            type(track.cut) is PaddingCut for track in pad_cut(cut, seconds, "random", key).tracks
        )
        for key in range(300)
    )


@pytest.mark.parametrize("direction", ["left", "right", "both"])
def test_padding_is_lhotses(direction):
    made = augmenter(pad_min_duration=1.5, pad_direction=direction)
    (cut,) = prepared(made, [sample()], keyed([1]))
    (by_hand,) = CutSet.from_cuts([to_cut(sample(), RATE, {})]).pad(
        duration=1.5, direction=direction, preserve_id=True
    )
    np.testing.assert_array_equal(audio_of(cut), audio_of(by_hand))
    assert (cut.id, cut.duration, len(cut.supervisions)) == ("a.wav", 1.5, 1)
    assert cut.supervisions[0].start == by_hand.supervisions[0].start


def test_padding_of_21_seconds_on_the_left():
    (cut,) = prepared(augmenter(pad_min_duration=21, pad_direction="left"), [sample()], keyed([1]))
    assert isinstance(cut, MixedCut)
    assert cut.duration == 21
    assert isinstance(cut.tracks[0].cut, PaddingCut)
    assert isinstance(cut.tracks[1].cut, MonoCut)


def test_longer_samples_stay():
    (cut,) = prepared(augmenter(pad_min_duration=0.5), [sample()], keyed([1]))
    assert cut == to_cut(sample(), RATE, {})


def test_a_random_direction_is_one_of_three_alike():
    found = directions()
    assert found.keys() == {(True, False), (False, True), (True, False, True)}
    assert min(found.values()) > 70


def test_ids_of_padding_are_the_keys():
    made = augmenter(pad_min_duration=1.5)
    first, second = prepared(made, [sample(), sample()], keyed([1, 2]))
    (again,) = prepared(made, [sample()], keyed([1]))
    assert first.tracks[1].cut.id == again.tracks[1].cut.id != second.tracks[1].cut.id


@given(
    have=st.integers(1, 3000),
    wanted=st.integers(1, 400_000),
    rate=st.sampled_from([8000, 16000, 22050, 44100]),
    direction=st.sampled_from(["left", "right", "both"]),
)
def test_padding_is_never_longer_than_asked(have, wanted, rate, direction):
    cut = to_cut(sample(have / rate, rate=rate), rate, {})
    padded = pad_cut(cut, wanted / 1e6, direction, 0)
    exact = wanted * rate / 1e6
    if have >= exact:
        assert padded is cut
    else:
        assert exact - 1 <= padded.num_samples <= max(have, exact + rate / 1e6)
        assert padded.load_audio().shape == (1, padded.num_samples)
