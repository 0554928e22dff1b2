"""Audio, texts and conversations in batches by tokens, padded and packed: still every sample comes
once, no batch is above its limit, and a run that was stopped is the run that was not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from playhead.errors import PlanError
from playhead.plan import count_steps, start
from playhead.plan.filters import refused_rows
from support.multimodal import (
    TokenWalker,
    expected,
    leaves_in_tokens,
    padded_and_packed,
    samples_in_tokens,
    shapes_in_tokens,
    token_batchings,
)
from support.shaped import batchings
from support.shaped import refuse_nothing as of_time

_relaxed = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
_few = settings(_relaxed, max_examples=_relaxed.max_examples * 2 // 5)


def _start(leaves, shape, batching, seed=7, pass_=0):
    """The start; blends of which nothing is accepted are another test's."""
    try:
        return start(leaves, shape, batching, seed=seed, pass_=pass_)
    except PlanError:
        assume(False)


@_relaxed
@given(
    leaves_in_tokens(),
    shapes_in_tokens(finite=True, slice_length=None),
    token_batchings(),
    st.integers(0, 3),
)
def test_a_finite_pass_gives_every_accepted_sample_once_and_counts_the_others(
    leaves, shape, batching, pass_
):
    walker = TokenWalker(_start(leaves, shape, batching, pass_=pass_), leaves, shape, batching)
    shape = walker.position.shape
    left = count_steps(walker.position, leaves, shape, batching)
    assert walker.take(10_000) == left
    kept, refused = Counter(), Counter()
    for leaf in leaves:
        more = expected(leaf, [pass_], shape, 7, batching)
        kept.update(more[0])
        refused.update(more[1])
    assert walker.seen == kept
    assert walker.dropped == refused
    windows = walker.position.window % (1 << 32) + 1 if shape.in_parts else 1
    assert walker.repeated <= windows * (batching.micro_batches_per_step - 1)


@_few
@given(leaves_in_tokens(), shapes_in_tokens(finite=True, slice_length=None), st.data())
def test_other_batching_from_some_step_on_gives_what_remains_once(leaves, shape, data):
    """Other limits, padded or packed, and any number of micro-batches a step."""
    kinds = padded_and_packed
    batching = data.draw(token_batchings(kinds))
    walker = TokenWalker(_start(leaves, shape, batching), leaves, shape, batching)
    shape = walker.position.shape
    for _ in range(data.draw(st.integers(1, 4))):
        walker.take(data.draw(st.integers(0, 4)))
        walker.change(batching=data.draw(token_batchings(kinds)))
    walker.take(10_000)
    kept = Counter()
    for leaf in leaves:
        kept.update(expected(leaf, [0], shape, 7)[0])
    assert walker.seen == kept


@_few
@given(leaves_in_tokens(), shapes_in_tokens(finite=True, slice_length=None), st.data())
def test_other_bins_from_some_step_on_lose_nothing_uncounted(leaves, shape, data):
    batching = data.draw(token_batchings())
    walker = TokenWalker(_start(leaves, shape, batching), leaves, shape, batching)
    shape = walker.position.shape
    for _ in range(data.draw(st.integers(1, 4))):
        walker.take(data.draw(st.integers(0, 4)))
        other = data.draw(token_batchings())
        try:
            start(leaves, shape, other, seed=0)
        except PlanError:
            continue
        walker.change(batching=other)
    walker.take(10_000)
    total = sum(
        len(samples_in_tokens(leaf, 0, row, shape, 7))
        for leaf in leaves
        for row in range(leaf.num_rows)
    )
    assert max(walker.seen.values(), default=1) == 1
    assert len(walker.seen) + walker.dropped.total() == total


@_few
@given(leaves_in_tokens(), shapes_in_tokens(slice_length=None), st.data())
def test_an_endless_blend_gives_every_pass_whole(leaves, shape, data):
    batching = data.draw(token_batchings(padded_and_packed))
    walker = TokenWalker(_start(leaves, shape, batching), leaves, shape, batching)
    drawn_with = walker.position.shape
    for _ in range(data.draw(st.integers(0, 4))):
        walker.take(data.draw(st.integers(0, 4)))
        walker.change(
            batching=data.draw(token_batchings(padded_and_packed)),
            leaves=data.draw(st.permutations(leaves)),
        )
    walker.finish_window()
    for leaf in leaves:
        progress = walker.position.leaves[leaf.key]
        kept, _ = expected(leaf, range(progress.pass_), drawn_with, 7)
        seen = Counter({sample: n for sample, n in walker.seen.items() if sample[0] == leaf.key})
        running = {s: seen.pop(s) for s in list(seen) if s[1] == progress.pass_}
        assert seen == kept
        assert set(running.values()) <= {1}
        assert len({row for _, _, row, _ in running}) <= progress.done


