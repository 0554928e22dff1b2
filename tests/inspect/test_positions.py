"""Positions are found wherever they stand, and what only looks like one is refused by a line."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.inspect.positions import find_positions
from playhead.plan import Batching, Shape, plan_window, start
from support.plans import columns, speech

LEAVES = [columns("a", speech(30)), columns("b", speech(20, seed=1), 2)]
BATCHING = Batching(micro_batches_per_step=2, batch_size=3)


def _state(steps=3, **shape):
    options = Shape(window_draws=60, **shape)
    position = start(LEAVES, options, BATCHING, seed=2)
    return plan_window(position, LEAVES, options, BATCHING).position_at(steps).to_json()


def _found(content):
    refused: list[str] = []
    return find_positions(content, file="x", refused=refused), refused


def test_positions_are_found_at_any_depth_with_their_place():
    content = {
        "loops": {"fit": [1, {"loader": _state()}]},
        "text": json.dumps({"callbacks": {"val": _state(finite=True)}, "version": 1}),
        "fused": {
            "version": 1,
            "seed": 1,
            "step": 9,
            "parts": {"one": _state(), "two": _state(4)},
        },
    }
    found, refused = _found(content)
    assert not refused
    assert [(one.path, one.step) for one in found] == [
        ("loops.fit[1].loader", 3),
        ("text.callbacks.val", 3),
        ("fused", 9),
    ]
    assert [one.finite for one in found] == [False, True, False]
    assert list(found[2].parts) == ["one", "two"]


def test_equal_positions_count_once():
    found, _ = _found([_state(), copy.deepcopy(_state()), _state(4)])
    assert [one.path for one in found] == ["[0]", "[2]"]


def test_a_container_in_itself_and_a_very_deep_one_are_walked_through():
    circle: list = []
    circle.append(circle)
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    found, _ = _found({"circle": circle, "deep": deep, "loader": _state()})
    assert [one.path for one in found] == ["loader"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("version", 2, "version 2"),
        ("plan", 7, "version 7"),
        ("leaves", {}, "no leaves"),
        ("leaves", {k: [2**59, 1, 2**59, "f"] for k in "ab"}, "absurdly large"),
        ("W", 2**40, "absurdly large"),
        ("chain", [[{"micro_batches_per_step": 2**50}, 1, 0]], "damaged"),
        ("weights", [-1, 2], "damaged"),
        ("read", [1], "damaged"),
    ],
)
def test_a_state_that_cannot_be_is_refused_with_its_place(key, value, said):
    found, refused = _found({"deep": [{**_state(), key: value}]})
    assert not found
    (line,) = refused
    assert line.startswith("x: deep[0]: ")
    assert said in line


_ODD = st.sampled_from(
    [0, 1, -1, 2**31, 2**63, 2**70, 1.5, None, True, "x", "", [], {}, [1], {"a": 1}, float("nan")]
)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_state_with_anything_in_it_is_read_or_refused(data):
    state = _state()
    for _ in range(data.draw(st.integers(1, 3))):
        node = state
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            key = data.draw(st.sampled_from(keys))
            inner = node[key]
            if not (isinstance(inner, (dict, list)) and inner and data.draw(st.booleans())):
                node[key] = copy.deepcopy(data.draw(_ODD))
                break
            node = inner
    found, refused = _found(state)
    assert len(found) + len(refused) <= 1
    assert all("\n" not in line for line in refused)
