from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError, ManifestError
from playhead.formats import Audio, Example
from support.fetching import leaf_of
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
    with_transforms,
    written,
)

NAME = "s2s_duplex_overlap_as_s2s_duplex"
LEAF = leaf_of("nemo", manifest="/data/m.json")


def row(agent, user) -> Example:
    return Example(
        id="r",
        text=None,
        language=None,
        audio=Audio(source="/r.wav", duration=2.0),
        place=PLACE,
        custom={"agent_segments": agent, "user_segments": user},
    )


def segment(start, end, text):
    return {"start": start, "end": end, "text": text}


def segments_of(one):
    return [(s.start, s.duration, s.text, s.speaker) for s in one.supervisions]


@pytest.fixture
def source(tmp_path):
    return recording(tmp_path, "r", 2.0)


def segmented(source, agent, user, name="o"):
    return cut(name, source, agent_segments=agent, user_segments=user)


def test_supervisions_are_those_that_nemo_3_0_makes(tmp_path, source):
    agent = [segment(0.5, 1.0, "A"), segment(0.05, 0.3, "B")]
    one = segmented(source, agent, [segment(0.5, 0.8, "U")])
    one.supervisions = [said("old", source, 0, 1, "gone", "x")]
    leaf = written(tmp_path, one)
    duplex = apply(leaf, example_of(leaf, one), NAME, move_agent_text_back_by=0.1)
    made = cut_of(duplex)
    assert segments_of(made) == [
        (-0.05, 0.35, "B", "agent"),
        (0.4, 0.6, "A", "agent"),
        (0.5, pytest.approx(0.3), "U", "user"),
    ]
    assert {(s.id, s.recording_id, s.channel) for s in made.supervisions} == {("o", "o", 0)}
    assert made.task == NAME
    assert made.agent_segments == agent
    assert (duplex.text, duplex.audio is not None) == ("B A U", True)


def test_of_two_that_begin_together_the_agent_is_first(tmp_path, source):
    one = segmented(source, [segment(0.1, 0.2, "C")], [segment(0.1, 0.4, "V")])
    leaf = written(tmp_path, one)
    made = cut_of(apply(leaf, example_of(leaf, one), NAME))
    assert [(s.text, s.duration) for s in made.supervisions] == [
        ("C", 0.1),
        ("V", 0.30000000000000004),
    ]


def test_a_tag_wins_over_the_task(tmp_path, source):
    one = segmented(source, [], [])
    leaf = replace(written(tmp_path, one), tags={"task": "mine"})
    assert apply(leaf, example_of(leaf, one), NAME).custom["task"] == "mine"


def test_rows_that_are_no_cuts_get_their_supervisions_with_their_cut(tmp_path, source):
    example = row([segment(1, 1.5, "A")], [segment(0.5, 0.8, "U")])
    example.audio = Audio(source=str(tmp_path / "r.wav"), duration=2.0)
    duplex = apply(LEAF, example, NAME)
    assert (duplex.text, duplex.audio, example.cut_steps) == ("U A", example.audio, ())
    made = cut_of(duplex)
    assert segments_of(made) == [(0.5, pytest.approx(0.3), "U", "user"), (1, 0.5, "A", "agent")]
    assert made.task == NAME


def test_samples_that_begin_with_the_agent_are_dropped_if_that_is_asked_for(tmp_path, source):
    cuts = [
        segmented(source, [segment(0.1, 0.2, "A")], [segment(0.1, 0.4, "U")], "agent"),
        segmented(source, [segment(0.2, 0.3, "A")], [segment(0.1, 0.4, "U")], "user"),
        segmented(source, [], [], "nobody"),
    ]
    leaf = written(tmp_path, *cuts)
    kept = with_transforms(leaf, (NAME, {"filter_samples_starting_with_agent": True}))
    pack = index(kept, tmp_path)
    assert pack.dropped == {"the agent speaks first": 1, "nobody speaks": 1}
    assert [example.id for example in read(kept, pack)] == ["user"]
    assert pack.duration_us.tolist() == [2_000_000]
    (tmp_path / "all").mkdir()
    everything = with_transforms(leaf, NAME)
    assert index(everything, tmp_path / "all").num_rows == 3
    options = {"filter_samples_starting_with_agent": True, "agent_roles": ["user"]}
    assert dropped(leaf, example_of(leaf, cuts[1]), NAME, **options) == "the agent speaks first"
    assert dropped(leaf, example_of(leaf, cuts[0]), NAME, **options) is None


@pytest.mark.parametrize(
    ("agent", "user", "message"),
    [
        (None, [], "no `agent_segments`"),
        ([], "text", "another kind of `user_segments`"),
        ([], [segment("0", 1, "x")], "start of one of the `user_segments` is '0'"),
        ([{"start": 0, "text": "x"}], [], "end of one of the `agent_segments` is None"),
        ([segment(0, 1, None)], [], "text of one of the `agent_segments` is None"),
        ([segment(float("nan"), 1, "x")], [], "is nan"),
    ],
)
def test_segments_that_cannot_be_used(agent, user, message):
    with pytest.raises(ManifestError, match=message):
        apply(LEAF, row(agent, user), NAME)


def test_mixed_cuts_are_refused(tmp_path, source):
    mixed = segmented(source, [], []).pad(3.0)
    leaf = written(tmp_path, mixed)
    with pytest.raises(ManifestError, match="MixedCut"):
        apply(leaf, example_of(leaf, mixed), NAME)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("move_agent_text_back_by", "0.1"),
        ("move_agent_text_back_by", float("inf")),
        ("filter_samples_starting_with_agent", 1),
        ("agent_roles", [1]),
    ],
)
def test_options_that_cannot_be_used_are_named(option, value):
    with pytest.raises(ConfigError, match=f"`{option}`"):
        apply(LEAF, row([], []), NAME, **{option: value})


TIMES = st.lists(st.tuples(st.floats(0, 50), st.floats(0, 5)), max_size=8)


@given(TIMES, TIMES, st.floats(-1, 1))
def test_supervisions_are_in_order_and_end_where_their_segments_do(agent, user, shift):
    def listed(times):
        return [segment(start, start + seconds, f"{start}") for start, seconds in times]

    duplex = apply(LEAF, row(listed(agent), listed(user)), NAME, move_agent_text_back_by=shift)
    (step,) = duplex.cut_steps
    made = step.said([], 0.0)
    assert [one["start"] for one in made] == sorted(one["start"] for one in made)
    ends = sorted((one["speaker"], one["start"] + one["duration"]) for one in made)
    assert ends == [
        (who, pytest.approx(end))
        for who, end in sorted(
            [("agent", a + b) for a, b in agent] + [("user", a + b) for a, b in user]
        )
    ]
