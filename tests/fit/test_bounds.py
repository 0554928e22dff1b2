"""Buckets are read as people have them, and every slip is one line that says what is wrong."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError, SourceNotFoundError
from playhead.fit.bounds import read_buckets

POSITIVE = st.floats(0.01, 1e6).map(lambda value: round(value, 3)) | st.integers(1, 10**6)


@given(st.lists(POSITIVE, min_size=1, unique=True))
def test_a_flat_list_comes_back_as_it_was_printed(numbers):
    numbers = sorted(numbers)
    found = read_buckets(str(numbers))
    assert list(found.bounds) == numbers
    assert not found.beside


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, unique=True))
def test_pairs_come_back_as_they_were_printed(pairs):
    found = read_buckets(str([list(pair) for pair in sorted(pairs)]))
    assert list(found.bounds) == sorted(pairs)


def test_a_file_has_what_belongs_to_its_buckets(tmp_path):
    path = tmp_path / "bins.yaml"
    path.write_text(
        "use_bucketing: true\nnum_buckets: 2\nbucket_duration_bins: [[5, 40], [10, 60]]\n"
        "max_tps: [8.0, 6.0]\nmax_duration: 10\nsomething: else\nmax_tpt: null\n"
    )
    found = read_buckets(str(path))
    assert found.bounds == ((5, 40), (10, 60))
    assert found.beside == {"max_tps": [8.0, 6.0], "max_duration": 10}
    assert found.have_own_limits


def test_a_file_may_be_nothing_but_a_list(tmp_path):
    (tmp_path / "bins.yml").write_text("[5, 10]\n")
    assert read_buckets(str(tmp_path / "bins.yml")).bounds == (5, 10)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[5, 10", "which is no list"),
        ("", "which is no list"),
        ("five", "which is no list"),
        ("__import__('os')", "which is no list"),
        ("[" * 5000, "which is no list"),
        ("5", "which is no list"),
        ("{5: 10}", "which is no list"),
        ("[]", "there are no buckets"),
        ("[10, 5]", "the bucket 5 comes after 10"),
        ("[5, 5]", "the bucket 5 comes after 5"),
        ("[[5, 40], [5, 30]]", "the bucket [5, 30] comes after [5, 40]"),
        ("[-5, 10]", "the bucket -5 is no number above 0"),
        ("[0, 10]", "the bucket 0 is no number above 0"),
        (f"[5, 1{'0' * 400}]", "is no number above 0"),
        ("[5, 1e999]", "the bucket inf is no number above 0"),
        ("[True, 5]", "the bucket True is no number above 0"),
        ("['5', 10]", "the bucket '5' is no number above 0"),
        ("[5, [10, 40]]", "numbers and pairs at once"),
        ("[[5, 40, 3]]", "has 3 numbers"),
        ("[[5]]", "has 1 numbers"),
    ],
)
def test_a_slip_is_one_line(text, said):
    with pytest.raises(ConfigError) as raised:
        read_buckets(text)
    assert said.lower() in str(raised.value).lower()
    assert "--buckets" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("num_buckets: 3\n", "has no `bucket_duration_bins`"),
        ("bucket_duration_bins: [.nan]\n", "the bucket nan is no number above 0"),
        ("bucket_duration_bins: [5, 10]\nmax_tps: [3.0]\n", "`max_tps` has 1 numbers for 2"),
        ("bucket_duration_bins: [5, 10]\nmax_tps: [3.0, .nan]\n", "not all numbers above 0"),
        ("bucket_duration_bins: [5, 10]\nmax_duration: long\n", "`max_duration` is 'long'"),
        ("bucket_duration_bins: [5, 10]\nmeasure_total_length: 3\n", "neither true nor false"),
        ("bucket_duration_bins: [5,\n", "not valid YAML"),
    ],
)
def test_a_slip_in_a_file_names_the_file(tmp_path, content, said):
    path = tmp_path / "bins.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as raised:
        read_buckets(str(path))
    assert said.lower() in str(raised.value).lower()
    assert str(path) in str(raised.value)


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(SourceNotFoundError, match="does not exist"):
        read_buckets(str(tmp_path / "bins.yaml"))
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_buckets(str(tmp_path / "folder.yaml"))


def test_a_few_aliases_that_stand_for_a_billion_numbers_are_never_written_out(tmp_path):
    nested = [
        f"{name}: &{name} [{', '.join([f'*{last}'] * 10)}]" for last, name in pairwise("abcdefghi")
    ]
    lines = ["a: &a [1, 1]", *nested, "bucket_duration_bins: *i", ""]
    (tmp_path / "bins.yaml").write_text("\n".join(lines))
    with pytest.raises(ConfigError, match="has 10 numbers") as raised:
        read_buckets(str(tmp_path / "bins.yaml"))
    assert len(str(raised.value)) < 1000
