"""Whatever is stopped, changed and resumed: every sample comes once, in steps that are full."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.errors import PlanError
from playhead.plan import Batching, Shape, count_steps, start
from support.plans import Trainer, columns

_SIZES = st.one_of(
    st.integers(0, 3),
    st.sampled_from([7, 8, 9, 31, 32, 33, 127, 128, 129]),
    st.integers(1, 400),
)
_relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _durations(size, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 30_000_000, size)


@st.composite
def blends(draw, least=0):
    sizes = draw(st.lists(_SIZES, min_size=1, max_size=4))
    sizes = [max(size, least) for size in sizes]
    if not any(sizes):
        sizes[0] = 1
    seed = draw(st.integers(0, 2**32))
    weights = draw(
        st.lists(st.integers(0, 2**33), min_size=len(sizes), max_size=len(sizes)).filter(any)
    )
    return [
        columns(f"leaf{number}", _durations(size, seed + number), weight)
        for number, (size, weight) in enumerate(zip(sizes, weights, strict=True))
    ]


@st.composite
def batchings(draw):
    kind = draw(st.sampled_from(["duration", "quadratic", "size", "both", "fixed", "bins"]))
    options = {"micro_batches_per_step": draw(st.sampled_from([1, 2, 3, 4, 6, 8, 16]))}
    if kind in ("duration", "quadratic", "both", "bins"):
        options["batch_duration_us"] = draw(st.integers(5_000_000, 400_000_000))
    if kind == "quadratic":
        options["quadratic_duration_us"] = draw(st.integers(5_000_000, 60_000_000))
    if kind in ("size", "both"):
        options["batch_size"] = draw(st.integers(1, 12))
    if kind in ("fixed", "bins"):
        options["bins_us"] = (5_000_000, 11_000_000, 30_000_000)
    if kind == "fixed":
        options["bucket_batch_size"] = draw(st.sampled_from([(9, 5, 2), (3, 3, 1), (1, 1, 1)]))
    else:
        options["bucketing"] = draw(st.booleans())
    return Batching(**options)


_shuffles = st.booleans()
_draws = st.integers(20, 300)


@_relaxed
@given(blends(), _shuffles, _draws, st.data())
def test_a_finite_pass_gives_every_row_once_whatever_changes(leaves, shuffle, draws, data):
    """Up to five changes of topology, limit, bins and sizes inside a pass; repeats are marked."""
    shape = Shape(finite=True, shuffle=shuffle, window_draws=draws)
    batching = data.draw(batchings())
    pass_ = data.draw(st.integers(0, 3))
    position = start(leaves, shape, batching, seed=data.draw(st.integers(0, 2**64)), pass_=pass_)
    trainer = Trainer(position, leaves, shape, batching)
    for _ in range(data.draw(st.integers(0, 5))):
        trainer.take(data.draw(st.integers(0, 4)))
        batching = data.draw(st.one_of(st.just(trainer.batching), batchings()))
        trainer.change(
            batching=batching,
            shape=replace(shape, window_draws=data.draw(_draws)),
            leaves=data.draw(st.permutations(trainer.leaves)),
        )
    left = count_steps(trainer.position, trainer.leaves, trainer.shape, trainer.batching)
    before = trainer.position.step
    assert trainer.take(10_000) == left
    assert trainer.position.step == before + left
    assert trainer.seen == Counter(
        (leaf.key, pass_, row) for leaf in leaves for row in range(leaf.num_rows)
    )
    assert trainer.repeated < 16 * (1 + len(trainer.notes))
    trainer.change()
    assert trainer.take(10) == 0


@_relaxed
@given(blends(least=1), _shuffles, _draws, st.data())
def test_an_endless_blend_gives_every_pass_whole_whatever_changes(leaves, shuffle, draws, data):
    """Passes of every leaf come one after the other, none with a hole, none with a row twice."""
    shape = Shape(shuffle=shuffle, window_draws=draws)
    batching = data.draw(batchings())
    trainer = Trainer(start(leaves, shape, batching, seed=5), leaves, shape, batching)
    for _ in range(data.draw(st.integers(0, 5))):
        trainer.take(data.draw(st.integers(0, 4)))
        weights = data.draw(
            st.lists(st.integers(0, 9), min_size=len(leaves), max_size=len(leaves)).filter(any)
        )
        present = [replace(leaf, weight=w) for leaf, w in zip(leaves, weights, strict=True)]
        trainer.change(
            batching=data.draw(st.one_of(st.just(trainer.batching), batchings())),
            leaves=data.draw(st.permutations(present)),
            shape=Shape(
                shuffle=data.draw(st.booleans()),
                locality=data.draw(st.sampled_from(["rows", "shards"])),
                window_draws=data.draw(_draws),
            ),
            reseed=data.draw(st.one_of(st.none(), st.integers(0, 9))),
        )
    trainer.finish_window()
    expected = Counter()
    for key, progress in trainer.position.leaves.items():
        rows = next(leaf.num_rows for leaf in leaves if leaf.key == key)
        for pass_ in range(progress.pass_):
            expected.update((key, pass_, row) for row in range(rows))
        last = [sample for sample in trainer.seen if sample[:2] == (key, progress.pass_)]
        assert len(last) == progress.done
        expected.update(last)
    assert trainer.seen == expected


@_relaxed
@given(blends(least=1), st.booleans(), batchings(), _draws, st.data())
def test_stopping_and_resuming_changes_nothing(leaves, finite, batching, draws, data):
    """Same data, settings and step: the same batches, keys and sample keys, wherever it stopped."""
    shape = Shape(finite=finite, shuffle=data.draw(st.booleans()), window_draws=draws)
    position = start(leaves, shape, batching, seed=11)
    whole = Trainer(position, leaves, shape, batching)
    total = whole.take(25)
    pieces = Trainer(position, leaves, shape, batching)
    while len(pieces.steps) < total:
        # In a finite pass without shuffling, the declared order of leaves is part of the data.
        fixed = finite and not shape.shuffle
        pieces.change(leaves=leaves if fixed else data.draw(st.permutations(leaves)))
        pieces.take(min(data.draw(st.integers(0, 9)), total - len(pieces.steps)))
    assert not pieces.notes
    assert pieces.steps == whole.steps
    assert pieces.position == whole.position
    assert len(pieces.position.chain) == 1


def _unread(notes):
    """Samples that notes name as not read: (exact, at most) by leaf name."""
    exact, most = Counter(), Counter()
    for note in notes:
        _, _, listed = note.partition("samples not read: ")
        for name, up_to, count in re.findall(r"(\S+): (up to )?(\d+)", listed):
            (most if up_to else exact)[name.split("/")[-1].removesuffix(".json")] += int(count)
    return exact, most


@_relaxed
@given(blends(), _shuffles, _draws, st.data())
def test_what_a_finite_pass_does_not_give_is_named(leaves, shuffle, draws, data):
    """Leaves that come, go, come back, grow and are filtered: no row twice, no silent loss."""
    shape = Shape(finite=True, shuffle=shuffle, window_draws=draws)
    batching = data.draw(batchings())
    trainer = Trainer(start(leaves, shape, batching, seed=3), leaves, shape, batching)
    everything = list(leaves)
    low, high = 0, 30_000_000
    gone = set()
    for number in range(data.draw(st.integers(1, 5))):
        trainer.take(data.draw(st.integers(0, 4)))
        kept = [leaf for leaf in everything if data.draw(st.booleans(), label="kept")]
        kept = kept if any(leaf.num_rows for leaf in kept) else list(everything)
        gone |= {leaf.key for leaf in everything if leaf not in kept}
        if data.draw(st.booleans(), label="new"):
            new = columns(f"new{number}", _durations(data.draw(_SIZES), number))
            everything.append(new)
            kept = [*kept, new]
        if data.draw(st.booleans(), label="filter"):
            low, high = max(low, 2_000_000), min(high, 20_000_000)
        changed = {
            "leaves": kept,
            "batching": data.draw(st.one_of(st.just(trainer.batching), batchings())),
            "shape": replace(
                shape,
                min_duration_us=low or None,
                max_duration_us=high if high < 30_000_000 else None,
            ),
        }
        lengths = np.concatenate([leaf.duration_us for leaf in kept])
        if not ((lengths >= low) & (lengths <= high)).any():
            with pytest.raises(PlanError, match="No row of any leaf is kept"):
                trainer.change(**changed)
            return
        trainer.change(**changed)
    trainer.take(10_000)
    assert not trainer.seen or max(trainer.seen.values()) == 1
    exact, most = _unread(trainer.notes)
    for leaf in everything:
        inside = {row for row, us in enumerate(leaf.duration_us.tolist()) if low <= us <= high}
        seen = {row for key, _, row in trainer.seen if key == leaf.key}
        missing = len(inside - seen)
        if leaf.key in gone or leaf.key.startswith("new"):
            continue
        assert missing <= exact[leaf.key]
        if not low:
            assert missing == exact[leaf.key]
        assert not most[leaf.key]


@_relaxed
@given(blends(least=1), _draws, st.data())
def test_appended_rows_join_at_the_next_pass(leaves, draws, data):
    """A pass keeps the rows that it began with, also when its leaf grows in mid-window."""
    shape = Shape(window_draws=draws, shuffle=data.draw(st.booleans()))
    batching = data.draw(batchings())
    trainer = Trainer(start(leaves, shape, batching, seed=3), leaves, shape, batching)
    rows = {leaf.key: [leaf.num_rows] for leaf in leaves}
    for number in range(data.draw(st.integers(1, 4))):
        trainer.take(data.draw(st.integers(0, 6)))
        grown = []
        for leaf in trainer.leaves:
            more = _durations(data.draw(st.integers(0, 40)), number)
            grown.append(columns(leaf.key, np.concatenate([leaf.duration_us, more]), leaf.weight))
            rows[leaf.key].append(grown[-1].num_rows)
        trainer.change(leaves=grown)
    trainer.finish_window()
    for key, progress in trainer.position.leaves.items():
        sizes = []
        for pass_ in range(progress.pass_):
            drawn = [(row, n) for (k, p, row), n in trainer.seen.items() if (k, p) == (key, pass_)]
            assert sorted(row for row, _ in drawn) == list(range(len(drawn)))
            assert all(n == 1 for _, n in drawn)
            sizes.append(len(drawn))
        assert sizes == sorted(sizes)
        assert set(sizes) <= set(rows[key])
        assert progress.rows in rows[key]
        assert progress.next_rows == rows[key][-1] or not trainer.position.is_window_start
