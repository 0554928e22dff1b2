"""What measures samples in tokens changes between steps: still every sample comes once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from playhead.errors import PlanError
from playhead.plan import start
from support.multimodal import (
    TokenWalker,
    leaves_in_tokens,
    padded_and_packed,
    shapes_in_tokens,
    token_batchings,
)
from support.shaped import batchings
from support.shaped import refuse_nothing as of_time

_few = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    max_examples=settings().max_examples * 2 // 5,
)


def _start(leaves, shape, batching, seed=7, pass_=0):
    """The start; blends of which nothing is accepted are another test's."""
    try:
        return start(leaves, shape, batching, seed=seed, pass_=pass_)
    except PlanError:
        assume(False)


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
        kept.update(walker.expected(leaf, [0], drawn_with, 7)[0])
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
