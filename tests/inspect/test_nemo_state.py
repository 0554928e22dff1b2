"""What is read out of the graphs of iterators that samplers of NeMo and Lhotse save."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.inspect.nemo_samplers import SamplerState
from playhead.inspect.nemo_state import LeafState, buffered_items, leaves_of
from support.nemo_states import chain, indexed, mixture, packed, repeated, sampler


def _leaves(*cuts: Any, joined: bool = False, **more: Any) -> list[LeafState]:
    state = SamplerState(state=sampler(*cuts, **more), path="", rank=0, worker=0)
    return leaves_of(state, joined=joined)


def _places(leaves: list[LeafState]) -> list[tuple[str, int, int | None, int | None, int | None]]:
    return [
        (leaf.state_type, leaf.epoch, leaf.position, leaf.shard_id, leaf.num_shards)
        for leaf in leaves
    ]


@pytest.mark.parametrize(
    ("state", "place"),
    [
        (indexed(5, 1, 4), ("indexed", 0, 5, 1, 4)),
        (indexed(5, 1, 4, epoch=2), ("indexed", 2, 5, 1, 4)),
        ({"_type": "Leaf", "_state": indexed(5, 1, 4)}, ("indexed", 0, 5, 1, 4)),
        (packed(7, 1, 4, passes=3), ("packed", 3, 7, 1, 4)),
        (packed(0, 1, 4, seed=None, in_file=9), ("sequential packed", 0, 9, 1, 4)),
        (repeated(indexed(5, 1, 4), 2), ("indexed", 2, 5, 1, 4)),
        (repeated(indexed(5, 1, 4, epoch=7), 2), ("indexed", 7, 5, 1, 4)),
        (repeated(packed(0, 1, 4, seed=None, in_file=9), 6), ("sequential packed", 6, 9, 1, 4)),
        ({"source": {"source": indexed(5, 1, 4)}}, ("indexed", 0, 5, 1, 4)),
        ({"source_offset": 3, "source": indexed(5)}, ("indexed", 0, 5, 0, 1)),
        ({"something": {"of": [indexed(5)]}, "rng_state": [1]}, ("indexed", 0, 5, 0, 1)),
        ({"position": 5}, ("streaming", 0, 5, 0, 1)),
        (
            chain(indexed(0, None, None), global_seed=3, global_position=8, num_iters=2)
            | {"global_shard_id": 1, "global_num_shards": 4},
            ("chain", 2, 8, 1, 4),
        ),
    ],
)
def test_every_form_of_a_leaf_says_its_place(state: Any, place: tuple[Any, ...]) -> None:
    assert _places(_leaves(state)) == [place]


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"epoch": 3},
        {"current_epoch": 1},
        {"source": None},
        indexed(-1),
        indexed(True),
        indexed(3, 4, 4),
        indexed(3, None, 4),
        packed(3, 4, 4),
        packed(3, None, None),
        packed(3, seed=None, in_file=None),
        {"inner_states": []},
        {"inner_states": "none"},
        {"inner_states": [None]},
        chain(None, current=-1),
    ],
)
def test_what_cannot_be_read_has_its_place_all_the_same(state: Any) -> None:
    leaves = _leaves(mixture(indexed(1), state, indexed(2)))

    assert [leaf.state_type for leaf in leaves] == ["indexed", "unknown", "indexed"]
    assert [leaf.position for leaf in leaves] == [1, None, 2]


def test_leaves_come_in_the_order_of_the_graph_with_their_paths() -> None:
    leaves = _leaves(
        mixture(repeated(mixture(indexed(1), indexed(2)), 0), {"source": indexed(3)}), indexed(4)
    )

    assert [leaf.position for leaf in leaves] == [1, 2, 3, 4]
    assert [leaf.path for leaf in leaves] == [
        "cuts_state[0].inner_states[0].source.inner_states[0]",
        "cuts_state[0].inner_states[0].source.inner_states[1]",
        "cuts_state[0].inner_states[1].source",
        "cuts_state[1]",
    ]


@pytest.mark.parametrize("key", ["samplers", "bucket_samplers"])
def test_samplers_in_a_sampler_number_their_sources_on(key: str) -> None:
    inner = [sampler(indexed(1), indexed(2)), None, sampler(indexed(3))]

    more: dict[str, Any] = {key: inner, "cuts_state": None}
    leaves = _leaves(**more)

    assert [leaf.position for leaf in leaves] == [1, 2, None, 3]
    assert leaves[3].path == f"{key}[2].cuts_state[0]"


@pytest.mark.parametrize(
    ("more", "total"),
    [
        ({"range": {"n": 9}, "total_len": 8}, 9),
        ({"total_len": 8}, 8),
        ({"_total_len": 7}, 7),
        ({"n": 6}, 6),
        ({"range": None}, None),
        ({"total_len": "8"}, None),
    ],
)
def test_a_state_may_say_its_total(more: dict[str, Any], total: int | None) -> None:
    assert _leaves(indexed(1, **more))[0].total_len == total


def test_of_files_in_order_only_the_present_one_keeps_a_true_place() -> None:
    # The first lost its place at a resume; the last has that of the pass before.
    states = [indexed(0, None, None), indexed(4, 1, 2), indexed(5, 1, 2)]

    leaves = _leaves(repeated(chain(*states, current=1), 3))

    assert [(leaf.is_read, leaf.position, leaf.epoch) for leaf in leaves] == [
        (True, None, 3),
        (False, 4, 3),
        (False, 0, 3),
    ]
    assert {(leaf.shard_id, leaf.num_shards) for leaf in leaves} == {(1, 2)}


def test_files_in_an_order_of_their_own_are_read_in_it() -> None:
    leaves = _leaves(chain(indexed(1), indexed(2), indexed(3), current=1, order=(2, 0, 1)))

    assert [(leaf.is_read, leaf.position) for leaf in leaves] == [
        (False, 1),
        (False, 0),
        (True, None),
    ]


def test_files_in_order_may_be_one_source() -> None:
    states = [indexed(0, None, None), indexed(4, 1, 2), indexed(5, 1, 2)]

    (leaf,) = _leaves(repeated(chain(*states, current=1, order=(2, 1, 0)), 3), joined=True)

    assert leaf.state_type == "sequential chain"
    assert (leaf.epoch, leaf.current_shard, leaf.position) == (3, 1, 4)
    assert (leaf.shard_id, leaf.num_shards, leaf.shard_order) == (1, 2, (2, 1, 0))


def test_a_last_pass_is_told_by_who_is_around() -> None:
    alone, in_mixture, at_its_end, in_repeat = (
        _leaves(packed(3, passes=1)),
        _leaves(mixture(packed(3, passes=1))),
        _leaves(mixture(packed(3, passes=1), exhausted=[True])),
        _leaves(repeated(packed(3, passes=1), 1)),
    )

    assert [leaves[0].may_have_ended for leaves in (alone, in_mixture, at_its_end, in_repeat)] == [
        True,
        False,
        True,
        False,
    ]


def test_what_waits_in_buffers_is_counted() -> None:
    buckets = {"bucket_tokens": [[[1], [2]], [], [[3]]], "rng_state": [1, 2, 3]}
    shuffled = {"buffer": [1, 2], "startup": True, "source": mixture(indexed(1), indexed(2))}
    state = sampler(shuffled, bucketer_state=buckets, packing_buffer_tokens=[[1], [2], [3], [4]])

    assert buffered_items(SamplerState(state=state, path="", rank=0, worker=0)) == 3 + 2 + 4


def test_a_graph_that_holds_itself_ends() -> None:
    circle: dict[str, Any] = {}
    circle["source"] = circle

    assert [leaf.state_type for leaf in _leaves(circle)] == ["unknown"]
    state = SamplerState(state=sampler(circle), path="", rank=0, worker=0)
    assert buffered_items(state) == 0


_anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*packed(), *indexed(0), *chain(), "source", "_state", "exhausted"]),
            inner,
            max_size=8,
        )
    ),
    max_leaves=30,
)


@given(_anything)
def test_no_state_is_too_strange(state: Any) -> None:
    for joined in (False, True):
        for leaf in _leaves(state, joined=joined):
            assert leaf.position is None or leaf.position >= 0
            if leaf.num_shards is not None:
                assert leaf.shard_id is not None
                assert 0 <= leaf.shard_id < leaf.num_shards
