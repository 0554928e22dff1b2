from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile as sf
from lhotse import Recording, SupervisionSegment
from lhotse.cut import MixedCut

from playhead.blend.leaf import Concatenation
from playhead.fetch.cuts import to_cut
from playhead.fetch.joined import join_examples, joined_cut
from playhead.fetch.waveforms import pad_waveforms, waveform
from playhead.formats import Audio, Example
from support.corpus import tone, wav_bytes
from support.fetching import PLACE

if TYPE_CHECKING:
    from lhotse.cut import Cut

RATE = 16000


def samples(seconds: float, rate: int = RATE, seed: int = 0) -> np.ndarray:
    return (tone(seconds, rate, seed=seed)[:, 0] / 32768).astype(np.float32)


def example(number: int, seconds: float, **facts: Any) -> Example:
    facts = {"text": f"said {number}", "language": "en", "custom": {"n": number}, **facts}
    rate = facts.pop("rate", RATE)
    audio = Audio(source=wav_bytes(seconds, rate, seed=number))
    return Example(id=f"row-{number}", audio=audio, place=PLACE, **facts)


def cut_of(number: int, seconds: float, *, target_rate: int | None = None) -> Cut:
    """A cut that says something in its second half, and may have a `target_audio`."""
    cut = Recording.from_bytes(wav_bytes(seconds, RATE, seed=number), f"rec-{number}").to_cut()
    cut = cut.with_id(f"cut-{number}")
    cut.supervisions = [
        SupervisionSegment(
            f"sup-{number}", cut.recording_id, seconds / 2, seconds / 2, text=f"said {number}"
        )
    ]
    cut.custom = {"n": number}
    if target_rate is not None:
        data = wav_bytes(seconds, target_rate, seed=100 + number)
        cut.target_audio = Recording.from_bytes(data, f"target-{number}")
    return cut


def laid_out(parts: list[np.ndarray], gap: int) -> np.ndarray:
    silence = np.zeros(gap, np.float32)
    pieces = [piece for part in parts for piece in (part, silence)]
    return np.concatenate(pieces[:-1])


@pytest.mark.parametrize("gap", [0.0, 0.25])
def test_examples_become_one(gap):
    seconds = [0.5, 0.25, 1.0]
    members = [example(n, s) for n, s in enumerate(seconds)]
    whole = join_examples(members, Concatenation(max_duration=5, gap=gap))
    assert whole.id == "row-0+row-1+row-2"
    assert whole.text == "said 0 said 1 said 2"
    assert (whole.language, whole.custom, whole.place) == ("en", {"n": 0}, PLACE)
    expected = laid_out([samples(s, seed=n) for n, s in enumerate(seconds)], round(gap * RATE))
    audio, rate = waveform(whole, None)
    assert rate == RATE
    np.testing.assert_allclose(audio[0], expected, atol=1e-6)
    padded, lengths = pad_waveforms([members[2], whole], RATE)
    assert lengths.tolist() == [RATE, len(expected)]
    np.testing.assert_allclose(padded[1].numpy(), expected, atol=1e-6)


def test_rows_without_text_add_none():
    how = Concatenation(max_duration=5)
    texts = [None, "a", "", "b", None]
    members = [example(n, 0.1, text=text) for n, text in enumerate(texts)]
    assert join_examples(members, how).text == "a b"
    assert join_examples(members[:1] * 2, how).text is None


def test_a_row_alone_stays_as_it_is():
    member = example(0, 0.5)
    assert join_examples([member], Concatenation(max_duration=1, gap=0.5)) is member
    assert join_examples([member], None) is member


