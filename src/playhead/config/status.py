"""What becomes of each option: it works, or it has no meaning here."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum

from playhead.config.options import Options

__all__ = ["STATUS", "UNITS", "Status"]


class Status(Enum):
    """What becomes of an option."""

    WORKS = "works"
    """It does what it says."""
    MEANINGLESS = "no meaning here"
    """It is accepted, and one note says that nothing follows from it."""


_MEANINGLESS = frozenset(
    {
        "ais_batch_prefetch_buffer_size",
        "bucket_buffer_size",
        "concurrent_bucketing",
        "cuda_expandable_segments",
        "force_iterable_dataset",
        "force_map_dataset",
        "index_pack_max_open_files",
        "max_open_streams",
        "num_cuts_for_bins_estimate",
        "shard_seed",
        "shuffle_buffer_size",
        "skip_missing_manifest_entries",
        "tarred_random_access",
        "use_ais_get_batch",
    }
)

STATUS: dict[str, Status] = {
    item.name: Status.MEANINGLESS if item.name in _MEANINGLESS else Status.WORKS
    for item in fields(Options)
}
"""Name of every option to what becomes of it."""


UNITS: dict[str, str] = {
    "batch_duration": "s",
    "batch_size": "samples",
    "batch_tokens": "tokens",
    "bucket_batch_size": "samples",
    "bucket_buffer_size": "samples",
    "bucket_duration_bins": "s",
    "cache_bytes": "bytes",
    "clipping_gain_db": "dB",
    "concatenate_gap_seconds": "s",
    "cut_into_windows_duration": "s",
    "cut_into_windows_hop": "s",
    "cut_text_into_windows_tokens": "tokens",
    "db_norm": "dB",
    "input_sampling_rate": "Hz",
    "lowpass_frequencies_interval": "Hz",
    "max_duration": "s",
    "max_tokens": "tokens",
    "max_tps": "tokens/s",
    "min_duration": "s",
    "max_tpt": "tokens/token",
    "min_tokens": "tokens",
    "min_tpt": "tokens/token",
    "min_tps": "tokens/s",
    "noise_snr": "dB",
    "num_cuts_for_bins_estimate": "samples",
    "pad_min_duration": "s",
    "prefetch_factor": "batches",
    "quadratic_duration": "s",
    "quadratic_factor": "tokens",
    "sample_rate": "Hz",
    "shuffle_buffer_size": "samples",
    "slice_length": "samples",
    "token_equivalent_duration": "s",
    "truncate_duration": "s",
    "window_draws": "samples",
}
"""Name of every option that has a unit to the unit."""