@_few
@given(leaves_in_tokens(), st.booleans(), token_batchings(), st.data())
def test_stopping_and_resuming_changes_nothing(leaves, finite, batching, data):
    """Bit for bit, all arrays of all batches, wherever and however often it stopped."""
    shape = data.draw(shapes_in_tokens(finite=finite))
    position = _start(leaves, shape, batching, seed=11)
    whole = TokenWalker(position, leaves, shape, batching)
    total = whole.take(10)
    pieces = TokenWalker(position, leaves, shape, batching)
    for stop in [*data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=5)), total]:
        fixed = finite and not shape.shuffle
        pieces.change(leaves=leaves if fixed else data.draw(st.permutations(leaves)))
        pieces.take(min(stop, total - len(pieces.steps)))
    assert not pieces.notes
    assert pieces.steps == whole.steps
    assert pieces.position == whole.position


@_few
@given(leaves_in_tokens(most=2), shapes_in_tokens(shuffle=True, slice_length=None), st.data())
def test_what_measures_and_cuts_texts_takes_effect_at_the_next_window_only(leaves, shape, data):
    batching = data.draw(token_batchings(padded_and_packed))
    position = _start(leaves, shape, batching)
    whole = TokenWalker(position, leaves, shape, batching)
    stopped = TokenWalker(position, leaves, shape, batching)
    stopped.take(1)
    assume(stopped.position.window == position.window)
    other = data.draw(shapes_in_tokens(shuffle=True, slice_length=None))
    _start(leaves, other, batching)
    stopped.change(shape=other)
    while stopped.position.window == position.window:
        stopped.finish_window()
    while len(whole.steps) < len(stopped.steps):
        whole.take(len(stopped.steps) - len(whole.steps))
    assert stopped.steps == whole.steps
    assert stopped.position.shape == replace(other, exclusions=position.shape.exclusions)


@_relaxed
@given(
    leaves_in_tokens(most=1),
    shapes_in_tokens(slice_length=None, perturb_speed=False),
    token_batchings(),
)
def test_what_a_leaf_refuses_is_counted_without_drawing_it(leaves, shape, batching):
    (leaf,) = leaves
    shape = replace(shape, exclusions=int(leaf.excluded_at.max(initial=0)))
    _, refused = expected(leaf, [0], shape, 7, batching)
    assert refused_rows(leaf, shape, batching) == refused


@_few
@given(leaves_in_tokens(), st.data())
def test_a_window_of_durations_may_go_on_in_tokens_and_back(leaves, data):
    """Its filters stay; what its samples count in tokens is looked up now."""
    leaves = [leaf for leaf in leaves if leaf.kind == "cut"]
    assume(leaves)
    in_tokens = replace(
        data.draw(shapes_in_tokens(finite=True, slice_length=None)), min_tps=None, max_tps=None
    )
    plain = replace(
        in_tokens,
        multimodal=False,
        tokens=None,
        audio_tokens=None,
        **dict.fromkeys(("min_tokens", "max_tokens", "min_tpt", "max_tpt", "text_window")),
    )
    by_time = data.draw(batchings(of_time))
    walker = _Loose(_start(leaves, plain, by_time), leaves, plain, by_time)
    drawn_with = replace(in_tokens, exclusions=walker.position.shape.exclusions)
    for _ in range(data.draw(st.integers(1, 3))):
        walker.take(data.draw(st.integers(0, 3)))
        other = data.draw(token_batchings(padded_and_packed))
        walker.change(batching=other, shape=in_tokens)
        walker.take(data.draw(st.integers(0, 3)))
        walker.change(batching=data.draw(batchings(of_time)))
    walker.take(10_000)
    kept = Counter()
    for leaf in leaves:
        kept.update(expected(leaf, [0], drawn_with, 7)[0])
    assert walker.seen == kept


class _Loose(TokenWalker):
    """Keeps what was given; limits of time are looked at elsewhere."""

    def _check(self, batch, shape, seed):
        del shape, seed
        for leaf, pass_, row, part, again in zip(
            batch.leaf.tolist(),
            batch.pass_.tolist(),
            batch.row.tolist(),
            batch.part.tolist(),
            batch.repeated.tolist(),
            strict=True,
        ):
            if not again:
                self.seen[self.leaves[leaf].key, pass_, row, part] += 1
