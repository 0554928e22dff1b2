"""What is said to have been read is what was handed out, counted sample by sample."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from playhead.inspect.history import history_of
from playhead.plan import Batching, Shape, plan_window, resume, start
from playhead.plan.filters import leaf_facts
from support.plans import through_json
from support.shaped import rich

_relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
_SECOND = 1_000_000


class Handed:
    """Takes steps, and counts what it is given: items, µs and tokens of every leaf."""

    def __init__(self, position, leaves, shape, batching):
        self.position, self.leaves = position, leaves
        self.shape, self.batching = shape, batching
        self.items, self.us, self.tokens = Counter(), Counter(), Counter()
        self.real = self.padded = 0

    def change(self, *, leaves=None, batching=None, **options):
        self.leaves = leaves or self.leaves
        self.batching = batching or self.batching
        saved = through_json(self.position)
        self.position, _ = resume(saved, self.leaves, self.shape, self.batching, **options)

    def take(self, steps):
        while steps > 0:
            plan = plan_window(self.position, self.leaves, self.shape, self.batching)
            last = min(plan.num_steps, plan.first_step + steps)
            for step in range(plan.first_step, last):
                for slot in range(self.batching.micro_batches_per_step):
                    self._count(plan.micro_batch(step, slot))
            steps -= last - plan.first_step
            self.position = plan.position_at(last)
            if plan.is_end and last == plan.num_steps:
                if steps:
                    self._next_pass()
                if not last:
                    return

    def _next_pass(self):
        at = self.position
        self.position = start(
            self.leaves, self.shape, self.batching, seed=at.seed, pass_=at.pass_ + 1, step=at.step
        )

    def _count(self, batch):
        lengths = []
        for number in range(len(batch.row)):
            leaf, row = self.leaves[int(batch.leaf[number])], int(batch.row[number])
            length = self._length(leaf, row, batch, number)
            lengths.append(length)
            if not batch.repeated[number]:
                self.items[leaf.key] += 1
                self.us[leaf.key] += length
                self.tokens[leaf.key] += int(leaf.side("tok")["tokens"][row])
        self.real += sum(lengths)
        self.padded += max(lengths) * len(lengths)

    def _length(self, leaf, row, batch, number):
        length = int(leaf.duration_us[row])
        if batch.speed is not None:
            length = -(-length * 1000 // int(batch.speed[number]))
        if batch.span_us is not None and int(batch.span_us[number]) >= 0:
            length = int(batch.span_us[number])
        return max(length, self.shape.pad_us or 0)


@st.composite
def shapes(draw):
    options = {
        "finite": draw(st.booleans()),
        "shuffle": draw(st.booleans()),
        "locality": draw(st.sampled_from(["rows", "shards"])),
        "window_draws": draw(st.integers(20, 120)),
        "tokens": "tok",
        "fields": "fld",
        "exclusions": 3,
    }
    if draw(st.booleans()):
        options["max_duration_us"] = draw(st.integers(4, 20)) * _SECOND
    if draw(st.booleans()):
        options["max_tps"] = draw(st.integers(8, 60))
    if draw(st.booleans()):
        options["max_cer"] = 0.7
    kind = draw(st.sampled_from(["plain", "speed", "speed", "truncate", "window", "pad", "slice"]))
    options |= {
        "plain": {},
        "speed": {"perturb_speed": True},
        "truncate": {"truncate_us": 5 * _SECOND},
        "window": {"window_us": 4 * _SECOND, "hop_us": 3 * _SECOND},
        "pad": {"pad_us": 3 * _SECOND},
        "slice": {"slice_length": 3},
    }[kind]
    return Shape(**options)


def _leaves(draw, shape, least=6):
    sizes = draw(st.lists(st.integers(least, 50), min_size=1, max_size=3))
    return [
        rich(f"leaf{n}", size, seed=n + 3, weight=draw(st.integers(1, 9)))
        for n, size in enumerate(sizes)
    ]


def _some(draw):
    limit = draw(st.integers(25, 200)) * _SECOND
    steps = draw(st.sampled_from([1, 2, 3, 4]))
    return Batching(micro_batches_per_step=steps, batch_duration_us=limit, max_tps_per_bin=None)


@_relaxed
@given(shapes(), st.data())
def test_items_hours_and_tokens_are_those_that_were_handed_out_from_step_0_on(shape, data):
    leaves = _leaves(data.draw, shape)
    batching = _some(data.draw)
    assume(all(leaf_facts(leaf, shape).accepted for leaf in leaves))
    handed = Handed(start(leaves, shape, batching, seed=4), leaves, shape, batching)
    for _ in range(data.draw(st.integers(1, 4))):
        handed.take(data.draw(st.integers(0, 12)))
        weights = [data.draw(st.integers(1, 9)) for _ in leaves]
        handed.change(
            leaves=[replace(leaf, weight=w) for leaf, w in zip(leaves, weights, strict=True)],
            batching=data.draw(st.sampled_from([handed.batching, _some(data.draw)])),
        )
    position = through_json(handed.position)
    history = history_of(position, {leaf.key: leaf for leaf in leaves})
    read = history.read
    assert history.is_exact
    assert bool(history.known.all())
    for place, key in enumerate(position.leaves):
        assert int(read.items[place]) == handed.items[key]
        assert int(read.us[place]) == handed.us[key]
        if read.tokens is not None:
            assert int(read.tokens[place]) == handed.tokens[key]
