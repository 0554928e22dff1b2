"""Items that were read, by the formulas, for each form of state."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.inspect.nemo_consumed import consumed_items, position_in_pass, shard_length
from playhead.inspect.nemo_state import LeafState

_LEAF = LeafState(
    path="", state_type="indexed", position=3, shard_id=1, num_shards=4, may_have_ended=False
)


@given(total=st.integers(0, 10_000), shards=st.integers(1, 64))
def test_the_parts_of_a_pass_are_the_pass(total: int, shards: int) -> None:
    parts = [shard_length(total, shard, shards) for shard in range(shards)]

    assert sum(parts) == total
    assert max(parts) - min(parts) <= 1


@pytest.mark.parametrize(
    ("epoch", "total", "expected"),
    [(0, 10, 3), (2, 10, 2 * 3 + 3), (2, 1, 0 + 3), (0, None, 3), (1, None, None)],
)
def test_finished_passes_count_their_part_of_the_total(
    epoch: int, total: int | None, expected: int | None
) -> None:
    assert consumed_items(replace(_LEAF, epoch=epoch), total) == expected


def test_a_last_pass_that_is_counted_as_finished_counts_once() -> None:
    # 10 items over 4 processes: this one has 3 of them.
    last = replace(_LEAF, epoch=1, may_have_ended=True)

    assert consumed_items(last, 10) == 3
    assert consumed_items(replace(last, may_have_ended=False), 10) == 6
    assert consumed_items(replace(last, position=2), 10) == 5


def test_files_in_order_count_those_that_were_read() -> None:
    leaf = replace(_LEAF, state_type="sequential packed", current_shard=2)
    files = (10, 2, 9)

    # Parts of this process: 3 of 10, 1 of 2, 2 of 9.
    assert position_in_pass(leaf, 21, files) == 3 + 1 + 3
    assert consumed_items(replace(leaf, epoch=2), 21, files) == 2 * (3 + 1 + 2) + 3 + 1 + 3


def test_files_in_another_order_count_those_that_were_read() -> None:
    leaf = replace(_LEAF, current_shard=1, shard_order=(2, 0, 1), position=1)

    assert position_in_pass(leaf, 21, (10, 2, 9)) == 2 + 1


@pytest.mark.parametrize("files", [(), (5, 5)])
def test_later_files_count_only_where_the_lengths_of_all_are_known(files: tuple[int, ...]) -> None:
    leaf = replace(_LEAF, current_shard=1, shard_order=(0, 1, 2))

    assert position_in_pass(leaf, 21, files) is None
    assert consumed_items(leaf, 21, files) is None
    assert consumed_items(replace(leaf, current_shard=0), None, files) == 3
    assert consumed_items(replace(leaf, current_shard=0, epoch=1), None, files) is None


def test_after_the_last_file_the_whole_pass_was_read() -> None:
    leaf = replace(_LEAF, current_shard=3, position=0)

    assert consumed_items(leaf, 21, (10, 2, 9)) == 6


def test_a_file_that_was_read_counts_as_a_whole() -> None:
    leaf = replace(_LEAF, position=None, is_read=True, epoch=1)

    assert consumed_items(leaf, 10) == 6
    assert consumed_items(leaf, None) is None


def test_nothing_is_known_of_a_state_that_cannot_be_read() -> None:
    assert consumed_items(LeafState(path=""), 10) is None


def test_a_process_that_has_not_begun_has_read_nothing() -> None:
    leaf = replace(_LEAF, position=0, shard_id=None, num_shards=None)

    assert consumed_items(leaf, 10) == 0
