"""Models of fake tensors: what is copied in them, and what is left when they go."""

from __future__ import annotations

import copy
import gc

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from playhead.fit.fake.opening import real_copies


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_copy_of_a_fake_tensor_is_one_of_the_same_mode(requires_grad):
    mode = FakeTensorMode()
    with mode, real_copies():
        # One that carries what it holds, and with it references to storages.
        made = torch.tensor(3.0).requires_grad_(requires_grad)
        first, second = copy.deepcopy([made, made])
    assert isinstance(first, FakeTensor)
    assert first is second
    assert first is not made
    assert first.fake_mode is mode
    assert first.requires_grad == requires_grad
    del made, first, second, mode
    gc.collect()


def test_a_copy_of_a_real_tensor_is_real():
    real = torch.arange(3)
    with FakeTensorMode(allow_non_fake_inputs=True), real_copies():
        copied = copy.deepcopy(real)
    assert type(copied) is torch.Tensor
    assert copied.tolist() == [0, 1, 2]
