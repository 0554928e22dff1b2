"""What becomes of each option: it works, it has no meaning here, or it is not built yet."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any

from playhead.config.options import Options

__all__ = ["STATUS", "UNITS", "Status", "is_off"]


class Status(Enum):
    """What becomes of an option."""

    WORKS = "works"
    """It does what it says."""
    MEANINGLESS = "no meaning here"
    """It is accepted, and one note says that nothing follows from it."""
    NOT_YET = "not supported yet"
    """It is refused by name when it is switched on."""
    DETAIL = "detail"
    """It only matters together with an option that is not supported yet."""


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

# What is not built yet, and the values besides None, False and the default that leave it off.
_NOT_YET: dict[str, tuple[Any, ...]] = {
    "audio_token_estimator": (),
    "batch_tokens": (),
    "cut_text_into_windows_tokens": (),
    "max_tokens": (float("inf"),),
    "max_tpt": (),
    "min_tokens": (-1, 0),
    "min_tpt": (0,),
    "multi_config": (),
    "use_multimodal_sampling": (),
    "use_packed_sequence_sampling": (),
}

_DETAILS = frozenset(
    {
        "audio_locator_tag",
        "measure_total_length",
        "quadratic_factor",
        "sampler_fusion",
        "sampler_weights",
        "token_equivalent_duration",
    }
)

_DEFAULTS = {item.name: item.default for item in fields(Options)}


def _status(name: str) -> Status:
    if name in _NOT_YET:
        return Status.NOT_YET
    if name in _MEANINGLESS:
        return Status.MEANINGLESS
    return Status.DETAIL if name in _DETAILS else Status.WORKS


STATUS: dict[str, Status] = {name: _status(name) for name in _DEFAULTS}
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
    "min_tokens": "tokens",
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


def is_off(name: str, value: Any) -> bool:
    """Whether a value leaves an option that is not built yet switched off.

    Examples
    --------
    >>> is_off("multi_config", False), is_off("batch_tokens", 4000)
    (True, False)
    """
    if value is None or value is False or value == _DEFAULTS[name]:
        return True
    return any(value == off for off in _NOT_YET[name])
