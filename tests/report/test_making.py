"""Every figure of a report against what the micro-batches of a loader hold, counted one by one."""

from __future__ import annotations

import json
import warnings
from collections import Counter, defaultdict
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from playhead.audio_tokens import AudioTokens
from playhead.errors import PlanError, TopologyError
from playhead.report import report_figures
from support.small_blends import G, Letters, configs, loader_of, quiet, trained_by

RANKS = 2
MS = 1e-9


def names_of(config):
    return [entry["name"] for entry in config["input_cfg"]]


class Counted:
    """What the first steps of a loader hold, from the rows of the manifests."""

    def __init__(self, corpus, config, steps):
        loader = loader_of(config)
        names = names_of(config)
        batches = list(islice(loader.micro_batches(), steps * G))
        self.batches = [trained_by(corpus, config, batch, names) for batch in batches]
        self.steps = [self.batches[first : first + G] for first in range(0, len(self.batches), G)]
        self.names = names

    @property
    def samples(self):
        return [sample for batch in self.batches for sample in batch]

    def share(self, name, amount):
        total = sum(map(amount, self.samples))
        return sum(amount(one) for one in self.samples if one.leaf == name) / total

    def imbalance(self, cost):
        of_steps = []
        for step in self.steps:
            ranks = [sum(cost(batch) for batch in step[rank::RANKS]) for rank in range(RANKS)]
            of_steps.append(max(ranks) * RANKS / sum(ranks))
        return sum(of_steps) / len(of_steps)


def longest(batch):
    return max(sample.length_us for sample in batch)


