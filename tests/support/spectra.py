"""Spectra of lengths, made of a list of them."""

from __future__ import annotations

import numpy as np

from playhead.bins.histogram import Histogram


def spectrum_of(lengths, weights=1.0):
    """The spectrum of samples; a weight for each, or one for all."""
    histogram = Histogram()
    lengths, weights = np.broadcast_arrays(np.asarray(lengths, dtype=np.int64), weights)
    for weight in np.unique(weights):
        histogram.add(lengths[weights == weight], float(weight))
    return histogram.spectrum()
