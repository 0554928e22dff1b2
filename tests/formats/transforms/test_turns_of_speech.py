from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lhotse import MonoCut
from lhotse.cut import MultiCut

from playhead.errors import ManifestError
from playhead.formats import Audio, Example
from support.fetching import leaf_of
from support.shar import write_shar
from support.transforming import (
    PLACE,
    apply,
    cut,
    cut_of,
    dropped,
    example_of,
    index,
    read,
    recording,
    said,
    turns,
    with_transforms,
    written,
)

NAME = "s2s_as_conversation"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("speech")


@pytest.fixture(scope="module")
def source(folder):
    return recording(folder, "a", 3.0001)


def overlapping(source) -> MonoCut:
    """Times that are no whole samples, a turn inside another, marks of time."""
    return MonoCut(
        "a",
        0.33333,
        2.5,
        0,
        recording=source,
        supervisions=[
            said("a1", source, 0.00003, 0.50001, "<|0|> one  <|2|>", "user"),
            said("a2", source, 0.4, 0.7, "two <|3|><|4|> b", "agent"),
            said("a3", source, 1.2, 0.81237, "three", "User"),
            said("a4", source, 1.4, 0.3, "in it", "Assistant"),
        ],
        custom={"context": "ctx", "n": 1},
    )


def test_turns_are_those_that_nemo_3_0_makes(folder, source):
    one = overlapping(source)
    leaf = with_transforms(written(folder, one))
    talk = apply(leaf, example_of(leaf, one), NAME)
    assert turns(talk) == [
        ("user", "ctx", None, None),
        ("user", "one", "a1", 0.5),
        ("assistant", "two b", None, None),
        ("user", "three", "a3", 0.812375),
        ("assistant", "in it", None, None),
    ]
    first, second = (cut_of(turn.audio) for turn in talk.turns if turn.audio is not None)
    assert (first.start, first.duration, first.num_samples) == (0.3333125, 0.5, 8000)
    assert (second.start, second.duration, second.num_samples) == (1.5333125, 0.812375, 12998)
    (segment,) = second.supervisions
    assert (segment.id, segment.start, segment.text, segment.speaker) == ("a3", 0, "three", "User")
    assert np.array_equal(second.load_audio(), source.load_audio()[:, 24533 : 24533 + 12998])


def test_a_turn_of_two_channels_has_those_of_its_speaker(folder):
    stereo = recording(folder, "b", 2.0, channels=2, seed=1)
    one = MultiCut(
        "b",
        0.1,
        1.8,
        [0, 1],
        recording=stereo,
        supervisions=[
            said("b1", stereo, 0.1, 0.5, "hi", "user", channel=1),
            said("b2", stereo, 0.5, 0.6, "ho", "agent", channel=1),
            said("b3", stereo, 1.0, 0.6, "hu", "user", channel=[0, 1]),
        ],
    )
    leaf = with_transforms(written(folder, one))
    talk = apply(leaf, example_of(leaf, one), NAME)
    first, second = (cut_of(turn.audio) for turn in talk.turns if turn.audio is not None)
    assert (type(first), first.channel, first.id) == (MonoCut, 1, "b1")
    assert (type(second), second.channel, second.id) == (MultiCut, [0, 1], "b3")
    samples = stereo.load_audio()
    assert np.array_equal(first.load_audio(), samples[1:, 3200 : 3200 + 8000])
    assert np.array_equal(second.load_audio(), samples[:, 17600 : 17600 + 9600])


