from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lhotse import CutSet, Recording, SupervisionSegment
from lhotse.cut import MixedCut

from playhead.fetch.augment.stretch import num_samples, take_of_example, take_stretch
from playhead.fetch.cuts import to_cut
from playhead.fetch.waveforms import waveform
from support.augmenting import (
    RATE,
    audio_of,
    augmenter,
    facts_of,
    keyed,
    of_cut,
    prepared,
    sample,
)
from support.corpus import wav_bytes

SECOND = 1_000_000


def spoken(path=None, seconds: float = 2.0, *, parts: int = 4):
    """A cut of one second of a file of three, with supervisions that follow one another."""
    data = wav_bytes(3.0, seed=9)
    if path is not None:
        (path / "a.wav").write_bytes(data)
        recording = Recording.from_file(path / "a.wav", recording_id="r")
    else:
        recording = Recording.from_bytes(data, "r")
    cut = recording.to_cut().truncate(offset=0.5, duration=seconds).with_id("row")
    length = seconds / parts
    cut.supervisions = [
        SupervisionSegment(
            id=f"s{i}", recording_id="r", start=i * length, duration=length, text=f"w{i}"
        )
        for i in range(parts)
    ]
    return cut


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("start", "span"), [(0, 500_000), (400_000, 700_000), (250_000, -1)])
def test_a_stretch_is_lhotses_truncation(start, span, keep):
    cut = spoken()
    taken = take_stretch(cut, start, span, keep_excessive=keep)
    by_hand = cut.truncate(
        offset=start / SECOND,
        duration=None if span < 0 else span / SECOND,
        keep_excessive_supervisions=keep,
        preserve_id=True,
    )
    assert taken == by_hand
    np.testing.assert_array_equal(audio_of(taken), audio_of(by_hand))


def test_truncation_to_half_a_second_gives_8000_samples():
    made = augmenter(truncate_duration=0.5)
    cuts = prepared(
        made, [sample(1.0, f"{i}.wav") for i in range(4)], keyed(range(4), span_us=500_000)
    )
    assert [audio_of(cut).shape for cut in cuts] == [(1, 8000)] * 4
    assert [cut.id for cut in cuts] == [f"{i}.wav" for i in range(4)]


def test_windows_are_lhotses(tmp_path):
    cut = spoken(tmp_path)
    made = augmenter(cut_into_windows_duration=0.75, cut_into_windows_hop=0.5)
    parts = np.arange(4)
    spans = np.minimum(750_000, 2_000_000 - parts * 500_000)
    batch = keyed([5, 6, 7, 8], part=parts, start_us=parts * 500_000, span_us=spans)
    cuts = prepared(made, [of_cut(cut)] * 4, batch)
    by_hand = list(cut.cut_into_windows(duration=0.75, hop=0.5))
    assert [one.id for one in by_hand] == [one.id for one in cuts]
    for one, theirs in zip(cuts, by_hand, strict=True):
        assert facts_of(one)[-1] == facts_of(theirs)[-1]
        # Lhotse compares floats here, and in `truncate` with a tolerance.
        assert [s.text for s in one.supervisions] == [s.text for s in theirs.supervisions]
    assert [one.id for one in cuts] == ["row-0", "row-1", "row-2", "row-3"]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("start", "span"), [(0, 600_000), (250_000, 500_000), (900_000, -1)])
@pytest.mark.parametrize("rate", [16000, 8000])
def test_samples_of_files_give_the_same_without_lhotse(tmp_path, start, span, keep, rate):
    """What is read straight from its file is what the cut would have given."""
    cut = spoken(tmp_path)
    row = of_cut(cut)
    plain = sample(2.0)
    for example in (
        replace(
            row,
            text="w0 w1 w2 w3",
            audio=replace(
                plain.audio, source=str(tmp_path / "a.wav"), start=cut.start, duration=2.0
            ),
        ),
        plain,
    ):
        fast = take_of_example(example, start, span, rate, keep_excessive=keep)
        slow = take_stretch(to_cut(example, rate, {}), start, span, keep_excessive=keep)
        samples, found = waveform(fast, rate)
        assert found == rate
        np.testing.assert_array_equal(samples, audio_of(slow))
        texts = [s.text for s in slow.supervisions]
        assert fast.text == (" ".join(texts) if texts else None)
        again = to_cut(fast, rate, {})
        assert (again.id, again.num_samples) == (slow.id, slow.num_samples)
        if example.cut_data is not None:
            assert [(s.start, s.duration, s.text) for s in again.supervisions] == [
                (s.start, s.duration, s.text) for s in slow.supervisions
            ]