@pytest.mark.parametrize("gap", [0.0, 0.5])
@pytest.mark.parametrize("target_rate", [None, RATE, 24000])
def test_a_cut_of_cuts_keeps_what_its_parts_have(gap, target_rate):
    seconds = [1.0, 0.5, 0.75]
    cuts = [cut_of(n, s, target_rate=target_rate) for n, s in enumerate(seconds)]
    whole = joined_cut(cuts, gap, "whole")
    assert isinstance(whole, MixedCut)
    assert whole.id == "whole"
    starts = [0.0, 1.0 + gap, 1.5 + 2 * gap]
    assert whole.duration == pytest.approx(2.25 + 2 * gap)
    assert [s.id for s in whole.supervisions] == ["sup-0", "sup-1", "sup-2"]
    assert [s.start for s in whole.supervisions] == pytest.approx(
        [start + s / 2 for start, s in zip(starts, seconds, strict=True)]
    )
    assert [s.duration for s in whole.supervisions] == pytest.approx([s / 2 for s in seconds])
    parts = [samples(s, seed=n) for n, s in enumerate(seconds)]
    expected = laid_out(parts, round(gap * RATE))
    np.testing.assert_allclose(whole.load_audio()[0], expected, atol=1e-6)
    if target_rate is not None:
        parts = [samples(s, target_rate, seed=100 + n) for n, s in enumerate(seconds)]
        expected = laid_out(parts, round(gap * target_rate))
        np.testing.assert_allclose(whole.load_target_audio()[0], expected, atol=1e-6)


def test_a_target_that_only_some_parts_have_is_silent_elsewhere():
    cuts = [cut_of(0, 0.5), cut_of(1, 0.25, target_rate=24000), cut_of(2, 0.5)]
    whole = joined_cut(cuts, 0.25, "whole")
    target = whole.load_target_audio()[0]
    expected = np.zeros(round(1.75 * 24000), np.float32)
    expected[18000:24000] = samples(0.25, 24000, seed=101)
    np.testing.assert_allclose(target, expected, atol=1e-6)


def test_the_cuts_of_joined_rows_are_one_cut():
    members = [example(n, 0.5) for n in range(3)]
    whole = to_cut(
        join_examples(members, Concatenation(max_duration=5, gap=0.5)), None, {"mode": 1}
    )
    assert whole.id == "row-0+row-1+row-2"
    assert whole.duration == pytest.approx(2.5)
    assert [s.text for s in whole.supervisions] == ["said 0", "said 1", "said 2"]
    assert whole.mode == 1
    assert to_cut(join_examples(members[:1], Concatenation(max_duration=5)), None, {}).id == "row-0"


def test_rows_of_other_rates_are_joined_at_the_rate_asked_for():
    members = [example(0, 0.5, rate=8000), example(1, 0.5, rate=16000)]
    whole = join_examples(members, Concatenation(max_duration=5, gap=0.25))
    audio, rate = waveform(whole, RATE)
    assert rate == RATE
    assert audio.shape == (1, 20000)
    np.testing.assert_allclose(audio[0, 12000:], samples(0.5, seed=1), atol=1e-6)
    assert np.abs(audio[0, :8000]).max() > 0.01
    assert not audio[0, 8100:11900].any()


def test_ten_rows_of_a_second_as_lhotse_would_join_them():
    rows = [example(n, 1.0) for n in range(10)]
    for how, lengths in (
        (Concatenation(max_duration=2.5), [2.0] * 5),
        (Concatenation(max_duration=5, gap=0.5), [4.0, 4.0, 4.0, 1.0]),
    ):
        size = 2 if how.gap == 0 else 3
        groups = [rows[first : first + size] for first in range(0, 10, size)]
        cuts = [to_cut(join_examples(group, how), None, {}) for group in groups]
        assert [cut.duration for cut in cuts] == pytest.approx(lengths)
        for cut, group in zip(cuts, groups, strict=True):
            parts = [sf.read(io.BytesIO(row.audio.source), dtype="float32")[0] for row in group]
            expected = laid_out(parts, round(how.gap * RATE))
            np.testing.assert_allclose(cut.load_audio()[0], expected, atol=1e-6)
