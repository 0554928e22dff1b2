"""Live tensors: what operators return is counted, once a storage, from its birth to its death."""

from __future__ import annotations

import gc

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from playhead.fit.live_tensors import BLOCK, LiveTensors, OutOfTensorMemoryError, rounded


@given(st.integers(0, 2**40))
def test_sizes_are_rounded_up_to_whole_blocks(size):
    assert rounded(size) % BLOCK == 0
    assert 0 <= rounded(size) - size < BLOCK


@given(st.lists(st.tuples(st.integers(1, 3000), st.booleans()), max_size=20))
def test_live_is_the_sum_of_what_is_kept_and_the_peak_its_maximum(made):
    kept, due, most = [], 0, 0
    with LiveTensors() as tensors:
        for length, keep in made:
            tensor = torch.empty(length, dtype=torch.uint8)
            most = max(most, due + rounded(length))
            if keep:
                kept.append(tensor)
                due += rounded(length)
            del tensor
    assert (tensors.live, tensors.peak) == (due, most)
    kept.clear()
    assert (tensors.live, tensors.peak) == (0, most)


def test_views_and_work_in_place_hold_nothing_more():
    with LiveTensors() as tensors:
        whole = torch.zeros(1000)
        once = tensors.peak
        part = whole[10:20].view(2, 5).add_(1)
        assert tensors.peak == once == rounded(4000)
        del whole
        assert tensors.live == once
        del part
    assert tensors.live == 0


def test_what_was_there_before_counts_once_it_is_watched():
    before = torch.zeros(500)
    with LiveTensors() as tensors:
        assert tensors.live == 0
        tensors.watch([before, before[:10]])
        before.mul_(2)
        assert tensors.live == rounded(2000)
    del before
    assert tensors.live == 0


def test_a_storage_that_grows_counts_with_its_new_size():
    with LiveTensors() as tensors:
        kept = torch.zeros(10)
        kept.resize_(1000)
        assert tensors.live == rounded(4000)


def test_all_outputs_of_an_operator_count():
    with LiveTensors() as tensors:
        _values, _places = torch.randn(1000).sort()
    assert tensors.live == rounded(4000) + rounded(8000)


def test_the_parts_of_a_sparse_tensor_count():
    table = torch.nn.Embedding(100, 64, sparse=True)
    with LiveTensors() as tensors:
        table(torch.tensor([1, 2, 3])).sum().backward()
    assert table.weight.grad.is_sparse
    # Three places and three rows.
    assert tensors.live == rounded(24) + rounded(3 * 64 * 4)


def test_what_autograd_keeps_stays_alive_until_backward():
    weight = torch.zeros(1000, requires_grad=True)
    with LiveTensors() as tensors:
        loss = weight.exp().sin().sum()
        assert tensors.live == rounded(4000) + rounded(4)  # what exp returned serves both
        loss.backward()
        del loss
        gc.collect()
        assert tensors.live == rounded(4000)  # the gradient


def test_the_peak_can_be_forgotten():
    with LiveTensors() as tensors:
        kept = torch.zeros(10)
        torch.zeros(10_000)
        tensors.reset_peak()
        assert tensors.peak == tensors.live == rounded(kept.nbytes)


def test_more_than_the_limit_is_an_error_that_can_be_survived():
    with LiveTensors(limit=10_000) as tensors:
        kept = torch.zeros(2000)
        with pytest.raises(OutOfTensorMemoryError, match="and may hold 10000"):
            kept + 1
        gc.collect()
        assert tensors.live == rounded(8000)
        torch.zeros(400, dtype=torch.uint8)
    with pytest.raises(MemoryError):
        LiveTensors(limit=1000).watch([kept])


def test_fake_tensors_count_as_if_they_were_real():
    with FakeTensorMode(), LiveTensors() as tensors:
        kept = torch.zeros(2**20, 2**20)
        assert tensors.live == kept.numel() * 4


def test_tensors_elsewhere_do_not_count_where_a_device_is_asked_for():
    with LiveTensors(device="meta") as tensors:
        _here, _there = torch.zeros(10), torch.zeros(1000, device="meta")
    assert tensors.live == rounded(4000)
