from __future__ import annotations

import numpy as np
import pytest
from lhotse import MonoCut
from lhotse.cut import MixedCut

from playhead.fetch.augment.speed import change_speed
from playhead.fetch.cuts import to_cut
from support.augmenting import RATE, audio_of, augmenter, keyed, prepared, sample


@pytest.mark.parametrize("speed", [900, 1000, 1100])
@pytest.mark.parametrize("seconds", [0.3, 1.0, 1.2345])
def test_speed_is_lhotses(speed, seconds):
    (cut,) = prepared(augmenter(perturb_speed=True), [sample(seconds)], keyed([1], speed=speed))
    by_hand = to_cut(sample(seconds), RATE, {})
    if speed != 1000:
        by_hand = by_hand.perturb_speed(speed / 1000, affix_id=False)
    assert cut == by_hand
    np.testing.assert_array_equal(audio_of(cut), audio_of(by_hand))
    assert cut.id == "a.wav"
    assert cut.num_samples == pytest.approx(seconds * RATE * 1000 / speed, abs=1)


def test_the_plan_alone_decides_it():
    """Whatever the key is: the length was promised."""
    made = augmenter(perturb_speed=True)
    for key in range(20):
        (cut,) = prepared(made, [sample()], keyed([key], speed=1100))
        assert cut.num_samples == 14545
        (cut,) = prepared(made, [sample()], keyed([key]))
        assert cut.num_samples == 16000


def test_supervisions_move_along():
    (cut,) = prepared(augmenter(perturb_speed=True), [sample(1.0)], keyed([1], speed=900))
    assert (cut.supervisions[0].start, cut.supervisions[0].duration) == (0, cut.duration)


def test_rounding_twice_adds_nothing():
    """400 samples at 8 kHz are 1103 at 22,050 Hz, and these 1226 at nine tenths of the speed."""
    made = augmenter(sample_rate=22050, perturb_speed=True)
    (cut,) = prepared(made, [sample(0.05, rate=8000)], keyed([1], speed=900))
    promised = -(-50_000 * 1000 // 900)
    assert cut.num_samples == 1225 == round(promised * 22050 / 1e6)
    assert audio_of(cut).shape == (1, 1225)


def test_what_is_to_be_done_to_a_mix_is_not_lost():
    mix = to_cut(sample(), RATE, {}).pad(duration=1.5).normalize_loudness(-20)
    assert isinstance(mix, MixedCut)
    faster = change_speed(mix, 1100, 1_500_000)
    assert faster.transforms == mix.transforms
    assert isinstance(to_cut(sample(), RATE, {}), MonoCut)
