from __future__ import annotations

import numpy as np
import pytest

from playhead.fetch.augment.clipping import clip
from playhead.fetch.cuts import to_cut
from playhead.fetch.resampling import with_own_kernel
from support.augmenting import RATE, audio_of, augmentation, augmenter, keyed, prepared, sample


def settings(**options):
    return augmentation(clipping_enabled=True, **{"clipping_prob": 1.0, **options})


def effect(cut):
    return next(t for t in cut.recording.transforms if type(t).__name__ == "Clipping")


@pytest.mark.parametrize("oversampling", [None, 2, 4])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("hard", [0.0, 1.0])
def test_clipping_is_lhotses(oversampling, normalize, hard):
    cut = to_cut(sample(), RATE, {})
    clipped = clip(
        cut,
        settings(
            clipping_oversampling=oversampling,
            clipping_normalize=normalize,
            clipping_prob_hard=hard,
        ),
        5,
    )
    by_hand = cut.clip_amplitude(
        hard=bool(hard),
        gain_db=effect(clipped).gain_db,
        normalize=normalize,
        oversampling=oversampling,
        affix_id=False,
    )
    with_own_kernel(by_hand.recording)
    assert clipped == by_hand
    np.testing.assert_array_equal(audio_of(clipped), audio_of(by_hand))
    assert (audio_of(clipped) != audio_of(cut)).any()
    assert clipped.id == cut.id


def test_gain_and_hardness_are_drawn():
    cut = to_cut(sample(0.05), RATE, {})
    made = settings(clipping_gain_db=(3.0, 9.0), clipping_prob_hard=0.25)
    effects = [effect(clip(cut, made, key)) for key in range(800)]
    gains = np.array([one.gain_db for one in effects])
    assert 3 <= gains.min() < 3.1
    assert 8.9 < gains.max() < 9
    assert gains.mean() == pytest.approx(6, abs=0.2)
    assert np.mean([one.hard for one in effects]) == pytest.approx(0.25, abs=0.05)


def test_the_probability_holds():
    cut = to_cut(sample(0.05), RATE, {})
    clipped = [clip(cut, settings(clipping_prob=0.8), key) is not cut for key in range(1000)]
    assert np.mean(clipped) == pytest.approx(0.8, abs=0.04)


def test_padding_between_tracks_is_no_obstacle():
    """Lhotse's mixed cuts cannot be clipped where padding is one of their tracks."""
    made = augmenter(clipping_enabled=True, clipping_prob=1.0, pad_min_duration=2.0)
    (cut,) = prepared(made, [sample()], keyed([3]))
    assert not audio_of(cut)[:, 16000:].any()
    assert effect(cut.tracks[0].cut)
