"""Steps on real tensors, against which predictions are held."""

from __future__ import annotations

import gc

from playhead.fit.live_tensors import LiveTensors
from playhead.fit.steps import prepare, train_step


def real_peak(model, training, bucket, batch_size):
    """Return the most that real tensors hold in the second step (bytes)."""
    with LiveTensors() as tensors:
        tensors.watch(model.module.parameters())
        tensors.watch(model.module.buffers())
        prepared = prepare(model, training)
        train_step(prepared, bucket, batch_size)
        gc.collect()
        tensors.reset_peak()
        train_step(prepared, bucket, batch_size)
    return tensors.peak
