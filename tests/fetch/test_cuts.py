from __future__ import annotations

import numpy as np
import pytest
from lhotse import CutSet, MonoCut, MultiCut, Recording, SupervisionSegment

from playhead.errors import AudioError, ManifestError
from playhead.fetch.cuts import to_cut
from playhead.fetch.waveforms import pad_waveforms, waveform
from playhead.formats import Audio, Example
from support.corpus import wav_bytes
from support.fetching import PLACE

DATA = wav_bytes(1.5, seed=3)


def example(audio=None, **facts):
    facts = {"id": "a.wav", "text": "hello", "language": "en", "custom": {"corpus": "x"}, **facts}
    return Example(audio=audio, place=PLACE, **facts)


def nemo_cut(data: bytes, name: str, offset=None, duration=None):
    """What NeMo's adapter for tars makes of a row."""
    cut = Recording.from_bytes(data, name).to_cut()
    if offset is not None:
        cut = cut.truncate(offset=offset, duration=duration, preserve_id=True)
    cut.supervisions = [
        SupervisionSegment(
            id=name,
            recording_id=name,
            start=0,
            duration=cut.duration,
            text="hello",
            language="en",
        )
    ]
    cut.custom = {"corpus": "x"}
    return cut


def test_a_whole_member_is_nemos_cut():
    assert to_cut(example(Audio(source=DATA)), None, {}) == nemo_cut(DATA, "a.wav")


def test_a_stretch_of_a_member_is_nemos_cut():
    cut = to_cut(example(Audio(source=DATA, start=0.25, duration=0.5)), None, {})
    expected = nemo_cut(DATA, "a.wav", 0.25, 0.5)
    assert cut == expected
    np.testing.assert_array_equal(cut.load_audio(), expected.load_audio())


