from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError
from playhead.formats.mixtures import (
    LSMIX,
    MIXTURE_LOADER,
    Mixture,
    MixtureOptions,
    Session,
    Stretch,
    Utterance,
    Voice,
    below,
    choose_stretch,
    choose_voices,
    keyed_words,
)
from support.simulated import simulator_leaf


def options(**changes) -> MixtureOptions:
    usual = {
        "simulator_type": LSMIX,
        "num_speakers": 2,
        "min_delay_us": 500_000,
        "min_duration": 0.1,
        "max_duration": 60.0,
        "num_mixtures": None,
    }
    return MixtureOptions(**{**usual, **changes})


def voice(seconds: float, speaker: str, number: int = 1) -> Voice:
    return Voice(b"", number, seconds, speaker)


def group(lengths: list[list[float]]) -> list[list[Voice]]:
    return [
        [voice(seconds, f"s{speaker}", number) for number, seconds in enumerate(some)]
        for speaker, some in enumerate(lengths)
    ]


SECONDS = st.integers(1, 30_000_000).map(lambda us: us / 1e6)
SPEAKERS = st.lists(st.lists(SECONDS, min_size=1, max_size=4), min_size=1, max_size=6).map(group)
NUMBERS = st.integers(0, 1 << 40)


@given(
    speakers=SPEAKERS,
    data=st.data(),
    delay=st.integers(0, 5_000_000),
    bounds=st.tuples(st.floats(0, 20), st.floats(20, 60)),
    number=NUMBERS,
)
def test_a_mixture_is_as_the_options_say(speakers, data, delay, bounds, number):
    count = data.draw(st.integers(1, len(speakers)))
    how = options(
        num_speakers=count, min_delay_us=delay, min_duration=bounds[0], max_duration=bounds[1]
    )
    got = choose_voices(speakers, how, number)
    assert got == choose_voices(speakers, how, number)
    if isinstance(got, str):
        assert got in ("mixture below min_duration", "mixture above max_duration")
        return
    assert len(got.voices) == len(got.offsets_us) == count
    assert len({one.speaker for one in got.voices}) == count
    known = {id(one) for some in speakers for one in some}
    assert all(id(one) in known for one in got.voices)
    assert got.offsets_us[0] == 0
    for (first, second), before in zip(pairwise(got.offsets_us), got.voices, strict=False):
        assert delay <= second - first <= max(delay, before.duration_us)
    ends = [at / 1e6 + one.duration for one, at in zip(got.voices, got.offsets_us, strict=True)]
    assert got.seconds == round(max(ends), 8)
    assert bounds[0] <= got.seconds <= bounds[1]


@given(speakers=SPEAKERS, numbers=st.lists(NUMBERS, min_size=1, max_size=8, unique=True))
def test_the_order_of_asking_does_not_matter(speakers, numbers):
    how = options(num_speakers=len(speakers))
    ahead = {number: choose_voices(speakers, how, number) for number in numbers}
    back = {number: choose_voices(speakers, how, number) for number in reversed(numbers)}
    assert ahead == back


def test_other_numbers_are_other_mixtures():
    speakers = group([[10.0] * 5] * 5)
    got = {repr(choose_voices(speakers, options(), number)) for number in range(500)}
    assert len(got) == 500


def test_leaves_with_more_speakers_are_not_the_same_mixtures_and_one_more():
    speakers = group([[10.0] * 3] * 9)
    two, three = options(), options(num_speakers=3)
    same = 0
    for number in range(200):
        small, large = (choose_voices(speakers, how, number) for how in (two, three))
        assert isinstance(small, Mixture)
        assert isinstance(large, Mixture)
        same += small.voices == large.voices[:2]
    assert same < 10


def test_speakers_are_drawn_alike_however_much_they_say():
    speakers = group([[5.0], [5.0] * 9, [5.0] * 90])
    pairs, firsts, cuts = Counter(), Counter(), Counter()
    for number in range(3000):
        got = choose_voices(speakers, options(), number)
        assert isinstance(got, Mixture)
        names = [one.speaker for one in got.voices]
        pairs[frozenset(names)] += 1
        firsts[names[0]] += 1
        cuts.update(one.number for one in got.voices if one.speaker == "s1")
    assert [count for count in pairs.values() if not 900 < count < 1100] == []
    assert [count for count in firsts.values() if not 900 < count < 1100] == []
    assert len(pairs) == len(firsts) == 3
    assert sorted(cuts) == list(range(9))
    assert max(cuts.values()) < 1.35 * min(cuts.values())


