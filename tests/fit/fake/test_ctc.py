"""CTC's loss without computing: it holds what the real one holds."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from playhead.fit.fake.ctc import ctc_loss
from playhead.fit.live_tensors import LiveTensors, rounded

FRAMES, SAMPLES, CLASSES = 50, 4, 30


def held(loss_of, targets, lengths, **options):
    """Return what is held between forward and backward, and the most in both."""
    scores = torch.randn(FRAMES, SAMPLES, CLASSES, requires_grad=True)
    with LiveTensors() as tensors:
        logs = scores.log_softmax(-1)
        frames = torch.full((SAMPLES,), FRAMES)
        loss = loss_of(logs, targets, frames, lengths, **options)
        total = loss.sum()
        between = tensors.live
        total.backward()
    return between, tensors.peak, loss.shape


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("flat", [False, True])
@settings(max_examples=5)
@given(st.lists(st.integers(1, 20), min_size=SAMPLES, max_size=SAMPLES))
def test_it_holds_what_the_real_one_holds(reduction, flat, lengths):
    shape = (sum(lengths),) if flat else (SAMPLES, 20)
    targets = torch.randint(1, CLASSES, shape)
    due = held(nn.functional.ctc_loss, targets, torch.tensor(lengths), reduction=reduction)
    got = held(ctc_loss, targets, torch.tensor(lengths), reduction=reduction)
    assert got[2] == due[2]
    # But for single numbers, of which there are a few.
    assert abs(got[0] - due[0]) <= 4 * rounded(1)
    assert abs(got[1] - due[1]) <= 4 * rounded(1)


def test_half_precision_is_widened_and_one_sample_needs_no_dimension():
    logs = torch.randn(FRAMES, CLASSES, dtype=torch.bfloat16, requires_grad=True)
    loss = ctc_loss(logs, torch.ones(3, dtype=torch.int64), [FRAMES], [3], reduction="none")
    assert loss.shape == ()
    assert loss.dtype == torch.float32
    loss.backward()
    assert logs.grad.dtype == torch.bfloat16
