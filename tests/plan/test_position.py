"""The checkpoint: JSON and back without loss, small, and refused when it is not ours."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import PositionError
from playhead.plan import (
    Batching,
    Link,
    Position,
    Shape,
    plan_window,
    resume,
    start,
)
from playhead.plan.progress import LeafProgress
from support.plans import Trainer, columns, speech

_whole = st.integers(0, 2**40)
_digest = st.text("0123456789abcdef", min_size=16, max_size=16)
_bins = (2_000_000, 5_000_000, 30_000_000)


@st.composite
def progresses(draw):
    rows = draw(_whole)
    digest = draw(_digest)
    grown = draw(st.booleans())
    return LeafProgress(
        pass_=draw(_whole),
        done=draw(st.integers(0, rows)),
        rows=rows,
        fingerprint=digest,
        seed=draw(st.sampled_from([0, 7])),
        order=draw(st.sampled_from(["declared", "rows", "shards"])),
        next_rows=rows + 5 if grown else rows,
        next_fingerprint=draw(_digest) if grown else digest,
    )


_batchings = st.builds(
    Batching,
    micro_batches_per_step=st.integers(1, 64),
    batch_size=st.one_of(st.none(), st.integers(1, 99)),
    batch_duration_us=st.integers(1, 10**9),
    quadratic_duration_us=st.one_of(st.none(), st.integers(1, 10**8)),
    bins_us=st.sampled_from([None, _bins]),
    drop_last=st.booleans(),
    oversize=st.sampled_from(["alone", "drop", "error"]),
)


@st.composite
def positions(draw):
    leaves = draw(st.dictionaries(st.text(min_size=1, max_size=9), progresses(), min_size=1))
    leaves = dict(sorted(leaves.items()))
    numbers = st.tuples(*[_whole for _ in leaves])
    order = tuple(draw(st.permutations(range(len(leaves)))))
    read = draw(st.one_of(st.none(), numbers))
    # What was handed out is counted, so a window of which nothing was read is at its start.
    steps = st.just(0) if read is None else _whole
    return Position(
        seed=draw(st.integers(-(2**70), 2**70)),
        next_seed=draw(st.one_of(st.none(), st.integers())),
        window_draws=draw(st.integers(1, 10**7)),
        step=draw(_whole),
        window=draw(_whole),
        leaves=leaves,
        shape=draw(
            st.builds(
                Shape,
                finite=st.booleans(),
                shuffle=st.booleans(),
                max_duration_us=st.one_of(st.none(), _whole),
                locality=st.sampled_from(["rows", "shards"]),
            )
        ),
        weights=draw(numbers),
        order=draw(st.sampled_from([None, order])),
        read=read,
        moved=draw(st.dictionaries(st.text(max_size=5), st.sampled_from(list(leaves)), max_size=2)),
        chain=(
            Link(batching=draw(_batchings), add=1, steps=draw(steps)),
            *draw(
                st.lists(
                    st.builds(
                        Link,
                        batching=_batchings,
                        add=st.integers(0, 1),
                        steps=steps,
                        further=_whole,
                    ),
                    max_size=4,
                )
            ),
        ),
    )


@given(positions())
def test_json_and_back_is_the_same_position(position):
    assert Position.from_json(json.loads(json.dumps(position.to_json()))) == position
    assert (
        Position.from_json(json.loads(json.dumps(position.to_json(), sort_keys=True))) == position
    )


def _position():
    leaves = [columns("a", speech(500)), columns("b", speech(90, 1), 2)]
    shape, batching = Shape(window_draws=300), Batching(batch_size=4, micro_batches_per_step=2)
    return plan_window(start(leaves, shape, batching, seed=3), leaves, shape, batching).position_at(
        3
    )


def test_a_position_of_many_leaves_and_changes_stays_small():
    """At most 1 KB and 70 bytes a leaf: bins are written once however often the limit changes."""
    leaves = [
        columns(f"{number:016x}", speech(4000 + number, number), 4_294_967 + number)
        for number in range(300)
    ]
    bins = tuple(range(1_000_000, 31_000_000, 1_000_000))
    shape = Shape(min_duration_us=600_000, max_duration_us=29_000_000, window_draws=100_000)
    batching = Batching(
        micro_batches_per_step=64,
        batch_duration_us=660_000_000,
        quadratic_duration_us=30_000_000,
        bins_us=bins,
    )
    trainer = Trainer(start(leaves, shape, batching, seed=12345), leaves, shape, batching)
    for change in range(1, 7):
        trainer.position = plan_window(
            trainer.position, leaves, shape, trainer.batching
        ).position_at(3)
        trainer.change(
            batching=Batching(
                micro_batches_per_step=64 - change,
                batch_duration_us=660_000_000 - 50_000_000 * change,
                quadratic_duration_us=30_000_000,
                bins_us=bins,
            )
        )
    assert len(trainer.position.chain) == 7
    text = json.dumps(trainer.position.to_json(), separators=(",", ":"))
    assert len(text) <= 1024 + 70 * len(leaves)


def test_the_default_bins_are_not_written():
    assert "bins" not in json.dumps(_position().to_json())


@pytest.mark.parametrize(
    ("state", "named"),
    [
        ({"epoch": 3, "sampler": {}}, "it has no 'version'"),
        ([1, 2], "it is a list"),
        (None, "it is a NoneType"),
        ({**_position().to_json(), "version": 2}, "version 2 of the layout"),
        ({**_position().to_json(), "plan": 99}, "version 99 of the algorithm"),
        ({**_position().to_json(), "plan": True}, "version True of the algorithm"),
        ({**_position().to_json(), "rank": 0}, "it has rank"),
        ({**_position().to_json(), "seed": "7"}, "'7' is not a whole number"),
        ({**_position().to_json(), "W": 0}, "0 is below 1"),
        ({**_position().to_json(), "leaves": {}}, "it has no leaves"),
        ({**_position().to_json(), "leaves": {"a": [0, 9, 5, "x"]}}, "5 is below 9"),
        ({**_position().to_json(), "weights": [1]}, "weights has 1 numbers for 2 leaves"),
        ({**_position().to_json(), "chain": []}, "does not begin with a window"),
        ({**_position().to_json(), "chain": [[{"colour": 1}, 1, 0]]}, "colour"),
        ({**_position().to_json(), "chain": [[{"batch_size": 0}, 1, 0]]}, "batch_size"),
        ({**_position().to_json(), "shape": {"finite": 1, "hue": 2}}, "hue"),
        ({**_position().to_json(), "read": None}, "a part of a position.*LoaderPosition"),
    ],
)
def test_what_is_not_a_position_is_refused_with_the_reason(state, named):
    with pytest.raises(PositionError, match=named):
        Position.from_json(state)


def test_more_steps_than_the_window_has_are_refused():
    position = _position()
    state = position.to_json()
    state["chain"][-1][2] = 10_000
    leaves = [columns("a", speech(500)), columns("b", speech(90, 1), 2)]
    with pytest.raises(PositionError, match="10000 steps into a link of"):
        plan_window(
            Position.from_json(state),
            leaves,
            position.shape,
            position.chain[-1].batching,
        )


def test_the_step_that_a_state_was_saved_with_can_be_read():
    """A loader keeps G on another world size that divides it, so the position must say it."""
    position = _position()
    assert position.micro_batches_per_step == 2
    leaves = [columns("a", speech(500)), columns("b", speech(90, 1), 2)]
    other = Batching(batch_size=4, micro_batches_per_step=6)
    resumed, _ = resume(position, leaves, position.shape, other)
    assert resumed.micro_batches_per_step == 6
