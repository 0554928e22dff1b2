"""Ranges that lie near each other are read together, and every range gets its own bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from playhead.storage.base import ByteRange
from playhead.storage.near_ranges import near_together, of_distinct_sizes, taken_apart

DATA = {"a": bytes(range(200)), "b": bytes(reversed(range(200)))}
ranges = st.lists(
    st.builds(ByteRange, st.sampled_from(sorted(DATA)), st.integers(0, 150), st.integers(0, 50)),
    max_size=12,
)


@given(ranges, st.integers(0, 30))
def test_every_range_gets_its_bytes(asked, gap):
    blocks = near_together(asked, gap)
    data = [DATA[uri][offset : offset + size] for (uri, offset, size), _ in blocks]
    wanted = [DATA[uri][offset : offset + size] for uri, offset, size in asked]
    assert taken_apart(blocks, data, asked) == wanted


@given(ranges)
def test_blocks_of_one_object_can_be_told_apart_by_their_sizes(asked):
    blocks = of_distinct_sizes(near_together(asked, len(asked)))
    sizes = [(uri, size) for (uri, _, size), _ in blocks]
    assert len(set(sizes)) == len(sizes)
    data = [DATA[uri][offset : offset + size] for (uri, offset, size), _ in blocks]
    wanted = [DATA[uri][offset : offset + size] for uri, offset, size in asked]
    assert taken_apart(blocks, data, asked) == wanted


@given(ranges, st.integers(0, 30))
def test_blocks_lie_further_apart_than_the_gap(asked, gap):
    blocks = sorted(block.span for block in near_together(asked, gap))
    for one, other in pairwise(blocks):
        assert one.uri != other.uri or other.offset > one.offset + one.size + gap
