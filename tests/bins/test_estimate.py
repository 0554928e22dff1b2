"""What is estimated is accepted by the plan as it is, and every sample that passes has a bin."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from playhead.audio_tokens import AudioTokens
from playhead.bins.config_keys import keys_of, yaml_of
from playhead.bins.estimate import estimate_bins
from playhead.bins.samples import Tally, accepted_samples
from playhead.bins.settings import BinSettings
from playhead.blend.yaml_loader import parse_yaml
from playhead.config import Options, Spot, read_options
from playhead.errors import ConfigError
from playhead.loader.settings import batching_of
from playhead.plan import Shape
from playhead.plan.filters import refused_rows
from support.plans import columns, speech

_DIGEST = "0" * 16
_AUDIO = AudioTokens.of_duration(80_000)

lengths_us = st.lists(
    st.integers(0, 40_000_000)
    | st.integers(0, 30)
    | st.sampled_from([1_000_000, 2_000_000, 2_000_001])
    | st.integers(0, 1 << 45),
    min_size=1,
    max_size=120,
)
token_counts = st.integers(0, 12) | st.integers(0, 300) | st.just(40_000)


def batching_from(bins, **more):
    """The settings that training has of a config with these bins, and any sizes."""
    written = parse_yaml(yaml_of(keys_of(bins, Options())).encode(), "bins.yaml")
    sizes = [1] * len(bins.bounds)
    options = read_options(
        {**written, "bucket_batch_size": sizes, **more}, where=Spot("x"), strict=True, notes=[]
    )
    return batching_of(options, 1), options


def leaf_of(lengths, tokens=None, key="a", weight=1, before=None, **more):
    side = None
    if tokens is not None:
        counts = np.array(tokens, dtype=np.uint32)
        first = np.zeros_like(counts) if before is None else np.array(before, dtype=np.uint32)
        known = {
            "tokens": counts + first,
            "input": first,
            "output": counts,
            "context": first,
            "answer": counts,
        }
        side = {_DIGEST: known}.get
    return columns(key, lengths, weight, side=side, **more)


def refused_by_bins(leaf, shape, bins, **more):
    """How many samples training drops for the bins alone."""
    batching, _ = batching_from(bins, **more)
    refused = refused_rows(leaf, shape, batching)
    assert set(refused) <= {"above_last_bin", "no_bucket"}
    return sum(refused.values())


@given(lengths_us, st.integers(2, 12), st.booleans())
def test_every_sample_has_a_bin_of_seconds(lengths, num_buckets, optimize):
    leaf = leaf_of(lengths)
    settings = BinSettings(num_buckets=num_buckets, optimize=optimize)
    bins = estimate_bins([leaf], Shape(), settings)
    assert 1 <= len(bins.bounds) <= num_buckets
    assert refused_by_bins(leaf, Shape(), bins) == 0
    # No more is added to the longest than the printed decimals ask for.
    assert 0 <= bins.bounds[-1] * 1e6 - max(lengths) <= 11
    assert bins.longest == bins.bounds[-1]
    assert bins.tally.accepted == len(lengths)


@given(
    st.lists(st.tuples(st.integers(0, 40_000_000), token_counts), min_size=1, max_size=120),
    st.integers(2, 8),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.5, 1.0, 4.0, float("inf"), -1.0]),
    st.booleans(),
    st.booleans(),
)
def test_every_sample_has_a_bin_of_seconds_and_tokens_unless_it_stands_out(  # noqa: PLR0917
    rows, num_buckets, sub_buckets, threshold, strict, optimize
):
    lengths, tokens = zip(*rows, strict=True)
    assume(any(tokens))
    leaf = leaf_of(lengths, tokens)
    shape = Shape(tokens=_DIGEST)
    settings = BinSettings(
        num_buckets=num_buckets,
        sub_buckets=sub_buckets,
        outlier_threshold=threshold,
        strict_2d=strict,
        optimize=optimize,
    )
    bins = estimate_bins([leaf], shape, settings)
    refused = refused_by_bins(leaf, shape, bins, bucketing_2d_strict_mode=strict)
    assert refused == bins.left_out
    if threshold == float("inf"):
        assert not bins.left_out
    assert len(bins.bounds) <= num_buckets * sub_buckets
    assert len(set(bins.bounds)) == len(bins.bounds)


@given(
    st.lists(st.tuples(st.integers(0, 60_000_000), token_counts), min_size=1, max_size=120),
    st.integers(2, 8),
    st.booleans(),
    st.sampled_from(["none", "pow2", "pow2sum"]),
    st.booleans(),
)
def test_every_sample_has_a_bin_of_tokens(rows, num_buckets, total, quantization, optimize):
    lengths, tokens = zip(*rows, strict=True)
    leaf = leaf_of(lengths, tokens)
    shape = Shape(tokens=_DIGEST, multimodal=True, audio_tokens=_AUDIO.text, total_length=total)
    settings = BinSettings(
        num_buckets=num_buckets, in_tokens=True, quantization=quantization, optimize=optimize
    )
    bins = estimate_bins([leaf], shape, settings)
    assert refused_by_bins(leaf, shape, bins) == 0
    audio = _AUDIO.count(np.array(lengths))
    sizes = audio + np.array(tokens) if total else audio
    assert bins.longest == sizes.max()
    assert bins.bounds[-1] >= max(1, sizes.max())
    if quantization == "none":
        assert bins.bounds[-1] == max(1, sizes.max())
    if quantization == "pow2":
        assert all(bound >= 32 and bound & (bound - 1) == 0 for bound in bins.bounds)


@given(
    st.lists(st.tuples(st.integers(0, 200), token_counts), min_size=1, max_size=120),
    st.sampled_from(["text", "cut", "conversation"]),
    st.integers(2, 6),
    st.integers(1, 4),
    st.sampled_from([0.5, 6.0, float("inf")]),
    st.sampled_from(["none", "pow2", "pow2sum"]),
)
def test_every_sample_has_a_bin_of_two_lengths_in_tokens_unless_it_stands_out(  # noqa: PLR0917
    rows, kind, num_buckets, sub_buckets, threshold, quantization
):
    before, tokens = zip(*rows, strict=True)
    assume(any(tokens))
    spoken = np.array(before) * 80_000 if kind == "cut" else np.zeros(len(rows), np.int64)
    leaf = leaf_of(spoken, tokens, before=None if kind == "cut" else before, kind=kind)
    shape = Shape(tokens=_DIGEST, multimodal=True, audio_tokens=_AUDIO.text)
    settings = BinSettings(
        num_buckets=num_buckets,
        in_tokens=True,
        sub_buckets=sub_buckets,
        outlier_threshold=threshold,
        quantization=quantization,
    )
    bins = estimate_bins([leaf], shape, settings)
    assert refused_by_bins(leaf, shape, bins) == bins.left_out
    if threshold == float("inf"):
        assert not bins.left_out
    unanswerable = any(first == 0 and second for first, second in rows)
    if not unanswerable:
        assert bins.ratios is not None


@given(
    st.lists(st.integers(1, 30_000_000), min_size=1, max_size=80),
    st.integers(1, 100),
    st.integers(2, 6),
)
def test_a_few_examples_decide_and_all_have_a_bin(lengths, num_examples, num_buckets):
    leaf = leaf_of(lengths)
    settings = BinSettings(num_buckets=num_buckets, num_examples=num_examples)
    bins = estimate_bins([leaf], Shape(), settings)
    assert bins.tally.weighed == min(num_examples, len(lengths))
    assert bins.tally.accepted == len(lengths)
    assert refused_by_bins(leaf, Shape(), bins) == 0


@given(
    st.lists(st.integers(1, 4_000_000), min_size=1, max_size=20),
    st.integers(1, 7),
    st.integers(2, 6),
)
def test_edges_of_least_padding_for_a_few_examples_end_at_the_longest_of_all(
    lengths, num_examples, num_buckets
):
    leaf = leaf_of([10 * length for length in lengths])
    settings = BinSettings(num_buckets=num_buckets, num_examples=num_examples, optimize=True)
    bins = estimate_bins([leaf], Shape(), settings)
    decide = list(accepted_samples([leaf], Shape(), Tally(), num_examples=num_examples))
    weighed = [length for items, weight in decide if weight for length in items.length.tolist()]

    def padded(edges):
        return sum(min(edge for edge in edges if edge >= length) for length in weighed)

    last = 10 * max(lengths)
    others = set(weighed) - {last}
    choices = combinations(others, min(num_buckets - 1, len(others)))
    least = min(padded([*chosen, last]) for chosen in choices)
    assert padded([round(1e6 * edge) for edge in bins.bounds]) == least


@pytest.mark.parametrize(
    "shape",
    [
        Shape(perturb_speed=True),
        Shape(truncate_us=4_000_000),
        Shape(window_us=3_000_000, hop_us=2_000_000),
        Shape(pad_us=9_000_000),
        Shape(finite=True, perturb_speed=True),
        Shape(min_duration_us=3_000_000, max_duration_us=9_000_000),
    ],
)
def test_samples_are_measured_as_they_are_trained_on(shape):
    leaf = leaf_of(speech(500))
    bins = estimate_bins([leaf], shape, BinSettings(num_buckets=6))
    batching, _ = batching_from(bins)
    refused = refused_rows(leaf, shape, batching)
    assert {"above_last_bin", "no_bucket"}.isdisjoint(refused)
    assert bins.tally.refused == {name: count for name, count in refused.items() if count}


# Weights ------------------------------------------------------------------------------------------


def test_what_stands_out_is_counted_once_whatever_speeds_it_is_played_at():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1_000_000, 20_000_000, 2000)
    tokens = lengths * 4 // 1_000_000 + rng.integers(0, 5, 2000)
    tokens[:7] = lengths[:7] * 300 // 1_000_000
    leaf, shape = leaf_of(lengths, tokens), Shape(tokens=_DIGEST, perturb_speed=True)
    bins = estimate_bins([leaf], shape, BinSettings(num_buckets=4, sub_buckets=2))
    assert bins.tally.accepted == 2000
    assert bins.left_out == refused_by_bins(leaf, shape, bins) >= 7


def test_the_weights_of_a_blend_count():
    short, long = speech(3000, seed=1) // 4, speech(3000, seed=2)
    alone = estimate_bins([leaf_of(short)], Shape(), BinSettings(num_buckets=8))

    def blended(weight):
        leaves = [leaf_of(short, key="a", weight=weight), leaf_of(long, key="b", weight=1)]
        return estimate_bins(leaves, Shape(), BinSettings(num_buckets=8))

    # Next to nothing of the long ones is drawn: the edges but for the last are those without.
    assert blended(10**9).bounds[:-1] == pytest.approx(alone.bounds[:-1], rel=0.05)
    assert blended(1).bounds[0] > 1.2 * alone.bounds[0]
    assert blended(1).bounds[-1] == blended(10**9).bounds[-1]


def test_a_weight_of_n_is_n_copies_of_the_data():
    short, long = speech(600, seed=1) // 4, speech(600, seed=2)
    weighted = [leaf_of(short, key="a", weight=3), leaf_of(long, key="b", weight=1)]
    copied = [leaf_of(np.concatenate([short] * 3 + [long]), key="c")]
    settings = BinSettings(num_buckets=9)
    assert estimate_bins(weighted, Shape(), settings).bounds == pytest.approx(
        estimate_bins(copied, Shape(), settings).bounds, rel=0.02
    )


def test_a_pass_that_ends_takes_every_sample_once():
    short, long = speech(600, seed=1) // 4, speech(600, seed=2)
    leaves = [leaf_of(short, key="a", weight=7), leaf_of(long, key="b", weight=1)]
    both = [leaf_of(np.concatenate([short, long]), key="c")]
    settings = BinSettings(num_buckets=9)
    assert (
        estimate_bins(leaves, Shape(finite=True), settings).bounds
        == estimate_bins(both, Shape(finite=True), settings).bounds
    )


def test_refused_draws_leave_a_leaf_less_of_the_blend():
    # Half of the draws of the first leaf are refused, as in training, which draws no others.
    lengths = np.repeat([1_000_000, 20_000_000], 200)
    leaves = [leaf_of(lengths, key="a"), leaf_of(np.full(200, 2_000_000), key="b")]
    shape = Shape(max_duration_us=10_000_000)
    bins = estimate_bins(leaves, shape, BinSettings(num_buckets=5))
    halved = [leaf_of(lengths[:200], key="a"), leaf_of(np.full(400, 2_000_000), key="b", weight=2)]
    assert bins.bounds == estimate_bins(halved, Shape(), BinSettings(num_buckets=5)).bounds
    assert bins.tally.refused == {"max_duration": 200}


def test_data_that_are_not_drawn_need_no_bin():
    leaves = [leaf_of([1_000_000]), leaf_of([50_000_000], key="b", weight=0)]
    assert estimate_bins(leaves, Shape(), BinSettings()).bounds == (1.0,)
    assert estimate_bins(leaves, Shape(finite=True), BinSettings()).bounds == (1.0, 50.0)


# Two lengths --------------------------------------------------------------------------------------


def test_each_duration_is_split_by_its_own_tokens():
    # Short samples have few tokens, long ones many: a group that ran on to the end of the data
    # would show in the last number of the first.
    lengths = np.repeat([1_000_000, 10_000_000], 100)
    tokens = np.concatenate([np.arange(1, 101) % 7 + 1, np.arange(1, 101) + 200])
    bins = estimate_bins(
        [leaf_of(lengths, tokens)],
        Shape(tokens=_DIGEST),
        BinSettings(num_buckets=2, sub_buckets=2),
    )
    firsts = sorted({first for first, _ in bins.bounds})
    assert firsts == [1.0, 10.0]
    assert dict(bins.bounds) == {1.0: 7, 10.0: 300}


def test_only_what_stands_out_is_left_out_and_counted():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1_000_000, 20_000_000, 5000)
    tokens = lengths * 4 // 1_000_000 + rng.integers(0, 5, 5000)
    tokens[:7] = lengths[:7] * 300 // 1_000_000
    bins = estimate_bins(
        [leaf_of(lengths, tokens)],
        Shape(tokens=_DIGEST),
        BinSettings(num_buckets=5, sub_buckets=3, outlier_threshold=10.0),
    )
    assert bins.left_out == 7
    assert max(second for _, second in bins.bounds) < 200
    assert max(bins.ratios) < 20


def test_equal_ratios_leave_nothing_out():
    lengths = np.arange(1, 200) * 100_000
    tokens = np.arange(1, 200)
    bins = estimate_bins(
        [leaf_of(lengths, tokens)],
        Shape(tokens=_DIGEST),
        BinSettings(num_buckets=5, sub_buckets=2, outlier_threshold=0.1),
    )
    assert bins.left_out == 0
    assert set(bins.ratios) == {10.0}


def test_a_group_that_stands_out_as_a_whole_stays_and_is_named():
    bins = estimate_bins(
        [leaf_of([1_000_000] * 3, [1, 2, 3])],
        Shape(tokens=_DIGEST),
        BinSettings(sub_buckets=2, outlier_threshold=-5.0),
    )
    assert bins.left_out == 0
    assert "nothing is left out" in bins.notes[-1]


# Notes and refusals -------------------------------------------------------------------------------


def test_fewer_lengths_than_buckets_are_fewer_buckets():
    bins = estimate_bins([leaf_of([1_000_000, 2_000_000] * 5)], Shape(), BinSettings())
    assert bins.bounds == (1.0, 2.0)
    few = estimate_bins([leaf_of([1_000_000, 50_000_000])], Shape(), BinSettings(num_buckets=2))
    assert few.bounds == (1.0, 50.0)
    assert not few.notes
    assert bins.notes == ("2 buckets instead of 30: there are 2 distinct lengths",)


@pytest.mark.parametrize(
    "lengths",
    [
        [1_000_000] * 99 + list(range(2_000_000, 2_000_400, 10)),
        list(range(500_000, 15_300_000, 37_000)),
    ],
)
def test_fewer_buckets_than_asked_for_are_said(lengths):
    bins = estimate_bins([leaf_of(lengths)], Shape(), BinSettings(num_buckets=30))
    assert len(bins.bounds) < 30
    assert "part into no more of equal mass (--optimize finds others)" in bins.notes[-1]
    best = estimate_bins([leaf_of(lengths)], Shape(), BinSettings(num_buckets=30, optimize=True))
    assert len(best.bounds) == 30
    assert not best.notes


def test_nothing_left_is_an_error_that_says_why():
    with pytest.raises(ConfigError, match="max_duration refuses 1"):
        estimate_bins([leaf_of([9])], Shape(max_duration_us=5), BinSettings())
    with pytest.raises(ConfigError, match="there is none"):
        estimate_bins([leaf_of([])], Shape(), BinSettings())
    with pytest.raises(ConfigError, match="no_length refuses 2"):
        estimate_bins([leaf_of([-1, -1])], Shape(), BinSettings())


@pytest.mark.parametrize(
    ("sub_buckets", "in_tokens"), [(2, False), (2, True), (None, True), (None, False)]
)
def test_samples_without_a_text_are_counted_where_texts_matter(sub_buckets, in_tokens):
    lengths = np.array([1, 2, 3]) * 1_000_000
    of_tokens = {"multimodal": True, "audio_tokens": _AUDIO.text} if in_tokens else {}
    shape = Shape(tokens=_DIGEST, **of_tokens)
    settings = BinSettings(sub_buckets=sub_buckets, in_tokens=in_tokens)
    made = estimate_bins([leaf_of(lengths, [0, 4, 0])], shape, settings)
    said = "2 of 3 samples have no tokens of a text (--text-field)"
    assert (said in made.notes) == (bool(sub_buckets) or in_tokens)
    textless = [leaf_of(lengths, [0, 0, 0])]
    if sub_buckets:
        with pytest.raises(ConfigError, match="No sample has a text"):
            estimate_bins(textless, shape, settings)
    else:
        made = estimate_bins(textless, shape, settings)
        assert any(note.startswith("3 of 3 samples") for note in made.notes) == in_tokens


def test_texts_have_no_seconds():
    texts = leaf_of([-1, -1], [3, 4], kind="text")
    with pytest.raises(ConfigError, match=r"without audio.*--tokens"):
        estimate_bins([texts], Shape(tokens=_DIGEST), BinSettings())


def test_optimizing_says_what_it_gains():
    bins = estimate_bins([leaf_of(speech(5000))], Shape(), BinSettings(optimize=True))
    assert 0 < bins.gain.least < bins.gain.equal_mass < 0.1
    assert len(bins.bounds) == 30


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"num_buckets": 1}, "--buckets is 1"),
        ({"num_buckets": -3}, "--buckets is -3"),
        ({"num_buckets": 2000, "optimize": True}, "at most 1,000"),
        ({"sub_buckets": 0}, "--sub-buckets is 0"),
        ({"num_examples": 0}, "--num_examples is 0"),
        ({"in_tokens": True, "max_tokens": 3, "min_tokens": 5}, "--max_tokens is 3"),
        ({"max_tpt": 0}, "--max_tpt is 0"),
        ({"outlier_threshold": float("nan")}, "nan"),
        ({"outlier_threshold": -float("inf")}, "-inf"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, named):
    with pytest.raises(ConfigError, match=named):
        BinSettings(**options)
