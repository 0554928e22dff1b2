"""Recurrent layers: a fake LSTM keeps about what a real one keeps."""

from __future__ import annotations

import pytest
from torch import nn

from playhead.fit.bucket import Bucket
from playhead.fit.fake.predictor import Predictor
from playhead.fit.training import Training
from support.fit_models import Small
from support.real_steps import real_peak


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.LSTM(16, 64, 2, batch_first=True)

    def forward(self, batch):
        return self.layers(batch)[0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_lstm_keeps_about_what_a_real_one_keeps(dtype):
    training = Training(dtype=dtype)
    bucket = Bucket(bound=1, input_length=40, output_length=1)
    made = Predictor(lambda _: Small(Recurrent()), training, method="cpu")
    due = real_peak(Small(Recurrent()), training, bucket, 32)
    assert due * 0.99 <= made.predict(bucket, 32) <= due * 1.15, made.blocked
    assert any(note.startswith("recurrent layers") for note in made.notes)