def test_turns_of_a_mixed_cut_are_cut_out_of_the_mix(folder, source):
    first = cut("c0", source, [said("c1", source, 0.1, 0.8, "eins", "user")])
    other = cut("c2", source, [said("c3", source, 1.0, 0.5, "zwei", "user")])
    mixed = first.mix(other, offset_other_by=0.7).with_id("c")
    leaf = with_transforms(written(folder, mixed))
    talk = apply(leaf, example_of(leaf, mixed), NAME)
    assert turns(talk) == [("user", "eins", "c1", 0.8), ("user", "zwei", "c3", 0.5)]
    stretches = [cut_of(turn.audio) for turn in talk.turns if turn.audio is not None]
    assert [(one.id, one.duration) for one in stretches] == [("c1", 0.8), ("c3", 0.5)]
    assert [[one.text for one in part.supervisions] for part in stretches] == [["eins"], ["zwei"]]
    whole = mixed.load_audio()
    assert np.allclose(stretches[1].load_audio(), whole[:, 27200 : 27200 + 8000], atol=1e-6)


def test_a_turn_reaches_to_the_end_of_the_cut_at_most(folder, source):
    late = MonoCut(
        "a", 0, 1.0, 0, recording=source, supervisions=[said("1", source, 0.8, 0.5, "x", "user")]
    )
    leaf = with_transforms(written(folder, late))
    (turn,) = apply(leaf, example_of(leaf, late), NAME).turns
    assert turn.duration == 0.2
    assert turn.audio is not None
    assert cut_of(turn.audio).num_samples == 3200


@pytest.mark.parametrize(("start", "seconds"), [(-0.1, 0.5), (3.2, 0.5), (0.5, 0.0), (0.5, -1.0)])
def test_a_turn_that_lies_outside_is_an_error(folder, source, start, seconds):
    bad = cut("a", source, [said("1", source, start, seconds, "x", "user")])
    leaf = with_transforms(written(folder, bad))
    with pytest.raises(ManifestError, match="reaches from"):
        apply(leaf, example_of(leaf, bad), NAME)


def test_texts_that_are_missing(folder, source):
    leaf = with_transforms(written(folder, cut("a", source)))
    with pytest.raises(ManifestError, match="no supervision"):
        apply(leaf, example_of(leaf, cut("a", source)), NAME)
    heard = cut("a", source, [said("1", source, 0, 1, None, "user")])
    assert turns(apply(leaf, example_of(leaf, heard), NAME)) == [("user", None, "1", 1.0)]
    mute = cut("a", source, [said("1", source, 0, 1, None, "agent")])
    with pytest.raises(ManifestError, match="no text"):
        apply(leaf, example_of(leaf, mute), NAME)


def test_roles_and_marks_of_time_are_options(folder, source):
    one = cut(
        "a", source, [said("1", source, 0, 1, "<|1|>  x", "me"), said("2", source, 1, 1, "y", "it")]
    )
    leaf = with_transforms(written(folder, one))
    example = example_of(leaf, one)
    assert dropped(leaf, example, NAME) == "speaker of no role"
    with pytest.raises(ManifestError, match="'me' is neither"):
        apply(leaf, example, NAME)
    options = {"input_roles": ["me"], "output_roles": "it", "strip_timestamp_tokens": False}
    assert dropped(leaf, example, NAME, **options) is None
    talk = apply(leaf, example, NAME, **options)
    assert turns(talk) == [("user", "<|1|>  x", "1", 1.0), ("assistant", "y", None, None)]


def test_the_index_counts_what_is_dropped_and_adds_the_lengths_of_turns(folder, source):
    strange = cut("u", source, [said("u", source, 0, 1, "x", "narrator")])
    silent = cut("s", source, [said("s", source, 0, 1, "x", "agent")])
    leaf = with_transforms(written(folder, strange, overlapping(source), silent), NAME)
    pack = index(leaf, folder)
    assert pack.dropped == {"speaker of no role": 1}
    assert pack.duration_us.tolist() == [1_312_375, 0]
    assert (pack.num_samples.tolist(), pack.rate.tolist()) == ([0, 0], [0, 0])
    assert [example.id for example in read(leaf, pack)] == ["a", "s"]


