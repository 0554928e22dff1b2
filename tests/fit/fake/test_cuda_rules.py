"""The rules of CUDA: kernels, dropout and autocast keep on a CPU what they keep there."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from playhead.fit.bucket import Bucket
from playhead.fit.fake.attention import Attention
from playhead.fit.fake.cuda_rules import cuda_rules
from playhead.fit.fake.predictor import Predictor
from playhead.fit.fake.stand_ins import StandIns
from playhead.fit.live_tensors import LiveTensors, rounded
from playhead.fit.training import Training
from support.fit_models import Small

# (samples, heads, length, width of a head)
SHAPE = (2, 4, 100, 64)
ELEMENTS = 2 * 4 * 100 * 64
SCORES = 2 * 4 * 100 * 100


def kept_by_attention(dtype, kernel="flash", **options):
    attention = Attention(kernel)
    with FakeTensorMode(), StandIns(cuda_rules(attention)):
        # As projections leave them: heads beside each other.
        query = torch.randn(2, 100, 4, 64, dtype=dtype).transpose(1, 2).requires_grad_()
        mask = options.pop("mask", None)
        mask = None if mask is None else torch.ones(mask, dtype=torch.bool)
        with LiveTensors() as tensors:
            out = functional.scaled_dot_product_attention(
                query, query, query, attn_mask=mask, **options
            )
            kept = tensors.live
            out.float().sum().backward()
        assert out.shape == query.shape
        assert query.grad.shape == query.shape
        return kept, dict(attention.calls)


def test_flash_keeps_its_output_and_a_number_for_each_row():
    kept, calls = kept_by_attention(torch.bfloat16)
    assert calls == {"flash": 1}
    # And two seeds.
    assert kept - rounded(2 * ELEMENTS) - rounded(4 * 2 * 4 * 100) <= 4 * rounded(1)
    assert kept_by_attention(torch.float16, dropout_p=0.1, is_causal=True)[1] == {"flash": 1}


def test_float32_and_masks_go_to_the_memory_efficient_kernel():
    kept, calls = kept_by_attention(torch.float32)
    assert calls == {"efficient": 1}
    assert kept < rounded(4 * ELEMENTS) + rounded(4 * 2 * 4 * 128) + 4 * rounded(1)
    with_mask, calls = kept_by_attention(torch.bfloat16, mask=(2, 1, 100, 100))
    assert calls == {"efficient": 1}
    # The mask as numbers, in rows of a multiple of 16.
    numbers = rounded(2 * 2 * 100 * 112)
    assert 0 <= with_mask - rounded(2 * ELEMENTS) - numbers <= rounded(4 * 1024) + 4 * rounded(1)


def test_math_keeps_scores_of_each_pair():
    kept, calls = kept_by_attention(torch.bfloat16, "math")
    assert calls == {"math": 1}
    assert kept > 4 * SCORES
    more, _ = kept_by_attention(torch.bfloat16, "math", dropout_p=0.1)
    # What is left after dropout, and a byte for each pair.
    assert more - kept == rounded(4 * SCORES) + rounded(SCORES)


def test_fewer_heads_of_keys_than_of_queries():
    with FakeTensorMode(), StandIns(cuda_rules(Attention("efficient"))):
        query, key = torch.zeros(SHAPE), torch.zeros(2, 2, 100, 64)
        out = functional.scaled_dot_product_attention(query, key, key, enable_gqa=True)
        assert out.shape == SHAPE


@pytest.mark.parametrize("training", [True, False])
def test_dropout_keeps_a_byte_for_each_element(training):
    layer = nn.Dropout(0.5)
    layer.train(training)
    with FakeTensorMode(), StandIns(cuda_rules(Attention())):
        inputs = torch.zeros(10_000, requires_grad=True)
        with LiveTensors() as tensors:
            out = layer(inputs)
            assert tensors.live == (rounded(40_000) + rounded(10_000) if training else 0)
            out.sum().backward()


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda x: functional.layer_norm(x, (8,)), torch.float32),
        (lambda x: functional.group_norm(x, 2), torch.float32),
        (lambda x: x.softmax(-1), torch.float32),
        (lambda x: functional.softmax(x, dim=-1), torch.float32),
        (lambda x: functional.log_softmax(x, -1), torch.float32),
        (lambda x: x.sum(-1), torch.float32),
        (lambda x: x**2, torch.float32),
        (lambda x: 2**x, torch.float32),
        (lambda x: x.exp(), torch.float32),
        (torch.rsqrt, torch.float32),
        (lambda x: functional.mse_loss(x, x), torch.float32),
        (lambda x: x.mean(-1), torch.bfloat16),
        (functional.gelu, torch.bfloat16),
        (lambda x: x.softmax(-1, dtype=torch.bfloat16), torch.bfloat16),
    ],
)
def test_autocast_computes_in_the_dtypes_of_cuda(function, dtype):
    with FakeTensorMode(), StandIns(cuda_rules(Attention())):
        inputs = torch.zeros(4, 8, dtype=torch.bfloat16)
        with torch.autocast("cpu", torch.bfloat16):
            assert function(inputs).dtype is dtype
        assert function(inputs).dtype is torch.bfloat16


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_keeps_logarithms_in_both_dtypes(smoothing):
    rows, classes = 20, 5000
    with FakeTensorMode(), StandIns(cuda_rules(Attention())):
        scores = torch.zeros(rows, classes, dtype=torch.bfloat16, requires_grad=True)
        labels = torch.zeros(rows, dtype=torch.int64)
        with LiveTensors() as tensors, torch.autocast("cpu", torch.bfloat16):
            loss = functional.cross_entropy(scores, labels, label_smoothing=smoothing)
        assert loss.shape == ()
        logarithms = rounded(2 * rows * classes) + rounded(4 * rows * classes)
        assert 0 <= tensors.live - logarithms <= 10 * rounded(1)


def test_float16_becomes_float32_in_softmax_without_a_copy():
    with FakeTensorMode(), StandIns(cuda_rules(Attention())):
        scores = torch.zeros(100, 100, dtype=torch.float16, requires_grad=True)
        with LiveTensors() as tensors:
            scores.softmax(-1, dtype=torch.float32)
        assert tensors.peak == rounded(40_000)


BUCKET = Bucket(bound=1.0, input_length=50, output_length=3)


def test_attention_inside_a_layer_of_torch_is_replaced_too():
    class Layer(nn.Module):
        def __init__(self, *, weights):
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True)
            self.weights = weights

        def forward(self, batch):
            return self.attention(batch, batch, batch, need_weights=self.weights)[0]

    def peak(*, weights):
        made = Predictor(lambda _: Small(Layer(weights=weights)), Training(dtype="bfloat16"))
        return made.predict(BUCKET, 16), made.notes

    without, notes = peak(weights=False)
    assert "attention: flash, assumed in 2 calls" in notes
    with_weights, notes = peak(weights=True)
    assert not any(note.startswith("attention") for note in notes)
    assert with_weights > without


def test_autocast_that_is_turned_off_on_cuda_is_off():
    class Wide(nn.Linear):
        def forward(self, batch):
            with torch.autocast("cuda", enabled=False):
                out = super().forward(batch)
            assert out.dtype is torch.float32
            return out

    made = Predictor(lambda _: Small(Wide(16, 16)), Training(dtype="bfloat16"))
    assert made.predict(BUCKET, 2) is not None, made.blocked


def test_optimizers_work_on_all_weights_at_once_as_they_do_on_cuda():
    """So a step holds roots of all second moments, not of one weight at a time."""

    def peak(**training):
        layers = nn.Sequential(*(nn.Linear(16, 16) for _ in range(8)))
        made = Predictor(lambda _: Small(layers), Training(dtype="float32", ddp=False, **training))
        return made.predict(Bucket(bound=1, input_length=1, output_length=1), 1)

    weights = 8 * (rounded(1024) + rounded(64))
    # Weights, gradients, two moments, the roots; and counts of steps.
    assert peak(optimizer="adamw") >= 5 * weights + 16 * rounded(4)