def test_a_plain_file_is_lhotses_recording(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(DATA)
    cut = to_cut(example(Audio(source=str(path), start=0.5)), None, {})
    expected = Recording.from_file(path, recording_id=str(path))
    expected.channel_ids = cut.recording.channel_ids
    assert cut.recording == expected
    assert (cut.start, cut.duration, cut.num_samples) == (0.5, 1.0, 16000)
    np.testing.assert_array_equal(cut.load_audio(), expected.load_audio(offset=0.5))


def test_channels():
    data = wav_bytes(0.5, channels=3)
    both = to_cut(example(Audio(source=data)), None, {})
    assert isinstance(both, MultiCut)
    assert both.channel == [0, 1, 2]
    assert both.load_audio().shape == (3, 8000)
    one = to_cut(example(Audio(source=data, channel=2)), None, {})
    assert isinstance(one, MonoCut)
    np.testing.assert_array_equal(one.load_audio(), both.load_audio()[2:])


def test_tags_are_attributes_and_win_over_the_row():
    cut = to_cut(example(Audio(source=DATA)), None, {"corpus": "y", "context": "meeting"})
    assert (cut.corpus, cut.context) == ("y", "meeting")


def test_rows_that_are_cuts_are_what_lhotse_reads(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(DATA)
    simple = Recording.from_file(path).to_cut()
    simple.supervisions = [SupervisionSegment("s", simple.recording_id, 0, 1.5, text="hello")]
    simple.custom = {"score": 1.5}
    cuts = [
        simple,
        simple.truncate(offset=0.1, duration=0.7).perturb_speed(0.9),
        simple.pad(duration=2.0),
        simple.append(simple.with_id("other")),
    ]
    CutSet.from_cuts(cuts).to_file(tmp_path / "cuts.jsonl")
    for cut, read in zip(cuts, CutSet.from_file(tmp_path / "cuts.jsonl"), strict=True):
        made = to_cut(example(cut_data=cut.to_dict()), None, {})
        assert made == read
        np.testing.assert_array_equal(made.load_audio(), cut.load_audio())


def test_the_row_stays_as_it_is():
    data = Recording.from_bytes(DATA, "r").to_cut().pad(duration=2.0).to_dict()
    sample = example(cut_data=data)
    assert to_cut(sample, None, {"a": 1}).a == 1
    assert to_cut(sample, None, {}).custom is None or "a" not in to_cut(sample, None, {}).custom


def test_a_rate_is_asked_for_only_where_it_differs():
    same = to_cut(example(Audio(source=DATA)), 16000, {})
    assert same.recording.transforms is None
    cut = to_cut(example(Audio(source=DATA)), 8000, {})
    assert cut.sampling_rate == 8000
    assert cut.load_audio().shape == (1, 12000)


@pytest.mark.parametrize(
    ("sample", "error", "said"),
    [
        (example(), ManifestError, "the sample has no audio"),
        (example(cut_data={"type": "MonoCut", "id": "a"}), ManifestError, "Lhotse cannot read"),
        (example(cut_data={"type": "Other", "id": "a"}), ManifestError, "Lhotse cannot read"),
        (example(Audio(source=b"broken")), AudioError, "cannot be decoded"),
        (example(Audio(source=DATA, start=2.0)), AudioError, "begins at 2.0 s of audio of 1.500"),
    ],
)
def test_what_cannot_be_a_cut_says_where_it_is(sample, error, said):
    with pytest.raises(error, match=f"(?i){said}.*row 7"):
        to_cut(sample, None, {})


def stereo(path):
    """A cut of both channels of a file, with a supervision of each."""
    path.write_bytes(wav_bytes(1.0, channels=2, seed=3))
    recording = Recording.from_file(path, recording_id="r")
    supervisions = [
        SupervisionSegment(f"s{i}", "r", 0, 1.0, channel=i, text=f"channel {i}") for i in range(2)
    ]
    return MultiCut(
        "two", 0, 1.0, [0, 1], supervisions, recording=recording, custom={"best": 1, "odd": "x"}
    )


@pytest.mark.parametrize(("selector", "index"), [(0, 0), (1, 1), ("best", 1)])
def test_one_channel_of_a_row_that_is_a_cut(tmp_path, selector, index):
    both = stereo(tmp_path / "a.wav")
    one = to_cut(example(cut_data=both.to_dict()), None, {}, selector)
    assert isinstance(one, MonoCut)
    assert one == both.with_channels(index).with_id("two")
    np.testing.assert_array_equal(one.load_audio(), both.load_audio()[index : index + 1])
    assert [s.text for s in one.supervisions] == [f"channel {index}"]


def test_one_channel_of_every_track(tmp_path):
    both = stereo(tmp_path / "a.wav")
    mix = both.pad(duration=1.5, preserve_id=True)
    one = to_cut(example(cut_data=mix.to_dict()), None, {}, 1)
    assert (one.id, one.num_channels) == ("two", 1)
    np.testing.assert_array_equal(one.load_audio(), mix.load_audio()[1:])


def test_a_cut_of_one_channel_is_that_channel(tmp_path):
    (tmp_path / "a.wav").write_bytes(DATA)
    cut = Recording.from_file(tmp_path / "a.wav").to_cut()
    assert to_cut(example(cut_data=cut.to_dict()), None, {}, 0) == cut


@pytest.mark.parametrize(
    ("selector", "error", "said"),
    [
        (2, AudioError, "has 2 channels and channel 2 is wanted.*from 0"),
        (-1, AudioError, "channel -1 is wanted"),
        ("worst", ManifestError, "no custom field 'worst'"),
        ("odd", ManifestError, "the channel is 'x'"),
    ],
)
def test_channels_that_are_not_there(tmp_path, selector, error, said):
    both = stereo(tmp_path / "a.wav")
    with pytest.raises(error, match=f"(?is){said}") as caught:
        to_cut(example(cut_data=both.to_dict()), None, {}, selector)
    assert "row 7" in str(caught.value)


def test_bytes_stand_where_their_markers_are():
    cut = Recording.from_bytes(DATA, "r").to_cut()
    data = cut.to_dict()
    data["recording"]["sources"][0]["source"] = "marker"
    made = to_cut(example(cut_data=data, in_memory={"marker": DATA}), None, {})
    np.testing.assert_array_equal(made.load_audio(), cut.load_audio())
    assert data["recording"]["sources"][0]["source"] == "marker"


@pytest.mark.parametrize("count", [1, 2])
def test_a_channel_that_no_file_has_is_refused_in_every_way(count):
    sample = example(Audio(source=wav_bytes(0.2, channels=count), duration=0.2, channel=count))
    said = rf"has {count} channels and channel {count} is wanted.*row 7.*from 0"
    for refused in (
        lambda: to_cut(sample, None, {}),
        lambda: waveform(sample, 16000),
        lambda: pad_waveforms([sample], 16000),
        lambda: pad_waveforms([sample], 8000),
    ):
        with pytest.raises(AudioError, match=said):
            refused()
