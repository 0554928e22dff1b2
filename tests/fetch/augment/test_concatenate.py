from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lhotse import CutSet
from lhotse.dataset.cut_transforms import CutConcatenate

from playhead.fetch.augment.concatenate import join_cuts
from playhead.fetch.cuts import to_cut
from playhead.fetch.waveforms import pad_waveforms
from support.augmenting import RATE, audio_of, augmenter, facts_of, keyed, prepared, sample


def cut_of(seconds: float, name: str = "a"):
    return to_cut(sample(seconds, name), RATE, {})


@given(
    tenths=st.lists(st.integers(1, 40), max_size=14),
    gap=st.sampled_from([0.0, 0.1, 0.35]),
    factor=st.sampled_from([0.5, 1.0, 1.7, 4.0]),
)
def test_cuts_are_joined_as_lhotse_does(tenths, gap, factor):
    cuts = [cut_of(tenth / 20, f"{i}") for i, tenth in enumerate(tenths)]
    joined = join_cuts(cuts, list(range(len(cuts))), gap=gap, duration_factor=factor)
    by_hand = CutConcatenate(gap=gap, duration_factor=factor)(CutSet(cuts)) if cuts else []
    assert [one.cut.duration for one in joined] == [cut.duration for cut in by_hand]
    for one, theirs in zip(joined, by_hand, strict=True):
        assert [s.text for s in one.cut.supervisions] == [s.text for s in theirs.supervisions]
        assert [s.start for s in one.cut.supervisions] == [s.start for s in theirs.supervisions]
        assert one.cut.id == "+".join(str(place) for place in one.members)
    assert sorted(place for one in joined for place in one.members) == list(range(len(cuts)))


def test_a_second_and_a_tenth_between():
    """Three seconds at most: two fit, with the gap between them, and one is left."""
    made = augmenter(concatenate_samples=True, concatenate_duration_factor=3, db_norm=None)
    cuts = prepared(made, [sample(1.0, f"{i}.wav") for i in range(3)], keyed([1, 2, 3]))
    assert [audio_of(cut).shape[1] for cut in cuts] == [33600, 16000]
    assert [cut.id for cut in cuts] == ["0.wav+2.wav", "1.wav"]
    first = audio_of(cuts[0])[0]
    np.testing.assert_array_equal(first[:16000], audio_of(cut_of(1.0, "0.wav"))[0])
    assert not first[16000:17600].any()
    np.testing.assert_array_equal(first[17600:], audio_of(cut_of(1.0, "2.wav"))[0])


@pytest.mark.parametrize("merge", [True, False])
def test_texts_are_merged_if_asked(merge):
    made = augmenter(
        concatenate_samples=True,
        concatenate_duration_factor=9,
        concatenate_merge_supervisions=merge,
        db_norm=None,
    )
    (cut,) = prepared(made, [sample(1.0, name) for name in "abc"], keyed([1, 2, 3]))
    texts = [supervision.text for supervision in cut.supervisions]
    assert texts == (
        ["text of a text of c text of b"] if merge else ["text of a", "text of c", "text of b"]
    )


def test_tracks_are_called_what_the_first_key_says():
    made = augmenter(concatenate_samples=True, concatenate_duration_factor=9, db_norm=None)
    examples = [sample(1.0, name) for name in "abc"]
    (first,) = prepared(made, examples, keyed([1, 2, 3]))
    (again,) = prepared(made, examples, keyed([1, 20, 30]))
    (other,) = prepared(made, examples, keyed([9, 2, 3]))
    assert facts_of(first) == facts_of(again) != facts_of(other)


def test_what_follows_is_keyed_by_the_first():
    made = augmenter(
        concatenate_samples=True,
        concatenate_duration_factor=9,
        db_norm=None,
        clipping_enabled=True,
        clipping_prob=0.5,
    )
    alone = augmenter(clipping_enabled=True, clipping_prob=0.5)
    clipped = set()
    for key in range(12):
        (cut,) = prepared(made, [sample(0.2, "a"), sample(0.1, "b")], keyed([key, 99]))
        (one,) = prepared(alone, [sample(0.2, "a")], keyed([key]))
        transforms = cut.tracks[0].cut.recording.transforms
        assert transforms == one.recording.transforms
        clipped.add(bool(transforms))
    assert clipped == {True, False}


def test_datasets_of_examples_get_joined_samples_too():
    made = augmenter(concatenate_samples=True, concatenate_duration_factor=3, db_norm=None)
    examples = [sample(1.0, f"{i}.wav", custom={"speaker": i}) for i in range(3)]
    joined, members = made.of_examples(examples, keyed([1, 2, 3]), [{}] * 3)
    assert members == [(0, 2), (1,)]
    assert [one.id for one in joined] == ["0.wav+2.wav", "1.wav"]
    assert [one.text for one in joined] == ["text of 0.wav text of 2.wav", "text of 1.wav"]
    assert [one.custom["speaker"] for one in joined] == [0, 1]
    audio, lengths = pad_waveforms(joined, RATE)
    assert lengths.tolist() == [33600, 16000]
    cuts = prepared(made, examples, keyed([1, 2, 3]))
    np.testing.assert_array_equal(audio[0].numpy(), audio_of(cuts[0])[0])


def loudness_of(samples: np.ndarray) -> float:
    pyloudnorm = pytest.importorskip("pyloudnorm")
    return pyloudnorm.Meter(RATE).integrated_loudness(samples.T)


def test_samples_get_one_loudness():
    pytest.importorskip("pyloudnorm")
    made = augmenter(concatenate_samples=True, db_norm=-30.0)
    cuts = prepared(made, [sample(1.0, "a"), sample(0.9, "b")], keyed([1, 2]))
    assert len(cuts) == 2
    for cut in cuts:
        assert loudness_of(audio_of(cut)) == pytest.approx(-30, abs=0.01)
        by_hand = cut_of(cut.duration, cut.id).normalize_loudness(-30.0)
        np.testing.assert_array_equal(audio_of(cut), audio_of(by_hand))


def test_silence_stays_silent():
    """Loudness of silence is minus infinity, and Lhotse makes NaNs of it."""
    pytest.importorskip("pyloudnorm")
    from playhead.fetch.augment.loudness import LoudnessNormalization

    silent = np.zeros((1, RATE), np.float32)
    np.testing.assert_array_equal(LoudnessNormalization(-25.0)(silent, RATE), silent)
    assert math.isclose(silent.sum(), 0)
