from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError, ManifestError
from playhead.formats import Audio, Example
from support.fetching import leaf_of
from support.shar import write_shar
from support.transforming import (
    PLACE,
    apply,
    cut,
    cut_of,
    example_of,
    index,
    read,
    recording,
    said,
    with_transforms,
    written,
)

NAME = "s2s_duplex_reverse_role"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sides")


def both(folder, *, target_rate: int = 16000, target_seconds: float = 1.25):
    source = recording(folder, "source", 1.25)
    target = recording(folder, "target", target_seconds, rate=target_rate, seed=1)
    spoken = [
        said("q", source, 0.0, 0.5, "asked", "USER"),
        said("n", source, 0.5, 0.1, "noise", "Narrator"),
        said("a", source, 0.6, 0.5, "told", "Assistant"),
    ]
    return cut("c", source, spoken, target_audio=target, number=3)


def test_recordings_and_speakers_are_exchanged(folder):
    one = both(folder, target_rate=24000)
    leaf = written(folder, one)
    example = example_of(leaf, one)
    other = apply(leaf, example, NAME)
    made = cut_of(other)
    assert (made.recording.id, made.target_audio.id) == ("target", "source")
    assert [s.speaker for s in made.supervisions] == ["agent", "Narrator", "user"]
    assert (made.id, made.duration, made.sampling_rate, made.task) == ("c", 1.25, 24000, NAME)
    assert np.array_equal(made.load_audio(), one.target_audio.load_audio())
    assert np.array_equal(made.load_target_audio(), one.recording.load_audio())
    assert other.audio is not None
    assert other.audio.source == str(folder / "target.wav")
    assert example.cut_data["recording"]["id"] == "source"
    assert (made.number, other.custom["number"]) == (3, 3)


def test_names_are_options(folder):
    one = both(folder)
    leaf = written(folder, one)
    other = apply(
        leaf,
        example_of(leaf, one),
        NAME,
        user_roles="narrator",
        agent_roles=["user"],
        target_user_name="me",
        target_agent_name="it",
    )
    assert [s.speaker for s in cut_of(other).supervisions] == ["me", "it", "Assistant"]


def test_the_cut_reaches_to_the_end_of_what_was_its_target(folder):
    one = both(folder, target_seconds=1.5)
    leaf = written(folder, one)
    assert cut_of(apply(leaf, example_of(leaf, one), NAME)).duration == 1.5
    late = one.truncate(offset=0.5, preserve_id=True)
    made = cut_of(apply(leaf, example_of(leaf, late), NAME))
    assert (made.start, made.duration) == (0.5, 1.0)
    assert np.array_equal(made.load_audio(), one.target_audio.load_audio()[:, 8000:])


def test_the_index_has_the_length_and_the_rate_of_the_other_side(folder):
    leaf = with_transforms(
        written(folder, both(folder, target_rate=24000, target_seconds=1.5)), NAME
    )
    pack = index(leaf, folder)
    assert pack.duration_us.tolist() == [1_500_000]
    assert (pack.rate.tolist(), pack.num_samples.tolist()) == ([24000], [36000])
    (example,) = read(leaf, pack)
    assert cut_of(example).num_samples == 36000


def test_a_shar_holds_both_sides(tmp_path):
    one = both(tmp_path, target_rate=24000)
    write_shar(tmp_path / "shar", [one], {"recording": "wav", "target_audio": "wav"})
    leaf = with_transforms(leaf_of("lhotse_shar", shar=tmp_path / "shar"), NAME)
    pack = index(leaf, tmp_path)
    assert (pack.duration_us.tolist(), pack.rate.tolist()) == ([1_250_000], [24000])
    (example,) = read(leaf, pack)
    made = cut_of(example)
    assert np.array_equal(made.load_audio(), one.target_audio.load_audio())
    assert np.array_equal(made.load_target_audio(), one.recording.load_audio())


def test_what_has_no_other_side_is_an_error(folder):
    one = both(folder)
    leaf = written(folder, one)
    del one.custom["target_audio"]
    with pytest.raises(ManifestError, match="no target_audio"):
        apply(leaf, example_of(leaf, one), NAME)
    row = Example(id="r", text="x", language=None, audio=Audio(source="/r.wav"), place=PLACE)
    with pytest.raises(ManifestError, match="no recording"):
        apply(leaf, row, NAME)
    short = both(folder, target_seconds=0.25).truncate(offset=0.5)
    with pytest.raises(ManifestError, match=r"has 0\.25 s"):
        apply(leaf, example_of(leaf, short), NAME)
    with pytest.raises(ManifestError, match="MixedCut"):
        apply(leaf, example_of(leaf, both(folder).pad(2.0)), NAME)


def test_features_of_one_side_are_none_of_the_other(folder):
    one = both(folder)
    leaf = written(folder, one)
    example = example_of(leaf, one)
    example = replace(example, cut_data={**example.cut_data, "features": {"type": "fbank"}})
    assert not cut_of(apply(leaf, example, NAME)).has_features


@pytest.mark.parametrize("option", ["user_roles", "agent_roles"])
def test_roles_have_to_be_names(folder, option):
    one = both(folder)
    leaf = written(folder, one)
    with pytest.raises(ConfigError, match=f"`{option}`"):
        apply(leaf, example_of(leaf, one), NAME, **{option: None})


SPEAKERS = st.lists(st.sampled_from(["user", "agent", "narrator", None]), max_size=5)


@given(SPEAKERS)
def test_from_the_other_side_of_the_other_side_all_is_as_it_was(folder, speakers):
    one = both(folder)
    one.supervisions = [
        said(str(n), one.recording, 0.1 * n, 0.1, f"t{n}", who)  # pyright: ignore[reportArgumentType]
        for n, who in enumerate(speakers)
    ]
    leaf = leaf_of("lhotse", cuts=folder / "cuts.jsonl")
    example = example_of(leaf, one)
    twice = apply(leaf, apply(leaf, example, NAME), NAME)
    task = twice.custom["task"]
    assert task == NAME
    assert cut_of(replace(twice)).drop_custom("task").to_dict() == cut_of(example).to_dict()
    assert (twice.audio, twice.text, twice.id) == (example.audio, example.text, example.id)
