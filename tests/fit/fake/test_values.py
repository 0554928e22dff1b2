"""Small values: what Python looks into is there, and is what it is on real tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from playhead.fit.fake.values import SmallValues


@pytest.fixture
def values():
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with fake, SmallValues(fake) as mode:
        yield mode


def test_lengths_can_be_looked_into(values):
    lengths = torch.full((3,), 7)
    assert lengths.max().item() == 7
    assert int(lengths.sum()) == 21
    assert (lengths > 3).all()
    assert torch.from_numpy(np.arange(3)).tolist() == [0, 1, 2]
    assert values.looked["aten::_local_scalar_dense"] == 6


@settings(max_examples=15)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_masks_choose_as_many_places_as_they_do_on_real_tensors(lengths):
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with fake, SmallValues(fake):
        mask = torch.arange(9)[None] < torch.tensor(lengths)[:, None]
        states = torch.nn.Linear(4, 4)(torch.randn(len(lengths), 9, 4))
        assert states[mask].shape == (sum(lengths), 4)
        assert mask.nonzero().shape == (sum(lengths), 2)
        assert torch.masked_select(torch.arange(9), mask[0]).tolist() == list(range(lengths[0]))
        written = states.clone()
        written[mask] = torch.zeros(4)
        assert written.shape == states.shape


def test_what_comes_from_audio_is_unknown(values):
    audio = torch.randn(2**17)
    loss = audio.sum()
    with pytest.raises(DataDependentOutputException):
        loss.item()
    kept = torch.zeros(4)
    view = kept[1:]
    assert kept.sum().item() == 0
    kept.add_(audio[:4])
    for tensor in (kept, view):
        with pytest.raises(DataDependentOutputException):
            tensor.sum().item()


def test_what_is_written_into_a_view_is_in_the_whole(values):
    whole = torch.zeros(4, dtype=torch.int64)
    whole[1:3].fill_(5)
    assert whole.tolist() == [0, 5, 5, 0]


def test_what_is_large_is_unknown(values):
    with pytest.raises(DataDependentOutputException):
        torch.zeros(2**23, dtype=torch.int64).sum().item()


def test_random_numbers_are_the_same_each_time_and_leave_the_generator_alone(values):
    before = torch.get_rng_state()
    first = torch.randint(0, 1000, (5,)).tolist()
    assert torch.randint(0, 1000, (5,)).tolist() == first
    assert len(set(first)) > 1
    assert torch.rand([]).item() == 0.5
    assert bool(torch.rand([]) < 0.1) is False
    assert torch.equal(before, torch.get_rng_state())