def effective(us, config):
    quadratic = config.get("quadratic_duration")
    if quadratic is None:
        return us
    return us - (-us * us // round(quadratic * 1_000_000))


def own_cost(config):
    return lambda batch: len(batch) * effective(longest(batch), config)


def fill(batch, config):
    """Share of what a batch may hold that it uses, from the options alone."""
    if "bucket_batch_size" in config:
        sizes = zip(config["bucket_duration_bins"], config["bucket_batch_size"], strict=True)
        most = next(size for bound, size in sizes if longest(batch) <= bound * 1_000_000)
        return len(batch) / most
    used = []
    if "batch_duration" in config:
        used.append(own_cost(config)(batch) / (config["batch_duration"] * 1_000_000))
    if "batch_size" in config:
        used.append(len(batch) / config["batch_size"])
    return min(max(used), 1.0)


@settings(max_examples=15)
@given(st.data())
def test_figures_of_batches_are_those_of_the_batches_that_a_loader_makes(corpus, data):
    config = data.draw(configs(corpus))
    windows = data.draw(st.sampled_from([1, 3, None]))
    try:
        figures = quiet(lambda: report_figures(config, world_size=RANKS, windows=windows))
    except PlanError:
        # Where every sample of a source is refused, no loader can be made either.
        reject()
    json.dumps(figures.to_json(), allow_nan=False)
    (part,) = figures.parts
    counted = Counted(corpus, config, part.steps)
    batches, samples = counted.batches, counted.samples
    assert (len(batches), len(samples)) == (part.steps * G, part.samples)
    if not samples:
        return
    real = sum(sample.length_us for sample in samples)
    padded = sum(len(batch) * longest(batch) for batch in batches)
    close = pytest.approx
    assert part.padding == close(1 - real / padded, abs=MS)
    fills = [fill(batch, config) for batch in batches]
    assert part.unused_budget == close(1 - sum(fills) / len(fills), abs=MS)
    assert part.imbalance == close(counted.imbalance(own_cost(config)))
    assert part.imbalance_linear == close(counted.imbalance(lambda b: len(b) * longest(b)))
    assert part.imbalance_quadratic == close(counted.imbalance(lambda b: len(b) * longest(b) ** 2))
    copies = [max(Counter((one.leaf, one.row) for one in batch).values()) for batch in batches]
    assert part.most_copies == max(copies)
    assert figures.hours_per_step == close(real / 3.6e9 / part.steps)
    for leaf in part.leaves:
        assert leaf.realised == close(counted.share(leaf.name, lambda _: 1))
        assert leaf.realised_hours == close(counted.share(leaf.name, lambda one: one.length_us))
    check_buckets(part, batches, config)
    check_blend(part, counted)
    check_worst(part, batches, config)
    check_steps(part, counted, config)


def check_buckets(part, batches, config):
    """Every batch is in one bucket, by its longest sample."""
    assert sum(bucket.batches for bucket in part.buckets) == len(batches)
    bounds = [bucket.bound[0] for bucket in part.buckets]
    assert bounds == sorted(set(bounds))
    if config["use_bucketing"] and "bucket_duration_bins" in config:
        given = config["bucket_duration_bins"]
        assert all(bound in given or bound > given[-1] for bound in bounds)
    below = -1
    for bucket in part.buckets:
        bound = round(bucket.bound[0] * 1_000_000)
        mine = [batch for batch in batches if below < longest(batch) <= bound]
        below = bound
        assert (len(mine), sum(map(len, mine))) == (bucket.batches, bucket.samples)
        real = sum(sample.length_us for batch in mine for sample in batch)
        padded = sum(len(batch) * longest(batch) for batch in mine)
        assert bucket.padding == pytest.approx(1 - real / padded, abs=MS)
        fills = [fill(batch, config) for batch in mine]
        assert bucket.fill == pytest.approx(sum(fills) / len(fills))
        assert bucket.mean_size == pytest.approx(bucket.samples / bucket.batches)
        sizes = dict(
            zip(
                config.get("bucket_duration_bins", ()),
                config.get("bucket_batch_size", ()),
                strict=False,
            )
        )
        assert bucket.size == sizes.get(bucket.bound[0])


def check_blend(part, counted):
    """Stretches lie end to end and say what was drawn in them."""
    at = 0
    for point in part.blend:
        assert point.first_step == at
        at += point.steps
        some = [one for step in counted.steps[point.first_step : at] for b in step for one in b]
        counts = Counter(one.leaf for one in some)
        expected = [counts[name] / len(some) for name in counted.names]
        assert list(point.shares) == pytest.approx(expected)
    assert at == part.steps


def check_worst(part, batches, config):
    cost = own_cost(config)
    assert len(part.worst) == min(10, len(batches))
    limit = config.get("batch_duration")
    costs = []
    for one in part.worst:
        batch = batches[one.step * G + one.slot]
        assert one.rank == one.slot % RANKS
        assert one.samples == len(batch)
        assert one.longest == pytest.approx(longest(batch) / 1e6)
        assert one.total == pytest.approx(len(batch) * longest(batch) / 1e6)
        counts = Counter(sample.leaf for sample in batch)
        assert sorted(one.leaves) == sorted(counts)
        assert [counts[name] for name in one.leaves] == sorted(counts.values(), reverse=True)
        if limit is None:
            assert one.cost is None
        else:
            assert one.cost == pytest.approx(cost(batch) / (limit * 1e6))
        costs.append(cost(batch))
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == max(map(cost, batches))
    shown = [batches[one.step * G + one.slot] for one in part.worst]
    assert len({id(batch) for batch in shown}) == len(shown)
    for most in (len, longest, lambda batch: len(batch) * longest(batch)):
        assert max(map(most, shown)) == max(map(most, batches))
    dearest = {}
    for batch in batches:
        dearest[len(batch)] = max(cost(batch), dearest.get(len(batch), 0))
    # Three of the ten may be those of the longest sample, the most samples, the most padded.
    firsts = sorted(((dear, size) for size, dear in dearest.items()), reverse=True)[:7]
    assert {size for _, size in firsts} <= {len(batch) for batch in shown} or len(
        {dear for dear, _ in firsts}
    ) < len(firsts)


def check_steps(part, counted, config):
    cost = own_cost(config)
    seen = [
        [sum(map(cost, step[rank::RANKS])) for rank in range(RANKS)]
        for step in counted.steps[: len(part.step_costs.number)]
    ]
    if len(part.step_costs.number) == 200:
        return  # Thinned out: which of them is not the matter here.
    mean = sum(map(sum, seen)) / (len(seen) * RANKS)
    assert list(part.step_costs.number) == list(range(len(seen)))
    for name, reduce in (("least", min), ("most", max), ("mean", lambda one: sum(one) / RANKS)):
        expected = [reduce(step) / mean for step in seen]
        assert list(getattr(part.step_costs, name)) == pytest.approx(expected)


# Whole passes


@settings(max_examples=15)
@given(st.data())
def test_a_whole_pass_is_what_figures_of_sources_say(corpus, data):
    """Of a finite pass every accepted sample comes once, so what comes is what was counted."""
    config = data.draw(configs(corpus)) | {"force_finite": True}
    config.pop("drop_last", None)
    config.pop("perturb_speed", None)
    try:
        figures = quiet(lambda: report_figures(config, world_size=RANKS))
    except PlanError:
        # Where every sample of a source is refused, no loader can be made either.
        reject()
    (part,) = figures.parts
    assert figures.finite
    assert figures.steps_per_pass == part.steps
    counted = Counted(corpus, config, part.steps + 1)
    assert len(counted.steps) == part.steps
    real = defaultdict(list)
    for sample in counted.samples:
        if not sample.repeated:
            real[sample.leaf].append(sample.length_us)
    for leaf in part.leaves:
        lengths = sorted(real[leaf.name])
        assert leaf.rows == len(corpus.durations[leaf.name])
        assert leaf.accepted == len(lengths)
        assert leaf.hours == pytest.approx(sum(corpus.durations[leaf.name]) / 3600)
        assert leaf.accepted_hours == pytest.approx(sum(lengths) / 3.6e9)
        if not lengths:
            assert leaf.shortest is leaf.median is leaf.longest is None
            continue
        middle = (lengths[(len(lengths) - 1) // 2] + lengths[len(lengths) // 2]) / 2
        assert leaf.shortest == pytest.approx(lengths[0] / 1e6)
        assert leaf.median == pytest.approx(middle / 1e6)
        assert leaf.longest == pytest.approx(lengths[-1] / 1e6)
        assert leaf.steps_per_pass == part.steps
    refused = sum((Counter(leaf.refused) for leaf in part.leaves), Counter())
    assert refused == Counter(part.dropped)
    everything = [length for lengths in real.values() for length in lengths]
    if not everything:
        return
    (bars,) = part.distributions
    assert sum(bars.samples) == len(everything)
    for low, high, count, hours in zip(
        bars.edges[:-1], bars.edges[1:], bars.samples, bars.amount, strict=True
    ):
        inside = [one for one in everything if round(low * 1e6) <= one < round(high * 1e6)]
        assert len(inside) == count
        assert hours == pytest.approx(sum(inside) / 3.6e9)


# Kinds of blends


def figures_of(config, **options):
    return quiet(lambda: report_figures(config, world_size=RANKS, **options))


@pytest.mark.parametrize("packed", [False, True])
def test_batches_by_tokens_are_measured_in_tokens(corpus, packed):
    options = {
        "use_multimodal_sampling": True, "batch_tokens": 300, "force_finite": True,
        "use_packed_sequence_sampling": packed, "token_equivalent_duration": 0.5,
    }  # fmt: skip
    config = corpus.blend(["plain", "lines"], [1.0, 1.0], options)
    figures = figures_of(config, tokenizer=Letters())
    (part,) = figures.parts
    assert part.unit == "tokens"
    assert part.limit == "batch_tokens 300 tokens" + ", packed" * packed
    names = names_of(config)
    loader = loader_of(config, tokenizer=Letters())
    batches = [trained_by(corpus, config, batch, names) for batch in loader.micro_batches()]

    audio = AudioTokens.parse(loader.planning.shape.audio_tokens)

    def tokens(sample):
        text = len(corpus.texts[sample.leaf][sample.row])
        if sample.length_us < 0:
            # A text by itself has a token at its end.
            return text + 1
        return text + int(audio.count(np.array([sample.length_us]))[0])

    counts = [[tokens(sample) for sample in batch] for batch in batches]
    real, padded = sum(map(sum, counts)), sum(len(one) * max(one) for one in counts)
    assert part.padding == (0 if packed else pytest.approx(1 - real / padded))
    costs = [sum(one) if packed else len(one) * max(one) for one in counts]
    assert part.unused_budget == pytest.approx(1 - sum(costs) / len(costs) / 300, abs=MS)
    assert figures.tokens_per_step == pytest.approx(real / part.steps)
    plain, lines = part.leaves
    assert plain.hours == pytest.approx(sum(corpus.durations["plain"]) / 3600)
    assert lines.hours is None
    assert lines.accepted_hours is None
    assert lines.tokens == sum(len(text) + 1 for text in corpus.texts["lines"])
    assert plain.longest == max(
        tokens(sample) for batch in batches for sample in batch if sample.leaf == "plain"
    )
    seconds, in_tokens = part.distributions
    assert (seconds.unit, in_tokens.unit) == ("seconds", "tokens")
    assert (sum(seconds.samples), sum(in_tokens.samples)) == (plain.rows, plain.rows + lines.rows)
    assert sum(in_tokens.amount) == pytest.approx((plain.tokens + lines.tokens) / 1000)
    most = max(range(len(costs)), key=costs.__getitem__)
    assert part.worst[0].tokens == max(counts[part.worst[0].step * G + part.worst[0].slot])
    assert part.worst[0].cost == pytest.approx(costs[most] / 300)
    for one in part.worst:
        assert one.total == pytest.approx(costs[one.step * G + one.slot])


def test_bins_of_two_lengths_have_both_in_their_bounds(corpus):
    options = {
        "bucket_duration_bins": [[6.0, 30], [6.0, 90], [25.0, 90]],
        "bucket_batch_size": [4, 3, 2], "use_bucketing": True, "force_finite": True,
    }  # fmt: skip
    figures = figures_of(corpus.blend(["plain", "other"], [1.0, 1.0], options), tokenizer=Letters())
    (part,) = figures.parts
    assert part.fixed_sizes
    assert part.limit == "bucket_batch_size of 3 2-D buckets"
    assert {bucket.bound for bucket in part.buckets} <= {(6.0, 30.0), (6.0, 90.0), (25.0, 90.0)}
    assert {bucket.bound: bucket.size for bucket in part.buckets}[25.0, 90.0] == 2
    assert sum(bucket.samples for bucket in part.buckets) == part.samples
    assert all(0 < bucket.fill <= 1 for bucket in part.buckets)
    assert part.worst[0].tokens is not None


def test_texts_alone_have_no_hours(corpus):
    config = corpus.blend(["lines"], [1.0], {"batch_size": 4, "force_finite": True})
    figures = figures_of(config, hours_per_hour=100.0)
    (part,) = figures.parts
    (leaf,) = part.leaves
    assert (leaf.hours, leaf.accepted_hours, leaf.realised_hours) == (None, None, None)
    assert (leaf.shortest, leaf.median, leaf.longest) == (None, None, None)
    assert (leaf.accepted, leaf.realised) == (29, 1.0)
    assert figures.hours_per_step is None
    assert figures.time is None
    assert part.distributions == ()
    assert part.padding == 0
    json.dumps(figures.to_json(), allow_nan=False)


def test_sources_without_samples_are_shown_as_such(corpus, tmp_path):
    empty = tmp_path / "empty.json"
    empty.write_text("")
    options = {"batch_size": 4, "max_duration": 13.0, "force_finite": True}
    config = corpus.blend(["plain"], [1.0], options)
    long = tmp_path / "long.json"
    long.write_text(json.dumps({"audio_filepath": "a.wav", "duration": 99.0, "text": "a"}) + "\n")
    for name, path in (("none", empty), ("long", long)):
        config["input_cfg"].append({"type": "nemo", "manifest_filepath": str(path), "name": name})
        config["input_cfg"][-1]["weight"] = 0.5
    figures = figures_of(config)
    leaves = {leaf.name: leaf for leaf in figures.parts[0].leaves}
    assert (leaves["none"].rows, leaves["none"].accepted) == (0, 0)
    assert leaves["none"].refused == {"manifest without rows": 1}
    assert (leaves["long"].rows, leaves["long"].accepted) == (1, 0)
    assert leaves["long"].refused == {"max_duration": 1}
    assert (leaves["long"].longest, leaves["long"].accepted_hours) == (None, 0.0)
    assert any("none has no rows" in note for note in figures.notes)
    assert any("long gives nothing" in note for note in figures.notes)


def test_a_source_of_weight_0_is_never_drawn(corpus):
    figures = figures_of(corpus.blend(["plain", "other"], [1.0, 0.0], {"batch_size": 4}))
    plain, other = figures.parts[0].leaves
    assert (plain.realised, other.realised, other.weight) == (1.0, 0.0, 0.0)
    assert other.steps_per_pass is None
    assert "other has weight 0 and is never drawn." in figures.notes
    (bars,) = figures.parts[0].distributions
    assert sum(bars.samples) == plain.rows


def test_steps_of_a_pass_follow_from_weight_and_rows(corpus):
    options = {"batch_size": 2, "window_draws": 400}
    figures = figures_of(corpus.blend(["plain", "other"], [1.0, 3.0], options), windows=2)
    plain, other = figures.parts[0].leaves
    assert plain.steps_per_pass == pytest.approx(37 * 4 / (2 * G), rel=0.02)
    assert other.steps_per_pass == pytest.approx(61 * 4 / 3 / (2 * G), rel=0.02)
    assert figures.steps_per_pass is None
    assert figures.parts[0].windows == 2
    assert "does not end" in figures.notes[-1]


@pytest.mark.parametrize("shuffle", [None, False, True])
def test_training_that_nobody_shuffles_is_said_to_be_in_order(corpus, shuffle):
    options = {"batch_size": 4} if shuffle is None else {"batch_size": 4, "shuffle": shuffle}
    figures = figures_of(corpus.blend(["plain", "other"], [1.0, 1.0], options))
    assert any("Nothing is shuffled" in note for note in figures.notes) == (not shuffle)


def test_times_follow_from_the_speed_of_one_gpu(corpus):
    config = corpus.blend(["plain"], [1.0], {"batch_size": 4, "force_finite": True})
    figures = figures_of(config, hours_per_hour=100.0)
    seconds = figures.hours_per_step * 3600 / (100 * RANKS)
    assert figures.time.seconds_per_step == pytest.approx(seconds)
    assert figures.time.pass_seconds == pytest.approx(seconds * figures.steps_per_pass)


def test_a_pass_that_is_not_planned_whole_is_estimated(corpus):
    options = {"batch_size": 1, "force_finite": True, "window_draws": 20}
    config = corpus.blend(["plain", "other"], [1.0, 1.0], options)
    whole, some = figures_of(config), figures_of(config, windows=2)
    assert whole.steps_per_pass == 25
    assert some.parts[0].windows == 2
    assert some.steps_per_pass == pytest.approx(25, abs=2)
    assert "its number of steps is an estimate" in some.notes[-1]
    assert whole.notes == ()


def test_a_world_size_that_does_not_divide_the_step_names_those_that_do(corpus):
    config = corpus.blend(["plain"], [1.0], {"batch_size": 4})
    with pytest.raises(TopologyError, match="out of 1, 2, 4"):
        quiet(lambda: report_figures(config, world_size=3))
    # Without a step of the config's own it follows the world size, whatever this machine has.
    del config["micro_batches_per_step"]
    figures = quiet(lambda: report_figures(config, world_size=64))
    assert (figures.micro_batches_per_step, figures.world_size) == (64, 64)


@pytest.mark.parametrize("fusion", ["round_robin", "randomized_round_robin", "zip"])
def test_several_blends_have_figures_each_with_steps_of_training(corpus, fusion):
    config = {
        "multi_config": True, "seed": 5, "shuffle": True, "sampler_fusion": fusion,
        "micro_batches_per_step": G,
        "short": corpus.blend(["plain"], [1.0], {"batch_size": 3, "window_draws": 60}),
        "long": corpus.blend(["other"], [1.0], {"batch_duration": 60, "window_draws": 60}),
    }  # fmt: skip
    for name in ("short", "long"):
        del config[name]["seed"]
        del config[name]["micro_batches_per_step"]
        config[name]["force_finite"] = False
        config[name]["input_cfg"].append(corpus.entries["tarred"] | {"weight": 1.0})
    if fusion == "randomized_round_robin":
        config["sampler_weights"] = {"short": 1.0, "long": 3.0}
    figures = figures_of(config, windows=1)
    assert [part.name for part in figures.parts] == ["long", "short"]
    steps = max(one.step for part in figures.parts for one in part.worst) + 1
    batches = list(islice(loader_of(config).micro_batches(), steps * G))
    for part in figures.parts:
        for one in part.worst:
            batch = batches[one.step * G + one.slot]
            own = sum(int(leaf) // 2 == (part.name == "short") for leaf in batch.leaf)
            assert own == one.samples
            if fusion != "zip":
                assert len(batch.row) == one.samples
    assert sum(part.share for part in figures.parts) == pytest.approx(1)


def test_what_training_would_warn_of_is_among_the_notes(corpus):
    config = {
        "multi_config": True, "seed": 5, "shuffle": True, "micro_batches_per_step": G,
        "ends": corpus.blend(["plain"], [1.0], {"batch_size": 3}),
        "goes_on": corpus.blend(["tarred"], [1.0], {"batch_size": 3}),
    }  # fmt: skip
    for name in ("ends", "goes_on"):
        del config[name]["seed"]
        del config[name]["micro_batches_per_step"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notes = report_figures(config, windows=1).notes
    assert any(
        note.startswith("Parts that end") and "after one pass over ends only goes_on" in note
        for note in notes
    )
    assert all(note.endswith(".") and not note.endswith("..") for note in notes)
