"""From references to rows to batches: reading, decoding, and the call of the dataset."""

from __future__ import annotations

from playhead.fetch.fetcher import ExampleDataset, Fetcher, FetchSpec
from playhead.fetch.info import BatchInfo
from playhead.fetch.timings import Timings
from playhead.fetch.waveforms import pad_waveforms, waveform

__all__ = [
    "BatchInfo",
    "ExampleDataset",
    "FetchSpec",
    "Fetcher",
    "Timings",
    "pad_waveforms",
    "waveform",
]