def test_the_fast_way_changes_no_row():
    example = replace(of_cut(spoken()), audio=sample(2.0).audio)
    before = repr(example.cut_data)
    take_of_example(example, 100_000, 500_000, RATE, keep_excessive=False)
    assert repr(example.cut_data) == before


def test_stretches_alone_need_no_lhotse(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav_bytes(1.0))
    code = f"""if True:
        import sys
        sys.path.insert(0, "tests")
        import numpy as np
        from playhead.config import Options
        from playhead.fetch import pad_waveforms
        from playhead.fetch.augment import Augmentation, Augmenter
        from playhead.formats import Audio, Example
        from support.fetching import PLACE, micro_batch
        from dataclasses import replace
        made = Augmenter(
            Augmentation.from_options(Options(cut_into_windows_duration=0.25)), None, 16000
        )
        audio = Audio(source={str(tmp_path / "a.wav")!r}, duration=1.0)
        row = Example(id="a", text="t", language=None, audio=audio, place=PLACE)
        batch = replace(
            micro_batch([0, 0]),
            part=np.array([0, 3]),
            start_us=np.array([0, 750_000]),
            span_us=np.array([250_000, 250_000]),
        )
        examples, members = made.of_examples([row, row], batch, [{{}}, {{}}])
        waves, lengths = pad_waveforms(examples, 16000)
        assert [one.id for one in examples] == ["a-0", "a-3"], examples
        assert lengths.tolist() == [4000, 4000]
        assert "lhotse" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_to_be_done_to_a_mix_is_not_lost():
    """Lhotse forgets the transforms of a mix when it is truncated."""
    mix = spoken().pad(duration=3.0, preserve_id=True).normalize_loudness(-20)
    assert isinstance(mix, MixedCut)
    for span in (500_000, 2_500_000):
        taken = take_stretch(mix, 100_000, span, keep_excessive=True)
        transforms = taken.transforms if isinstance(taken, MixedCut) else taken.recording.transforms
        assert transforms == mix.transforms


def test_tags_stay_where_the_first_track_is_gone(tmp_path):
    first, second = spoken(tmp_path).with_id("one"), spoken(tmp_path).with_id("two")
    made = augmenter(truncate_duration=0.5)
    (cut,) = made.prepare(
        [of_cut(first.append(second, preserve_id="left"))],
        keyed([1], start_us=2_200_000, span_us=500_000),
        [{"corpus": "x"}],
    )
    assert cut.corpus == "x"


@given(us=st.integers(0, 10**10), rate=st.integers(1, 200_000))
def test_whole_samples_never_take_longer_than_promised(us, rate):
    count = num_samples(us, rate)
    assert count * SECOND <= (us + 1) * rate
    assert us * rate < (count + 1) * SECOND


def test_cut_sets_of_lhotse_agree():
    """The same through Lhotse's own set-wise call."""
    cut = spoken()
    by_hand = CutSet.from_cuts([cut]).truncate(
        max_duration=0.5, offset_type="end", preserve_id=True
    )
    taken = take_stretch(cut, 1_500_000, 500_000, keep_excessive=True)
    assert [taken] == list(by_hand)


def test_a_window_of_nothing_but_padding_is_silence(tmp_path):
    """Padding alone can neither be padded nor joined with its like."""
    row = of_cut(spoken(tmp_path).pad(duration=8.0, preserve_id=True))
    made = augmenter(
        cut_into_windows_duration=1.5,
        pad_min_duration=2.0,
        concatenate_samples=True,
        concatenate_duration_factor=9,
        db_norm=None,
        perturb_speed=True,
        clipping_enabled=True,
        clipping_prob=1.0,
        compression_enabled=True,
        compression_prob=1.0,
    )
    batch = keyed([1, 2], part=[2, 3], start_us=[3_000_000, 4_500_000], span_us=1_500_000)
    cuts = made.prepare([row, row], batch, [{"corpus": "x"}] * 2)
    assert [(cut.id, cut.num_samples, cut.corpus) for cut in cuts] == [
        ("row-2", 32000, "x"),
        ("row-3", 32000, "x"),
    ]
    (joined,) = made.after(cuts, batch.sample_keys)
    assert audio_of(joined).shape == (1, 32000 + 1600 + 32000)
    assert np.abs(audio_of(joined)).max() < 1e-3
    assert joined.supervisions == []


def test_what_is_left_of_a_mix_is_called_what_the_mix_is():
    first, second = spoken().with_id("one"), spoken().with_id("two")
    mix = first.append(second).with_id("both")
    assert take_stretch(mix, 2_500_000, 500_000, keep_excessive=True).id == "both"
    assert take_stretch(mix, 1_500_000, 1_000_000, keep_excessive=True).id == "both"
