"""Blends whose rows are reshaped and filtered, what they must give worked out row by row, and a
walk through their plan that keeps every array of every batch."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from playhead.plan import Batching, Shape, plan_window, resume
from playhead.plan.effort import effective_one
from playhead.plan.keyed import Purpose, key, text_word
from playhead.plan.reshape import SHORTEST_PART_US
from support.plans import columns, through_json

__all__ = [
    "Sample",
    "Walker",
    "batchings",
    "expected_of_row",
    "leaves_of",
    "refuse_nothing",
    "rich",
    "shapes",
]

SECOND = 1_000_000


@dataclass(frozen=True)
class Sample:
    """What one sample must be; `refused` is the filter that drops it."""

    part: int
    length: int
    speed: int
    start: int
    span: int
    tokens: int
    refused: str | None


def rich(key_, size, seed=0, weight=1, **more):
    """A leaf with statuses, exclusions, tokens, error rates, similarities, speakers and shards."""
    rng = np.random.default_rng(seed)
    durations = more.pop("duration_us", rng.integers(0, 20 * SECOND, size))
    sides = {
        "tok": {"tokens": rng.integers(0, 150, size).astype(np.uint32)},
        "fld": {
            "cer": np.where(rng.random(size) < 0.3, np.nan, rng.random(size)),
            "similarity": np.where(rng.random(size) < 0.3, np.nan, rng.random(size)),
            "speaker": rng.random(size) < 0.2,
        },
    }
    excluded = np.flatnonzero(rng.random(size) < 0.1)
    return columns(
        key_,
        durations,
        weight,
        **{
            "status": rng.integers(-1, 2, size).astype(np.int16),
            "statuses": ("pass", "bad"),
            "excluded_rows": excluded,
            "excluded_at": rng.integers(1, 4, len(excluded)),
            "side": sides.get,
            "slice_shard": (np.arange(size) // 7).astype(np.int32),
            "shard": (np.arange(size) // 5).astype(np.int32),
            **more,
        },
    )


def expected_of_row(leaf, pass_, row, shape, seed):
    """Every sample of one draw, one after the other, in plain Python; worked out once."""
    known = leaf.cache.setdefault(("model", shape, seed), {})
    if (pass_, row) not in known:
        known[pass_, row] = _samples_of_row(leaf, pass_, row, shape, seed)
    return known[pass_, row]


def _samples_of_row(leaf, pass_, row, shape, seed):
    words = (text_word(leaf.key), pass_, row)
    length = int(leaf.duration_us[row])
    tokens = int(leaf.side("tok")["tokens"][row]) if leaf.side else 0
    speed = 1000
    if shape.perturb_speed:
        speed = (900, 1000, 1100)[key(seed, Purpose.SPEED, *words) % 3]
        length = math.ceil(length * 1000 / speed)
    start, span = 0, -1
    if shape.truncate_us is not None and length > shape.truncate_us:
        extra = length - shape.truncate_us
        start = {
            "start": 0,
            "end": extra,
            "random": key(seed, Purpose.OFFSET, *words) % (extra + 1),
        }[shape.truncate_offset]
        length = span = shape.truncate_us
    parts = [(start, length, span)]
    if shape.window_us is not None and length > shape.window_us:
        hop = shape.hop_us or shape.window_us
        parts = []
        at = 0
        least = SHORTEST_PART_US
        while not parts or (at + shape.window_us - hop < length and length - at >= least):
            part = min(length - at, shape.window_us)
            parts.append((start + at, part, part))
            at += hop
    samples = []
    for number, (begin, part, before) in enumerate(parts):
        final = max(part, shape.pad_us or 0)
        samples.append(
            Sample(
                part=number,
                length=final,
                speed=speed,
                start=begin,
                span=before,
                tokens=tokens,
                refused=_refused(leaf, row, final, tokens, shape),
            )
        )
    return samples


def _refused(leaf, row, length, tokens, shape):
    low, high = shape.min_duration_us or 0, shape.max_duration_us or math.inf
    if not low <= length <= high:
        return "min_duration" if length < low else "max_duration"
    status = -1 if leaf.status is None else leaf.status[row]
    if status >= 0 and leaf.statuses[status] != shape.keep:
        return "validation_status"
    if leaf.excluded_rows is not None:
        at = leaf.excluded_at[leaf.excluded_rows == row]
        if (at <= shape.exclusions).any():
            return "excluded"
    reason = None if shape.fields is None else _refused_by_fields(leaf, row, shape)
    if reason is not None:
        return reason
    return _refused_by_tokens(tokens * 1_000_000 / max(length, 1), shape)


def _refused_by_tokens(tps, shape):
    if shape.min_tps is not None and tps < shape.min_tps:
        return "min_tps"
    if shape.max_tps is not None and tps > shape.max_tps:
        return "max_tps"
    return None


def _refused_by_fields(leaf, row, shape):
    found = leaf.side(shape.fields)
    if shape.excluded_speakers and found["speaker"][row]:
        return "excluded_speaker_ids"
    if shape.max_cer is not None and found["cer"][row] > shape.max_cer:
        return "max_cer"
    if shape.min_similarity is not None and found["similarity"][row] < shape.min_similarity:
        return "min_context_speaker_similarity"
    return None


def refused_by_bins(sample, batching):
    """Why fixed sizes and 2-D bins refuse a sample; None where they take it."""
    if batching.bucket_batch_size is None:
        return None
    tps = sample.tokens * 1_000_000 / max(sample.length, 1)
    if batching.bins_tokens is None:
        fits = [i for i, us in enumerate(batching.bins_us) if sample.length <= us]
        if not fits:
            return "above_last_bin"
        ratios = batching.max_tps_per_bin
        return "no_bucket" if ratios and tps > ratios[fits[0]] else None
    bins = list(zip(batching.bins_us, batching.bins_tokens, strict=True))
    wide = [us for us, _ in bins if us >= sample.length]
    if batching.strict_2d:
        fits = [i for i, (us, n) in enumerate(bins) if wide and us == wide[0]]
        fits = [i for i in fits if bins[i][1] >= sample.tokens]
        ratios = batching.max_tps_per_bin
        if fits and ratios and tps > ratios[fits[0]]:
            return "no_bucket"
    else:
        fits = [i for i, (us, n) in enumerate(bins) if us >= sample.length and n >= sample.tokens]
    return None if fits else "no_bucket"


@dataclass
class Walker:
    """Takes steps from a position on; checks every sample and every batch against the model."""

    position: object
    leaves: list
    shape: Shape
    batching: Batching
    seen: Counter = field(default_factory=Counter)
    repeated: int = 0
    of_windows: Counter = field(default_factory=Counter)
    of_the_end: Counter = field(default_factory=Counter)
    steps: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def change(self, *, leaves=None, shape=None, batching=None, **options):
        self.leaves = self.leaves if leaves is None else leaves
        self.shape = shape or self.shape
        self.batching = batching or self.batching
        saved = through_json(self.position)
        assert saved == self.position
        self.position, notes = resume(saved, self.leaves, self.shape, self.batching, **options)
        assert through_json(self.position) == self.position
        self.notes += notes
        return notes

    @property
    def dropped(self):
        """What was dropped so far, by reason."""
        return self.of_windows + self.of_the_end

    def take(self, steps):
        taken = 0
        while taken < steps:
            plan = plan_window(self.position, self.leaves, self.shape, self.batching)
            last = min(plan.num_steps, plan.first_step + steps - taken)
            for step in range(plan.first_step, last):
                self._train(plan, step)
            taken += last - plan.first_step
            position = plan.position_at(last)
            if last == plan.num_steps:
                # An end without a step is where it was: other options may still give more.
                self.of_the_end = Counter(plan.stats.dropped if position == self.position else {})
                self.of_windows.update({} if self.of_the_end else plan.stats.dropped)
            self.position = position
            if plan.is_end and last == plan.num_steps:
                break
        return taken

    def finish_window(self):
        plan = plan_window(self.position, self.leaves, self.shape, self.batching)
        self.take(plan.num_steps - plan.first_step)

    def _train(self, plan, step):
        per_step = self.batching.micro_batches_per_step
        # Windows that give no step are passed over: only the plan knows what it was drawn with.
        drawn_with, seed = plan._position.shape, plan._position.seed
        described = []
        for slot in range(per_step):
            batch = plan.micro_batch(step, slot)
            assert len(batch.row)
            self._check(batch, drawn_with, seed)
            described.append(
                (
                    batch.step,
                    batch.slot,
                    batch.key,
                    *(
                        None if array is None else array.tolist()
                        for array in (
                            batch.pass_,
                            batch.row,
                            batch.part,
                            batch.repeated,
                            batch.sample_keys,
                            batch.speed,
                            batch.start_us,
                            batch.span_us,
                        )
                    ),
                    [self.leaves[number].key for number in batch.leaf.tolist()],
                )
            )
        self.steps.append(described)

    @staticmethod
    def samples_of(leaf, pass_, row, shape, seed):
        """The samples of a row, of which none, one or more are refused."""
        return expected_of_row(leaf, pass_, row, shape, seed)

    @staticmethod
    def refused_by(sample, batching):
        """Why no bin takes a sample, or None."""
        return refused_by_bins(sample, batching)

    @classmethod
    def expected(cls, leaf, passes, shape, seed, batching=None):
        """What whole passes over an unsliced leaf give, and what is refused by reason."""
        kept, refused = Counter(), Counter()
        for pass_ in passes:
            for row in range(leaf.num_rows):
                for sample in cls.samples_of(leaf, pass_, row, shape, seed):
                    reason = sample.refused
                    if reason is None and batching is not None:
                        reason = cls.refused_by(sample, batching)
                    if reason is None:
                        kept[leaf.key, pass_, row, sample.part] += 1
                    else:
                        refused[reason] += 1
        return kept, refused

    def _check(self, batch, shape, seed):
        size = len(batch.row)
        speed = np.full(size, 1000) if batch.speed is None else batch.speed
        start = np.zeros(size, int) if batch.start_us is None else batch.start_us
        span = np.full(size, -1) if batch.span_us is None else batch.span_us
        samples = []
        for i in range(size):
            leaf, row, pass_ = self.leaves[batch.leaf[i]], int(batch.row[i]), int(batch.pass_[i])
            part = int(batch.part[i])
            sample = self.samples_of(leaf, pass_, row, shape, seed)[part]
            assert sample.refused is None
            assert (sample.speed, sample.start, sample.span) == (speed[i], start[i], span[i])
            words = (text_word(leaf.key), pass_, row, part)
            assert key(seed, Purpose.SAMPLE, *words) == batch.sample_keys[i]
            assert self.refused_by(sample, self.batching) is None
            samples.append(sample)
            if batch.repeated[i]:
                self.repeated += 1
            else:
                self.seen[leaf.key, pass_, row, part] += 1
        self._check_limits(samples)

    def _check_limits(self, samples):
        batching, count = self.batching, len(samples)
        longest = max(sample.length for sample in samples)
        if batching.batch_size is not None:
            assert count <= batching.batch_size
        if batching.batch_duration_us is not None and count > 1:
            effort = effective_one(longest, batching.quadratic_duration_us)
            assert count * effort <= batching.batch_duration_us
        if batching.bucket_batch_size is not None:
            most = max(sample.tokens for sample in samples)
            tokens = batching.bins_tokens or (math.inf,) * len(batching.bins_us)
            bins = zip(batching.bins_us, tokens, batching.bucket_batch_size, strict=True)
            assert any(us >= longest and n >= most and b >= count for us, n, b in bins)


_SECONDS = st.integers(1, 30).map(lambda s: s * SECOND // 2)


@st.composite
def shapes(draw, **fixed):
    """Any combination of what reshapes and filters."""

    def maybe(strategy):
        return draw(st.one_of(st.none(), strategy))

    window = maybe(st.integers(2 * SECOND, 12 * SECOND))
    options = {
        "shuffle": draw(st.booleans()),
        "locality": draw(st.sampled_from(["rows", "shards"])),
        "window_draws": draw(st.integers(20, 200)),
        "min_duration_us": maybe(st.integers(1, 3 * SECOND)),
        "max_duration_us": maybe(st.integers(6 * SECOND, 19 * SECOND)),
        "keep": draw(st.sampled_from(["pass", "bad"])),
        "tokens": "tok",
        "min_tps": maybe(st.floats(0.1, 2.0)),
        "max_tps": maybe(st.floats(10.0, 100.0)),
        "fields": "fld",
        "max_cer": maybe(st.floats(0.5, 1.0)),
        "min_similarity": maybe(st.floats(0.0, 0.5)),
        "excluded_speakers": draw(st.booleans()),
        "perturb_speed": draw(st.booleans()),
        "truncate_us": maybe(st.integers(3 * SECOND, 25 * SECOND)),
        "truncate_offset": draw(st.sampled_from(["random", "start", "end"])),
        "window_us": window,
        "hop_us": None if window is None else maybe(st.integers(SECOND, 15 * SECOND)),
        "pad_us": maybe(st.integers(1, 4 * SECOND)),
        "slice_length": maybe(st.integers(1, 8)),
    }
    return Shape(**{**options, **fixed})


_BINS_2D = [
    ((5, 40), (5, 150), (12, 60), (12, 90), (23, 90), (23, 150)),
    ((8, 30), (8, 80), (8, 150), (23, 50), (23, 150)),
    ((23, 150),),
    ((4, 150), (11, 20), (11, 60), (22, 40), (22, 99)),
]


@st.composite
def batchings(draw, kinds=("duration", "quadratic", "size", "fixed", "ratios", "2d", "2d_ratios")):
    """Any kind of batching."""
    kind = draw(st.sampled_from(kinds))
    options = {"micro_batches_per_step": draw(st.sampled_from([1, 2, 3, 4, 8, 16]))}
    if kind in {"duration", "quadratic"}:
        options["batch_duration_us"] = draw(st.integers(5, 300)) * SECOND
        options["bucketing"] = draw(st.booleans())
    if kind == "quadratic":
        options["quadratic_duration_us"] = draw(st.integers(5, 60)) * SECOND
    if kind == "size":
        options["batch_size"] = draw(st.integers(1, 9))
    if kind in {"fixed", "ratios"}:
        options["bins_us"] = (5 * SECOND, 11 * SECOND, 19 * SECOND)
        options["bucket_batch_size"] = draw(st.sampled_from([(9, 5, 2), (3, 3, 1), (1, 1, 1)]))
    if kind == "ratios":
        options["max_tps_per_bin"] = draw(st.sampled_from([(30.0, 20.0, 10.0), (5.0, 9.0, 99.0)]))
    if kind.startswith("2d"):
        bins = draw(st.sampled_from(_BINS_2D))
        options["bins_us"] = tuple(us * SECOND for us, _ in bins)
        options["bins_tokens"] = tuple(tokens for _, tokens in bins)
        sizes = []
        for number, (_, tokens) in enumerate(bins):
            below = [sizes[i] for i in range(number) if bins[i][1] <= tokens]
            sizes.append(draw(st.integers(1, min(below, default=12))))
        options["bucket_batch_size"] = tuple(sizes)
        options["strict_2d"] = draw(st.booleans())
    if kind == "2d_ratios":
        options["max_tps_per_bin"] = tuple(draw(st.floats(3.0, 60.0)) for _ in sizes)
    return Batching(**options)


refuse_nothing = ("duration", "quadratic", "size")
"""Kinds of batching that take every sample."""

_SIZES = st.one_of(st.integers(1, 3), st.sampled_from([7, 8, 31, 64]), st.integers(1, 150))


@st.composite
def leaves_of(draw, most=3):
    """A few leaves with all columns."""
    sizes = draw(st.lists(_SIZES, min_size=1, max_size=most))
    seed = draw(st.integers(0, 2**32))
    return [
        rich(f"leaf{number}", size, seed + number, draw(st.integers(1, 9)))
        for number, size in enumerate(sizes)
    ]
