"""Every option of a section, under NeMo's names and with NeMo's defaults, and a few of our own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Options"]

_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The options of one section of a config, checked."""

    # Inputs
    input_cfg: Any = None
    """The blend: a list of entries, or the path of a YAML file that holds one."""
    manifest_filepath: Any = None
    """NeMo manifest or manifests: a pattern, a list, or `[[path, weight], …]`."""
    tarred_audio_filepaths: Any = None
    """Tar archives that hold the audio of `manifest_filepath`, in the same form."""
    cuts_path: str | None = None
    """Lhotse cuts (JSONL)."""
    shar_path: Any = None
    """Lhotse Shar: a directory, a list, or `{field: shards}`."""
    skip_missing_manifest_entries: bool = False
    """Pass over members of an archive that no row names."""
    tarred_random_access: bool = False
    """Old name of `skip_missing_manifest_entries`."""
    fault_tolerant_audio_loading: bool | None = None
    """Drop samples whose audio cannot be read (true), or raise (false or unset)."""

    # Batches
    batch_size: int | None = None
    """Most samples of a batch."""
    batch_duration: float | None = None
    """Most seconds of a batch, padding included; a hard bound, but for one sample (`oversize`)."""
    quadratic_duration: float | None = None
    """Length in seconds that counts double: a length d counts as d + d²/q."""
    use_bucketing: bool = False
    """Batch samples of like length; true by itself when bins or sizes are given."""
    bucket_batch_size: tuple[int, ...] | None = None
    """Batch size for each of `bucket_duration_bins`."""
    num_buckets: int = 30
    """Length classes where no bins are given; at least 100 are made."""
    num_cuts_for_bins_estimate: int = 10000
    """How many cuts others read to estimate bins; here the columns are read instead."""
    bucket_duration_bins: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = None
    """Inclusive upper edges of the length classes (seconds, or tokens); or `[length, tokens]`."""
    bucket_buffer_size: int = 10000
    """Size of a buffer that does not exist here."""
    concurrent_bucketing: bool = True
    """Whether a thread fills a buffer that does not exist here."""
    bucketing_2d_strict_mode: bool = True
    """Look for a 2-D bin only among those of the first duration that fits."""
    shuffle_buffer_size: int | None = 10000
    """Size of a buffer that does not exist here: whole leaves are permuted."""
    drop_last: bool = False
    """Drop the samples that do not fill the last step of a finite pass."""
    shard_seed: int | str = "trng"
    """Seed of the order of shards elsewhere; here `seed` decides everything."""
    max_open_streams: int | None = None
    """Streams held open at once."""
    cuda_expandable_segments: bool = True
    """A setting of CUDA's allocator; set PYTORCH_CUDA_ALLOC_CONF instead."""
    reweight_temperature: float | tuple[float, ...] | None = None
    """Exponent of the weights, a number or one per level; 1 keeps them, 0 makes them equal."""
    multi_config: bool = False
    """Take every sub-section for a loader of its own."""
    sampler_fusion: Literal["round_robin", "randomized_round_robin", "zip"] = "round_robin"
    """How the loaders of `multi_config` take turns."""
    sampler_weights: Any = None
    """Weights of the loaders of `multi_config`."""
    use_packed_sequence_sampling: bool = False
    """Pack samples into sequences of at most `batch_tokens`."""

    # Tokens and filters
    pretokenize: bool = True
    """Tokenise before batches are made."""
    prompt_format: str | None = None
    """Name of a prompt formatter."""
    use_multimodal_sampling: bool = False
    """Measure samples in tokens."""
    audio_locator_tag: str | None = None
    """Token that stands for audio in a text."""
    token_equivalent_duration: float | None = None
    """Seconds of audio that count as one token."""
    audio_token_estimator: Any = None
    """Sample-exact length of audio in tokens."""
    batch_tokens: int | None = None
    """Most tokens of a batch."""
    quadratic_factor: float | None = None
    """Length in tokens that counts double."""
    cut_text_into_windows_tokens: int | None = None
    """Split texts into windows of so many tokens."""
    min_duration: float | None = -1.0
    """Shortest sample that is kept, seconds, inclusive."""
    max_duration: float | None = float("inf")
    """Longest sample that is kept, seconds, inclusive."""
    min_tps: float | None = -1.0
    """Fewest tokens a second of a sample that is kept."""
    max_tps: float | tuple[float, ...] | None = float("inf")
    """Most tokens a second of a sample that is kept; a list gives one per bucket."""
    min_tokens: float | None = None
    """Fewest tokens of a text or conversation that is kept, inclusive."""
    max_tokens: float | None = None
    """Most tokens of a text or conversation that is kept, inclusive."""
    measure_total_length: bool = True
    """Count all of a sample into its length in tokens; what stands before the answer if false."""
    min_tpt: float | None = -1.0
    """Least ratio of output to input tokens."""
    max_tpt: float | tuple[float, ...] | None = float("inf")
    """Greatest ratio of output to input tokens."""
    max_cer: float | None = float("inf")
    """Greatest character error rate that is kept."""
    min_context_speaker_similarity: float | None = -1.0
    """Least similarity of speakers that is kept."""
    excluded_speaker_ids: Any = None
    """Speakers that are held out."""
    speaker_filter_fields: tuple[str, ...] | None = None
    """Fields that `excluded_speaker_ids` looks at."""
    keep: str | None = "pass"
    """Value of `validation_status` that is kept; null keeps all."""

    # Loading
    shuffle: bool = False
    """Permute; declared order if false."""
    sample_rate: int = 16000
    """Hz that all audio is resampled to."""
    seed: int | str = 0
    """An integer, or `trng` or `randomized` for one that is drawn at the start and kept."""
    num_workers: int = 0
    """Worker processes; they do not enter the order."""
    pin_memory: bool = False
    """Copy tensors to page-locked memory."""
    channel_selector: int | str | None = None
    """Channel to use, or the row's key that holds its number."""
    text_field: str = "text"
    """Row's key of the transcript."""
    lang_field: str = "lang"
    """Row's key of the language."""
    metadata_only: bool = False
    """Give rows without audio, one pass of them."""
    force_finite: bool = False
    """One pass, without repetition."""
    force_map_dataset: bool = False
    """Kind of dataset elsewhere; there is one kind here."""
    force_iterable_dataset: bool = False
    """Kind of dataset elsewhere; there is one kind here."""
    slice_length: int | None = None
    """Take a slice of so many samples of every shard."""
    ais_batch_prefetch_buffer_size: int = 10
    """Nothing; an old key."""
    use_ais_get_batch: bool = False
    """Nothing; an old key."""

    # Indexes and resume
    indexed: bool | None = None
    """Demand `.idx` files or a pack (true); find offsets on the spot otherwise."""
    indexes_root: str | None = None
    """Folder of `.idx` files and packs; beside the data and in the user's cache if not given."""
    index_pack_root: str | None = None
    """Folder that `index_pack` is relative to."""
    index_pack_max_open_files: int = 32
    """Open files of a pack; packs are mapped here."""
    index_pack: str | None = None
    """A pack to use as it is declared."""
    use_stateful_dataloader: bool | None = None
    """Whether a checkpoint is wanted; the loader always has one."""
    input_sampling_rate: int | None = None
    """Hz of sources whose rows do not say it."""

    # Augmentation
    noise_path: Any = None
    """Noise to mix in."""
    noise_snr: tuple[float, ...] = (10.0, 20.0)
    """Range of the signal-to-noise ratio, dB."""
    noise_mix_prob: float = 0.5
    """Probability of mixing noise in."""
    perturb_speed: bool = False
    """Change the speed by 0.9 or 1.1."""
    concatenate_samples: bool = False
    """Join short samples of a batch."""
    concatenate_gap_seconds: float = 0.1
    """Silence between joined samples, seconds."""
    concatenate_duration_factor: float = 1.0
    """Longest joined sample, as a multiple of the longest of the batch."""
    concatenate_merge_supervisions: bool = True
    """Join the transcripts too."""
    db_norm: float | None = -25.0
    """Loudness of joined samples, dB."""
    truncate_duration: float | None = None
    """Cut samples to at most so many seconds."""
    truncate_offset_type: Literal["random", "start", "end"] = "random"
    """Where a truncated sample begins: `random`, `start` or `end`."""
    cut_into_windows_duration: float | None = None
    """Split samples into windows of so many seconds."""
    cut_into_windows_hop: float | None = None
    """Seconds from window to window."""
    keep_excessive_supervisions: bool = True
    """Keep transcripts that a window cuts through."""
    clipping_enabled: bool = False
    """Clip samples."""
    clipping_gain_db: tuple[float, ...] = (0.0, 24.0)
    """Range of the gain before clipping, dB."""
    clipping_normalize: bool = True
    """Normalise after clipping."""
    clipping_oversampling: int | None = 2
    """Oversampling while clipping."""
    clipping_prob: float = 0.5
    """Probability of clipping."""
    clipping_prob_hard: float = 0.5
    """Probability that clipping is hard."""
    rir_enabled: bool = False
    """Add reverberation."""
    rir_path: Any = None
    """Room impulse responses."""
    rir_prob: float = 0.5
    """Probability of reverberation."""
    pad_min_duration: float | None = None
    """Pad samples to at least so many seconds."""
    pad_direction: Literal["left", "right", "both", "random"] = "right"
    """Where padding goes: `left`, `right`, `both` or `random`."""
    lowpass_enabled: bool = False
    """Filter high frequencies out."""
    lowpass_frequencies_interval: tuple[float, ...] = (3500.0, 8000.0)
    """Range of the cut-off frequency, Hz."""
    lowpass_prob: float = 0.5
    """Probability of the low-pass filter."""
    compression_enabled: bool = False
    """Code samples with a lossy codec and back."""
    compression_prob: float = 0.5
    """Probability of compression."""
    compression_level_interval: tuple[float, ...] = (0.8, 0.99)
    """Range of the level of compression, 0 best to 1 worst."""
    compression_codecs: tuple[str, ...] = ("opus",)
    """Codecs to choose from."""
    compression_codec_weights: tuple[float, ...] | None = None
    """Weights of the codecs."""
    compression_enable_for_custom_fields: bool = False
    """Compress custom recordings too."""

    # Playhead's own
    micro_batches_per_step: int | None = None
    """Micro-batches of an optimizer step over all ranks, G; the world size if not given."""
    oversize: Literal["alone", "drop", "error"] = "alone"
    """A sample above the limit: `alone` in its batch, `drop`, or `error`."""
    locality: Literal["rows", "shards"] | None = None
    """Permute `rows`, or groups of `shards` that are read end to end; by storage if not given."""
    cache_bytes: int = 64 * _GIB
    """Most bytes that shards may take on a disk of each machine where locality is `shards`."""
    cache_dir: str | None = None
    """Folder of these shards, on a disk of each machine; in the user's cache if not given."""
    window_draws: int | None = None
    """Draws that are planned at a time; enough for about 100 steps if not given."""
    auto_index: bool = False
    """Build missing packs however long it takes."""
    bad_samples: str | None = "bad_samples.jsonl"
    """File that lists the samples which `fault_tolerant_audio_loading` drops."""
    info: bool = False
    """Add `batch["playhead"]` to the batches of any dataset that makes mappings."""
    on_change: Literal["error", "restart_pass"] = "error"
    """A leaf whose data changed, on resume: `error`, or `restart_pass`."""
    prefetch_factor: int = 2
    """Batches that each worker has in hand ahead of time."""
    multiprocessing_context: Literal["fork", "spawn", "forkserver"] | None = None
    """How workers start: `fork`, `spawn` or `forkserver`; the platform's way if not given."""