def test_delays_are_spread_from_the_shortest_to_the_whole_cut():
    speakers = group([[4.0], [4.0]])
    delays = []
    for number in range(2000):
        got = choose_voices(speakers, options(min_delay_us=1_000_000), number)
        assert isinstance(got, Mixture)
        delays.append(got.offsets_us[1])
    quarters = Counter(min(3, (delay - 1_000_000) // 750_000) for delay in delays)
    assert all(430 < quarters[quarter] < 570 for quarter in range(4))
    assert min(delays) < 1_010_000
    assert 3_990_000 < max(delays) <= 4_000_000


def test_a_cut_shorter_than_the_delay_is_followed_right_after_it():
    for number in range(20):
        got = choose_voices(group([[0.2], [0.3]]), options(), number)
        assert isinstance(got, Mixture)
        assert got.offsets_us == [0, 500_000]


def test_what_is_out_of_bounds_is_chosen_anew():
    speakers = group([[1.0, 50.0], [1.0, 50.0]])
    for number in range(200):
        got = choose_voices(speakers, options(max_duration=5), number)
        assert isinstance(got, Mixture)
        assert got.seconds <= 5
    assert choose_voices(speakers, options(max_duration=0.9), 0) == "mixture above max_duration"
    assert choose_voices(group([[1.0], [1.0]]), options(min_duration=3), 0) == (
        "mixture below min_duration"
    )


def test_both_bounds_are_inclusive():
    alone = options(num_speakers=1, min_duration=1.5, max_duration=1.5)
    got = choose_voices(group([[1.5]]), alone, 7)
    assert isinstance(got, Mixture)


def test_choices_never_change():
    # Whoever stopped a run with one version goes on with the next.
    assert keyed_words(2, 0, 0, 0) == GOLDEN_WORDS
    speakers = group([[1.0, 2.5], [3.25], [0.7, 4.0, 1.1]])
    got = [choose_voices(speakers, options(num_speakers=3), number) for number in (0, 1, 10**12)]
    assert [
        (*[(one.speaker, one.number) for one in each.voices], *each.offsets_us)
        for each in got
        if isinstance(each, Mixture)
    ] == GOLDEN_MIXTURES


GOLDEN_WORDS = (2962253626210131682, 3386553869001615011, 4859285228766334901)
GOLDEN_MIXTURES = [
    (("s1", 0), ("s0", 0), ("s2", 0), 0, 584691, 1466622),
    (("s1", 0), ("s0", 0), ("s2", 1), 0, 1737708, 2244783),
    (("s0", 0), ("s2", 2), ("s1", 0), 0, 712688, 1407653),
]


@given(bound=st.integers(1, 1 << 60), word=st.integers(0, (1 << 64) - 1))
def test_numbers_below_a_bound_are_in_order(bound, word):
    assert below(bound, 0) == 0
    assert below(bound, (1 << 64) - 1) == bound - 1
    assert 0 <= below(bound, word >> 1) <= below(bound, word) < bound


def session(*spans: tuple[float, float]) -> Session:
    said = [Utterance(start, end, "a", "") for start, end in spans]
    islands, end = [], -1.0
    for at, (start, stop) in enumerate(spans):
        if start >= end:
            islands.append(at)
        end = max(end, stop)
    return Session(b"", 1, said, islands)


SESSIONS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 600), st.integers(1, 90)).map(
            lambda pair: (pair[0] / 10, (pair[0] + pair[1]) / 10)
        ),
        min_size=1,
        max_size=12,
    ).map(lambda spans: session(*sorted(spans))),
    min_size=1,
    max_size=3,
)


@given(sessions=SESSIONS, number=NUMBERS, shortest=st.floats(0, 30), more=st.floats(0, 60))
def test_a_stretch_begins_and_ends_in_silence(sessions, number, shortest, more):
    how = options(
        simulator_type=MIXTURE_LOADER, min_duration=shortest, max_duration=shortest + more
    )
    got = choose_stretch(sessions, how, number)
    assert got == choose_stretch(sessions, how, number)
    if isinstance(got, str):
        return
    assert shortest <= got.seconds <= shortest + more
    start, end = got.start, got.start + got.seconds
    inside = got.utterances
    for one in got.session.utterances:
        if one in inside:
            assert start <= one.start
            assert one.end <= end + 1e-6
        else:
            assert one.end <= start or one.start >= end - 1e-6


def test_a_stretch_is_two_islands_or_as_many_as_it_needs():
    talk = session((0, 1), (2, 3), (2.5, 4), (5, 6), (7, 8))
    found = set()
    for number in range(300):
        got = choose_stretch([talk], options(simulator_type=MIXTURE_LOADER), number)
        assert isinstance(got, Stretch)
        found.add((got.start, got.start + got.seconds))
    assert found == {(0, 4), (2, 6), (5, 8), (7, 8)}
    longer = options(simulator_type=MIXTURE_LOADER, min_duration=5)
    found = set()
    for number in range(300):
        got = choose_stretch([talk], longer, number)
        assert isinstance(got, Stretch)
        found.add((got.start, got.start + got.seconds))
    assert found == {(0, 6), (2, 8)}


def test_conversations_are_drawn_alike_however_long_they_are():
    short, long = session((0, 1), (2, 3)), session(*[(at, at + 0.5) for at in range(50)])
    count = 0
    for number in range(1000):
        got = choose_stretch([short, long], options(simulator_type=MIXTURE_LOADER), number)
        assert isinstance(got, Stretch)
        count += got.session is short
    assert 440 < count < 560


def test_the_options_of_a_leaf():
    got = MixtureOptions.of(simulator_leaf(Path("m.json"), min_delay=0.1234567))
    assert got == options(min_delay_us=123_457)
    assert got.count(20) == 1000
    assert got.count(2000) == 2000
    assert MixtureOptions.of(simulator_leaf(Path("m.json"), num_mixtures=7)).count(2000) == 7


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"simulator_type": "meeting"}, "simulator_type is 'meeting'.*lsmix or mixture_loader"),
        ({"num_speakers": 0}, "num_speakers is 0.*whole number"),
        ({"num_speakers": 2.0}, "num_speakers is 2.0"),
        ({"num_speakers": True}, "num_speakers is True"),
        ({"num_mixtures": "many"}, "num_mixtures is 'many'"),
        ({"min_delay": -1}, "min_delay is -1.*from 0"),
        ({"min_delay": float("nan")}, "min_delay is nan"),
        ({"min_duration": "0.1"}, "min_duration is '0.1'"),
        ({"min_duration": 3, "max_duration": 2}, "max_duration is 2.*at least min_duration, 3"),
        ({"max_duration": None}, "max_duration is None"),
    ],
)
def test_options_that_cannot_be_used(own, said):
    with pytest.raises(ConfigError, match=said):
        MixtureOptions.of(simulator_leaf(Path("m.json"), **own))
