"""A config takes a profile as it is, whole or as the two lines that are printed."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import Spot, read_options
from playhead.fit.bounds import GivenBuckets
from playhead.fit.bucket import LengthRule, buckets_of
from playhead.fit.profile import Profile
from playhead.fit.search import FoundBucket
from playhead.loader.settings import batching_of

GIB = 1 << 30


def fitted(bounds, sizes, rule=None, **facts):
    buckets = buckets_of(bounds, rule or LengthRule(input_rate=16_000))
    known = {"allocated": 9 * GIB, "reserved": 10 * GIB, "is_measured": False, **facts}
    return tuple(
        FoundBucket(bucket=bucket, batch_size=size, probes=1, seconds=1.0, **known)
        for bucket, size in zip(buckets, sizes, strict=True)
    )


def profile(bounds, sizes, *, rule=None, beside=None, facts=None):
    given = GivenBuckets(bounds=tuple(bounds), beside=beside or {})
    return Profile.of(fitted(bounds, sizes, rule), given, facts or {})


def batching(text):
    """What a loader makes of a section that holds nothing else."""
    notes = []
    options = read_options(yaml.safe_load(text), where=Spot("it"), strict=True, notes=notes)
    return options, batching_of(options, 1)


def test_a_section_of_one_length(tmp_path):
    found = profile([5, 10.5, 20, 30], [32, 16, 16, 4], beside={"max_duration": 29.97})
    path = tmp_path / "there" / "profile.yaml"
    found.write(path)
    options, cut = batching(path.read_text())
    assert options.use_bucketing
    assert options.num_buckets == 3
    assert options.batch_size is None
    assert options.max_duration == 29.97
    assert cut.bins_us == (5_000_000, 20_000_000, 30_000_000)
    assert cut.bucket_batch_size == (32, 16, 4)


def test_a_section_of_two_lengths():
    bounds = [(5, 40), (5, 80), (10, 60), (10, 120)]
    found = profile(bounds, [8, 8, 4, 2], beside={"max_tps": [9.0, 16.0, 6.5, 12.0]})
    _, cut = batching(found.to_yaml())
    assert cut.bins_us == (5_000_000, 5_000_000, 10_000_000, 10_000_000)
    assert cut.bins_tokens == (40, 80, 60, 120)
    assert cut.bucket_batch_size == (8, 8, 4, 2)
    assert cut.max_tps_per_bin == (9.0, 16.0, 6.5, 12.0)


def test_a_section_of_tokens():
    rule = LengthRule(input_rate=16_000, audio_share=0.75)
    beside = {
        "use_multimodal_sampling": True,
        "max_tpt": [0.5, 0.25],
        "token_equivalent_duration": 0.08,
    }
    _, cut = batching(profile([100, 200], [64, 30], rule=rule, beside=beside).to_yaml())
    assert cut.in_tokens
    assert cut.bins_length == (100, 200)
    assert cut.bucket_batch_size == (64, 30)
    assert cut.max_tpt_per_bin == (0.5, 0.25)


@pytest.mark.parametrize(
    ("bounds", "sizes"), [([5, 10.5, 20], [32, 16, 16]), ([(5, 40), (10, 60)], [8, 4])]
)
def test_the_two_lines_are_a_section_too(bounds, sizes):
    found = profile(bounds, sizes)
    pasted = "\n".join(line.replace("=", ": ", 1) for line in found.lines)
    _, by_lines = batching(pasted)
    _, whole = batching(found.to_yaml())
    assert by_lines == whole


@given(
    st.lists(st.floats(0.001, 9e5), min_size=1, max_size=40, unique=True).map(sorted),
    st.data(),
)
def test_no_bound_changes_on_its_way_through_yaml(bounds, data):
    most = st.integers(1, 4096)
    sizes = sorted(data.draw(st.lists(most, min_size=len(bounds), max_size=len(bounds))))[::-1]
    found = profile(bounds, sizes)
    read = yaml.safe_load(found.to_yaml())
    assert read["bucket_duration_bins"] == list(found.bounds)
    assert read["bucket_batch_size"] == list(found.sizes)
    # What is merged is taken by a bucket that is longer and has the same size.
    for bound, size in zip(bounds, sizes, strict=True):
        taken = next(n for n, other in enumerate(found.bounds) if other >= bound)
        assert found.sizes[taken] == size
    assert all(before > after for before, after in pairwise(found.sizes))


def test_a_bucket_that_takes_nothing_is_named_and_its_samples_are_refused():
    found = profile([5, 10, 20], [4, 1, 0], beside={"max_duration": 19.5})
    text = found.to_yaml()
    options, cut = batching(text)
    assert cut.bucket_batch_size == (4, 1)
    assert options.max_duration == 10
    assert "20 (input=320000 output=240): NOT EVEN ONE FITS" in text


def test_limits_of_buckets_go_with_their_buckets_and_keep_them_apart():
    found = profile([(5, 40), (10, 60)], [4, 0], beside={"max_tps": [8.0, 6.0]})
    assert found.options["max_tps"] == [8.0]
    found = profile([5, 10, 20], [4, 4, 4], beside={"max_tps": [8.0, 6.0, 5.0]})
    assert found.bounds == (5, 10, 20)
    _, cut = batching(found.to_yaml())
    assert cut.max_tps_per_bin == (8.0, 6.0, 5.0)


def test_facts_and_peaks_are_comments():
    [one] = fitted([5], [8])
    [two] = fitted([10], [4], allocated=None, reserved=GIB, is_measured=True)
    facts = {"model": "my model\nbatch_size: 7", "device": "a card"}
    found = Profile.of([one, two], GivenBuckets(bounds=(5, 10)), facts)
    lines = found.to_yaml().splitlines()
    assert "# model: my model batch_size: 7" in lines
    assert "# device: a card" in lines
    assert lines[-2] == (
        "#   5 (input=80000 output=60): 8, tensors 9.00 GiB, allocator 10.00 GiB (estimated)"
    )
    assert lines[-1] == "#   10 (input=160000 output=120): 4, allocator 1.00 GiB (measured)"
    assert json.loads(json.dumps(found.to_json()))["buckets"][1]["measured"] is True


def test_a_write_that_fails_leaves_the_profile_that_was_there(tmp_path, monkeypatch):
    path = tmp_path / "profile.yaml"
    profile([5], [8]).write(path)
    before = path.read_text()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="full"):
        profile([5], [9]).write(path)
    assert path.read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["profile.yaml"]
