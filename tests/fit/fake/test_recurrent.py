"""Recurrent layers: a fake LSTM keeps about what a real one keeps, and no length takes longer."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from playhead.fit.bucket import Bucket
from playhead.fit.fake.predictor import Predictor
from playhead.fit.fake.recurrent import whole_layers
from playhead.fit.fake.stand_ins import StandIns
from playhead.fit.live_tensors import LiveTensors
from playhead.fit.training import Training
from support.fit_models import Small
from support.real_steps import real_peak


class Recurrent(nn.Module):
    def __init__(self, layers=None):
        super().__init__()
        self.layers = layers or nn.LSTM(16, 64, 2, batch_first=True)

    def forward(self, batch):
        return self.layers(batch)[0]


class Operators(TorchDispatchMode):
    number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.number += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_lstm_keeps_about_what_a_real_one_keeps(dtype):
    training = Training(dtype=dtype)
    bucket = Bucket(bound=1, input_length=40, output_length=1)
    made = Predictor(lambda _: Small(Recurrent()), training, method="cpu")
    due = real_peak(Small(Recurrent()), training, bucket, 32)
    assert due * 0.99 <= made.predict(bucket, 32) <= due * 1.15, made.blocked
    assert any(note.startswith("recurrent layers") for note in made.notes)


STEPS, SAMPLES, WIDTH, HIDDEN = 5, 3, 4, 8
KINDS = [
    (nn.GRU, {}),
    (nn.GRU, {"num_layers": 2, "bidirectional": True, "dropout": 0.5}),
    (nn.RNN, {"nonlinearity": "relu", "batch_first": True}),
    (nn.RNN, {"nonlinearity": "tanh", "bias": False}),
    (nn.LSTM, {"num_layers": 2, "batch_first": True}),
    (nn.LSTM, {"proj_size": 2, "bidirectional": True}),
]


def leaves(result):
    output, states = result
    states = states if isinstance(states, tuple) else (states,)
    output = output.data if isinstance(output, nn.utils.rnn.PackedSequence) else output
    return [output, *states]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_what_stands_in_for_layers_has_the_shapes_of_real_ones(kind, options, is_packed, dtype):
    layers = kind(WIDTH, HIDDEN, dtype=dtype, **options)
    first = layers.batch_first
    shape = (SAMPLES, STEPS, WIDTH) if first else (STEPS, SAMPLES, WIDTH)
    inputs = torch.randn(shape, dtype=dtype, requires_grad=True)
    given = inputs
    if is_packed:
        given = nn.utils.rnn.pack_padded_sequence(inputs, [5, 3, 1], batch_first=first)
    calls = []
    with StandIns(whole_layers(lambda: calls.append(1))):
        made = leaves(layers(given))
    due = leaves(layers(given))
    assert [(t.shape, t.dtype) for t in made] == [(t.shape, t.dtype) for t in due]
    sum(part.sum() for part in made).backward()
    assert all(weight.grad.shape == weight.shape for weight in layers.parameters())
    assert inputs.grad.shape == inputs.shape
    assert calls == [1]


@pytest.mark.parametrize(
    ("kind", "options", "numbers"),
    [
        (nn.LSTM, {}, 16),
        (nn.GRU, {}, 10),
        (nn.RNN, {}, 7),
        (nn.GRU, {"num_layers": 2, "dropout": 0.5}, 21),
        (nn.GRU, {"num_layers": 2, "bidirectional": True}, 40),
    ],
)
def test_gates_and_states_of_each_step_are_kept_for_the_backward_pass(kind, options, numbers):
    layers = kind(WIDTH, HIDDEN, **options)
    inputs = torch.randn(100, 64, WIDTH)
    with LiveTensors() as tensors, StandIns(whole_layers(lambda: None)):
        output, _ = layers(inputs)
        held = tensors.live
        with torch.no_grad():
            other, _ = layers(inputs)
        without = tensors.live - held
    states = 64 * HIDDEN * 4 * 8
    kept = 100 * 64 * HIDDEN * 4 * numbers
    assert other.nbytes <= without <= other.nbytes + states
    assert output.nbytes + kept <= held <= output.nbytes + kept + states


@pytest.mark.parametrize("kind", [nn.GRU, nn.RNN, nn.LSTM])
def test_an_estimate_takes_as_many_operators_at_any_length(kind):
    layers = kind(16, 64, batch_first=True)
    made = Predictor(lambda _: Small(Recurrent(layers)), Training())
    operators = []
    peaks = []
    for length in (100, 200, 100_000):
        bucket = Bucket(bound=1, input_length=length, output_length=1)
        made.predict(bucket, 8)
        with Operators() as counted:
            peaks.append(made.predict(bucket, 16))
        operators.append(counted.number)
    assert made.blocked is None
    # Caches of fake tensors spare one or two.
    assert max(operators) - min(operators) < 10
    assert peaks[2] > 400 * (peaks[1] - peaks[0])
    assert "recurrent layers: what they keep is roughly known, in 7 calls" in made.notes


def test_a_gru_on_a_cpu_is_predicted_as_long_as_it_is_short():
    training = Training(dtype="float32")
    layers = nn.GRU(16, 8, batch_first=True)
    made = Predictor(lambda _: Small(Recurrent(layers)), training, method="cpu")
    short = Bucket(bound=1, input_length=10, output_length=1)
    due = real_peak(Small(Recurrent(nn.GRU(16, 8, batch_first=True))), training, short, 64)
    assert made.predict(short, 64) == pytest.approx(due, rel=0.02)
    assert made.predict(Bucket(bound=2, input_length=101, output_length=1), 4) is None
    assert made.blocked.startswith("recurrent layers are too long to predict on a CPU")
    assert "101 steps, 100 at most" in made.blocked


def test_an_lstm_on_a_cpu_is_never_too_long():
    made = Predictor(lambda _: Small(Recurrent()), Training(dtype="float32"), method="cpu")
    assert made.predict(Bucket(bound=2, input_length=10_000, output_length=1), 4)
