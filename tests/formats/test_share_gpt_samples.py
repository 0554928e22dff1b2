from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.formats import BadRowError, Sample
from playhead.formats.share_gpt_samples import (
    bound_members,
    keyed_samples,
    paired_samples,
    sample_key,
)


def names_of(samples: list[Sample], names: list[str]) -> list[tuple[str, ...]]:
    return [(names[one.row], *(names[at] for at in one.audio)) for one in samples]


def test_pairs_in_either_order():
    names = ["d/0.json", "d/0.wav", "d/1.flac", "d/1.json", "talk.en.wav", "talk.en.json"]
    assert names_of(list(paired_samples(names)), names) == [
        ("d/0.json", "d/0.wav"),
        ("d/1.json", "d/1.flac"),
        ("talk.en.json", "talk.en.wav"),
    ]
    assert list(paired_samples([])) == []


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["0.json"], r"1 members, which are no pairs: the last is '0\.json'"),
        (["0.json", "0.wav", "1.wav"], r"3 members, which are no pairs: the last is '1\.wav'"),
        (["0.json", "1.wav"], r"'0\.json' and '1\.wav' are not a JSON and its audio"),
        (["0.wav", "1.json"], "are not a JSON and its audio"),
        (["0.json", "0.json"], "are not a JSON and its audio"),
        (["0.wav", "0.flac"], "are not a JSON and its audio"),
        (["a/0.json", "b/0.wav"], "are not a JSON and its audio"),
    ],
)
def test_what_is_no_pair(names: list[str], says: str):
    with pytest.raises(BadRowError, match=says) as raised:
        list(paired_samples(names))
    assert "wds_sample_index_version: 2" in raised.value.fix


def test_samples_have_any_number_of_audios():
    names = ["a.wav", "a.json", "b.1.wav", "b.2.wav", "b.meta.json", "c.json", "d/a.json"]
    assert names_of(list(keyed_samples(names)), names) == [
        ("a.json", "a.wav"),
        ("b.meta.json", "b.1.wav", "b.2.wav"),
        ("c.json",),
        ("d/a.json",),
    ]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["a.wav"], r"(?i)the sample 'a' has 0 members \.json"),
        (["a.json", "a.x.json"], r"(?i)the sample 'a' has 2 members \.json"),
        (["a.json", "b.json", "a.wav"], "(?i)the members of the sample 'a' are apart"),
        (["a.wav", "a.json", "a.wav"], "(?i)two members of the sample 'a' have the same name"),
        (["v1/a.json", "v1/b.wav"], "(?i)the sample 'v1/b' has 0"),
    ],
)
def test_what_is_no_sample(names: list[str], says: str):
    with pytest.raises(BadRowError, match=says):
        list(keyed_samples(names))


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("a.json", "a"),
        ("a", "a"),
        ("a.b.c", "a"),
        ("v1.0/a.user.wav", "v1.0/a"),
        ("./a.json", "a"),
        ("d/.hidden", "d/"),
    ],
)
def test_keys(name: str, key: str):
    assert sample_key(name) == key


@pytest.mark.parametrize(
    ("wanted", "there", "found"),
    [
        ([None], ["0.wav"], [0]),
        ([None, None], ["0.wav"], [0, 0]),
        # The only one is meant whatever it is called.
        (["/data/talk.wav"], ["0.wav"], [0]),
        (["b.wav", "a.wav"], ["a.wav", "b.wav"], [1, 0]),
        (["/x/b.wav"], ["d/a.wav", "d/b.wav"], [1]),
        # The very name wins over the same name elsewhere.
        (["e/a.wav"], ["d/a.wav", "e/a.wav"], [1]),
        (["a.wav", "a.wav"], ["a.wav", "b.wav"], [0, 0]),
        ([], [], []),
    ],
)
def test_which_audio_a_turn_means(wanted: list[str | None], there: list[str], found: list[int]):
    assert bound_members(wanted, there) == found


@pytest.mark.parametrize(
    ("wanted", "there", "says"),
    [
        ([None], [], "the row names no audio, and the members beside it are none"),
        (["a.wav"], [], r"audio is 'a\.wav', and the members beside it are none"),
        ([None], ["a.wav", "b.wav"], r"names no audio, .* are 'a\.wav', 'b\.wav'"),
        (["c.wav"], ["a.wav", "b.wav"], r"audio is 'c\.wav', .* are 'a\.wav', 'b\.wav'"),
        (["a.wav"], ["d/a.wav", "e/a.wav"], r"audio is 'a\.wav'"),
        (["x.wav", "y.wav"], ["0.wav"], r"'x\.wav' and 'y\.wav' are both the member '0\.wav'"),
        (["a.wav", "/d/a.wav"], ["a.wav", "b.wav"], "are both the member 'a.wav'"),
    ],
)
def test_audio_that_nobody_can_tell(wanted: list[str | None], there: list[str], says: str):
    with pytest.raises(BadRowError, match=f"(?i){says}"):
        bound_members(wanted, there)


KEYS = st.lists(st.sampled_from([f"{d}{k}" for d in ("", "d.0/") for k in "abcdef"]), unique=True)


@given(KEYS, st.data())
def test_samples_come_back_as_they_went_in(keys: list[str], data: st.DataObject):
    samples = [
        data.draw(
            st.permutations(
                [f"{key}.json", *(f"{key}.{n}.wav" for n in range(data.draw(st.integers(0, 3))))]
            )
        )
        for key in keys
    ]
    names = [name for sample in samples for name in sample]
    found = list(keyed_samples(names))
    assert [sorted(one) for one in names_of(found, names)] == [sorted(one) for one in samples]
    assert all(names[one.row].endswith(".json") for one in found)
    # What is found is in order, and binds to itself.
    for one in found:
        there = [names[at] for at in one.audio]
        assert bound_members([*reversed(there)], there) == [*reversed(range(len(there)))]
    if all(len(sample) == 2 for sample in samples):
        pairs = [name.replace(".0.wav", ".wav") for name in names]
        assert names_of(list(paired_samples(pairs)), pairs) == [
            tuple(name.replace(".0.wav", ".wav") for name in one) for one in names_of(found, names)
        ]