def test_rows_that_are_no_cuts_have_a_speaker_only_after_another_transform(tmp_path):
    recording(tmp_path, "r", 2.0)
    leaf = with_transforms(leaf_of("nemo", manifest=tmp_path / "m.json"))
    example = Example(
        id="r.wav",
        text="hello",
        language=None,
        audio=Audio(source=str(tmp_path / "r.wav"), start=0.25, duration=1.5),
        place=PLACE,
    )
    assert dropped(leaf, example, NAME) == "speaker of no role"
    duplex = apply(leaf, example, "nemo_tarred_to_duplex")
    talk = apply(leaf, duplex, NAME)
    assert turns(talk) == [("user", "hello", "r.wav_user", 1.5), ("assistant", "", None, None)]
    assert talk.turns[0].audio is not None
    assert cut_of(talk.turns[0].audio).num_samples == 24000


@given(
    st.lists(
        st.tuples(st.floats(0, 2), st.floats(0.01, 0.9), st.sampled_from(["user", "agent"])),
        min_size=1,
        max_size=6,
    ),
    st.floats(0, 0.1),
)
def test_audio_turns_last_as_their_supervisions_do(folder, source, times, start):
    segments = [
        said(str(n), source, begin, seconds, f"t{n}", who)
        for n, (begin, seconds, who) in enumerate(times)
    ]
    one = MonoCut("a", start, 2.9, 0, recording=source, supervisions=segments)
    leaf = leaf_of("lhotse", cuts=folder / "cuts.jsonl")
    talk = apply(leaf, example_of(leaf, one), NAME)
    assert [turn.role for turn in talk.turns] == [
        {"user": "user", "agent": "assistant"}[who] for _, _, who in times
    ]
    for turn, (begin, seconds, who) in zip(talk.turns, times, strict=True):
        if who == "agent":
            assert (turn.audio, turn.text) == (None, f"t{talk.turns.index(turn)}")
            continue
        assert turn.audio is not None
        part = cut_of(turn.audio)
        assert abs(part.start - start - begin) < 1.01 / 16000
        assert abs(part.duration - min(seconds, 2.9 - begin)) < 1.01 / 16000
        assert part.duration == turn.duration
        assert part.end <= 3.0001 + 1e-9


def test_a_stretch_of_a_file_is_decoded_without_its_cut(tmp_path):
    recording(tmp_path, "r", 2.0)
    leaf = with_transforms(leaf_of("nemo", manifest=tmp_path / "m.json"))
    example = Example(
        id="r.wav",
        text=None,
        language=None,
        audio=Audio(source=str(tmp_path / "r.wav"), start=0.25, duration=1.5),
        place=PLACE,
        custom={
            "user_segments": [{"start": 0.5, "end": 1.0, "text": "asked"}],
            "agent_segments": [{"start": 0.75, "end": 1.25, "text": "told"}],
        },
    )
    duplex = apply(leaf, example, "s2s_duplex_overlap_as_s2s_duplex")
    talk = apply(leaf, duplex, NAME)
    assert [(turn.role, turn.text) for turn in talk.turns] == [
        ("user", "asked"),
        ("assistant", "told"),
    ]
    audio = talk.turns[0].audio
    assert audio is not None
    assert audio.cut_steps == ()
    assert audio.audio == replace(example.audio, start=0.75, duration=0.5)
    assert [one.text for one in cut_of(audio).supervisions] == ["asked"]


def test_turns_of_a_shar_keep_their_encoded_audio(folder, source):
    one = overlapping(source)
    write_shar(folder / "shar", [one], {"recording": "wav"})
    leaf = with_transforms(leaf_of("lhotse_shar", shar=folder / "shar"), NAME)
    (talk,) = read(leaf, index(leaf, folder))
    first, second = (turn.audio for turn in talk.turns if turn.audio is not None)
    assert first is not None
    assert second is not None
    assert first.audio is not None
    assert second.audio is not None
    # Both are stretches of the same bytes, which a cut is not needed for.
    assert first.audio.source is second.audio.source
    assert (first.audio.start, second.audio.start) == (0.0, 1.2)
    heard = cut_of(second).load_audio()
    assert np.allclose(heard, source.load_audio()[:, 24533 : 24533 + 12998], atol=1e-4)
