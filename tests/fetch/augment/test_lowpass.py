from __future__ import annotations

import numpy as np
import pytest
from lhotse.augmentation.torchaudio import get_or_create_resampler

from playhead.fetch.augment.lowpass import filter_low, lower_rate
from playhead.fetch.cuts import to_cut
from playhead.fetch.resampling import resample_cut
from support.augmenting import RATE, audio_of, augmentation, augmenter, keyed, prepared, sample


def rate_of(cut) -> int | None:
    transforms = cut.recording.transforms
    return transforms[0].target_sampling_rate if transforms else None


def test_the_filter_is_two_resamplings():
    settings = augmentation(lowpass_enabled=True, lowpass_prob=1.0)
    cut = to_cut(sample(), RATE, {})
    filtered = filter_low(cut, settings, 7)
    by_hand = resample_cut(resample_cut(cut, rate_of(filtered)), RATE)
    np.testing.assert_array_equal(audio_of(filtered), audio_of(by_hand))
    assert (filtered.id, filtered.num_samples) == (cut.id, cut.num_samples)


def test_high_frequencies_are_gone():
    settings = augmentation(
        lowpass_enabled=True, lowpass_prob=1.0, lowpass_frequencies_interval=(2000.0, 2000.0)
    )
    cut = to_cut(sample(2.0), RATE, {})
    before = np.abs(np.fft.rfft(audio_of(cut)[0]))
    after = np.abs(np.fft.rfft(audio_of(filter_low(cut, settings, 1))[0]))
    hertz = np.fft.rfftfreq(2 * RATE, 1 / RATE)
    assert after[hertz > 2300].mean() < 0.01 * before[hertz > 2300].mean()
    assert after[hertz < 1500].mean() == pytest.approx(before[hertz < 1500].mean(), rel=0.02)


def test_cut_offs_fill_the_interval_evenly_in_octaves():
    settings = augmentation(
        lowpass_enabled=True, lowpass_prob=1.0, lowpass_frequencies_interval=(1000.0, 4000.0)
    )
    cut = to_cut(sample(0.1), RATE, {})
    cut_offs = np.array([rate_of(filter_low(cut, settings, key)) / 2 for key in range(600)])
    assert 950 <= cut_offs.min() < 1050
    assert 3900 < cut_offs.max() <= 4000
    assert (cut_offs < 2000).mean() == pytest.approx(0.5, abs=0.06)


def test_the_probability_holds():
    settings = augmentation(lowpass_enabled=True, lowpass_prob=0.3)
    cut = to_cut(sample(0.1), RATE, {})
    filtered = [filter_low(cut, settings, key) is not cut for key in range(1000)]
    assert np.mean(filtered) == pytest.approx(0.3, abs=0.04)


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 24000, 44100, 48000])
def test_no_kernel_is_large(rate):
    """Rates like 14,002 and 16,000 Hz need 224 MB for each of the two directions."""
    for cutoff in np.linspace(0.2 * rate, rate / 2, 5):
        lower = lower_rate(cutoff, rate)
        assert 2 * cutoff - 100 <= lower <= 2 * cutoff
        for pair in ((rate, lower), (lower, rate)):
            kernel = getattr(get_or_create_resampler(*pair), "kernel", np.zeros(0))
            assert kernel.nbytes < 4_000_000


def test_mixed_samples_and_padding():
    made = augmenter(lowpass_enabled=True, lowpass_prob=1.0, pad_min_duration=1.5)
    (cut,) = prepared(made, [sample()], keyed([3]))
    assert audio_of(cut).shape == (1, 24000)
    assert rate_of(cut.tracks[0].cut) is not None
