from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from lhotse import Recording

from playhead.fetch.augment.compression import compress
from playhead.fetch.cuts import to_cut
from playhead.fetch.resampling import with_own_kernel
from support.augmenting import RATE, audio_of, augmentation, augmenter, keyed, prepared, sample
from support.corpus import wav_bytes

CODECS = ["opus", "mp3", "vorbis", "gsm"]


def settings(**options):
    return augmentation(compression_enabled=True, **{"compression_prob": 1.0, **options})


def effect(recording):
    return next(t for t in recording.transforms if type(t).__name__ == "Compress")


@pytest.mark.parametrize("codec", CODECS)
def test_compression_is_lhotses(codec):
    cut = to_cut(sample(), RATE, {})
    coded = compress(cut, settings(compression_codecs=(codec,)), 5)
    level = effect(coded.recording).compression_level
    by_hand = cut.compress(codec, level)
    with_own_kernel(by_hand.recording)
    assert coded == by_hand
    np.testing.assert_array_equal(audio_of(coded), audio_of(by_hand))
    assert (audio_of(coded) != audio_of(cut)).any()
    assert (len(coded.recording.transforms) == 3) == (codec == "gsm")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("seconds", [0.002, 0.02, 0.7])
def test_any_length_comes_back(codec, seconds):
    made = augmenter(compression_enabled=True, compression_prob=1.0, compression_codecs=(codec,))
    (cut,) = prepared(made, [sample(seconds)], keyed([9]))
    assert audio_of(cut).shape == (1, round(seconds * RATE))


def test_codecs_and_levels_are_drawn():
    cut = to_cut(sample(0.05), RATE, {})
    made = settings(
        compression_codecs=("opus", "mp3", "gsm"),
        compression_codec_weights=(1.0, 3.0, 0.0),
        compression_level_interval=(0.2, 0.6),
    )
    effects = [effect(compress(cut, made, key).recording) for key in range(800)]
    codecs = Counter(one.codec for one in effects)
    assert codecs.keys() == {"opus", "mp3"}
    assert codecs["mp3"] / 800 == pytest.approx(0.75, abs=0.05)
    levels = np.array([one.compression_level for one in effects])
    assert 0.2 <= levels.min() < 0.21
    assert 0.59 < levels.max() < 0.6


def test_the_probability_holds():
    cut = to_cut(sample(0.05), RATE, {})
    coded = [compress(cut, settings(compression_prob=0.1), key) is not cut for key in range(1000)]
    assert np.mean(coded) == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("enabled", [True, False])
def test_custom_recordings_only_if_asked(enabled):
    cut = to_cut(sample(), RATE, {})
    cut.target_audio = Recording.from_bytes(wav_bytes(0.5), "target")
    cut.score = 3
    coded = compress(cut, settings(compression_enable_for_custom_fields=enabled), 5)
    level = effect(coded.recording).compression_level
    by_hand = cut.compress("opus", level, compress_custom_fields=enabled)
    assert coded.custom == by_hand.custom
    np.testing.assert_array_equal(coded.load_target_audio(), by_hand.load_target_audio())
    assert bool(coded.target_audio.transforms) == enabled
    assert not cut.target_audio.transforms


def test_every_track_is_coded_and_padding_stays():
    cut = to_cut(sample(), RATE, {})
    mixed = cut.append(to_cut(sample(name="b"), RATE, {})).pad(duration=3.0)
    coded = compress(mixed, settings(), 5)
    assert [type(track.cut).__name__ for track in coded.tracks] == [
        "MonoCut",
        "MonoCut",
        "PaddingCut",
    ]
    assert all(effect(track.cut.recording) for track in coded.tracks[:2])
    assert not audio_of(coded)[:, 32000:].any()


def test_what_was_done_to_a_mix_comes_first_and_is_kept():
    """Lhotse's `compress` of a mixed cut forgets the reverberation that was to be added."""
    made = augmenter(
        rir_enabled=True,
        rir_prob=1.0,
        compression_enabled=True,
        compression_prob=1.0,
        pad_min_duration=1.2,
    )
    reverb = augmenter(rir_enabled=True, rir_prob=1.0, pad_min_duration=1.2)
    (cut,) = prepared(made, [sample()], keyed([4]))
    (wet,) = prepared(reverb, [sample()], keyed([4]))
    names = [type(transform).__name__ for transform in cut.transforms]
    assert names == ["ReverbWithImpulseResponse", "SameLength"]
    (codec,) = cut.transforms[1].transforms
    np.testing.assert_array_equal(audio_of(cut), codec(audio_of(wet), RATE))
