from __future__ import annotations

import math
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import STATUS, UNITS, Options, Spot, read_options
from playhead.config.keys import nearest
from playhead.errors import ConfigError, UnknownOptionError
from support.options_table import PAGE, page_with_table

WHERE = Spot("train.yaml", ("model", "train_ds"))
NAMES = frozenset(field.name for field in fields(Options))

# Name and default of every option of NeMo's `LhotseDataLoadingConfig` and its main line.
NEMO = {
    "input_cfg": None,
    "manifest_filepath": None,
    "tarred_audio_filepaths": None,
    "cuts_path": None,
    "shar_path": None,
    "skip_missing_manifest_entries": False,
    "tarred_random_access": False,
    "fault_tolerant_audio_loading": None,  # true there
    "batch_size": None,
    "batch_duration": None,
    "quadratic_duration": None,
    "use_bucketing": False,
    "bucket_batch_size": None,
    "num_buckets": 30,
    "num_cuts_for_bins_estimate": 10000,
    "bucket_duration_bins": None,
    "bucket_buffer_size": 10000,
    "concurrent_bucketing": True,
    "bucketing_2d_strict_mode": True,
    "shuffle_buffer_size": 10000,
    "drop_last": False,
    "shard_seed": "trng",
    "max_open_streams": None,
    "cuda_expandable_segments": True,
    "reweight_temperature": None,
    "multi_config": False,
    "sampler_fusion": "round_robin",
    "sampler_weights": None,
    "use_packed_sequence_sampling": False,
    "pretokenize": True,
    "prompt_format": None,
    "use_multimodal_sampling": False,
    "audio_locator_tag": None,
    "token_equivalent_duration": None,
    "audio_token_estimator": None,
    "batch_tokens": None,
    "quadratic_factor": None,
    "cut_text_into_windows_tokens": None,
    "min_duration": -1,
    "max_duration": math.inf,
    "min_tps": -1,
    "max_tps": math.inf,
    "min_tokens": None,
    "max_tokens": None,
    "measure_total_length": True,
    "min_tpt": -1,
    "max_tpt": math.inf,
    "max_cer": math.inf,
    "min_context_speaker_similarity": -1,
    "excluded_speaker_ids": None,
    "speaker_filter_fields": None,
    "keep": "pass",
    "shuffle": False,
    "sample_rate": 16000,
    "seed": 0,
    "num_workers": 0,
    "pin_memory": False,
    "channel_selector": None,
    "text_field": "text",
    "lang_field": "lang",
    "metadata_only": False,
    "force_finite": False,
    "force_map_dataset": False,
    "force_iterable_dataset": False,
    "slice_length": None,
    "ais_batch_prefetch_buffer_size": 10,
    "use_ais_get_batch": False,
    "indexed": None,
    "indexes_root": None,
    "index_pack_root": None,
    "index_pack_max_open_files": 32,
    "index_pack": None,
    "use_stateful_dataloader": None,  # false there
    "input_sampling_rate": None,
    "noise_path": None,
    "noise_snr": (10.0, 20.0),
    "noise_mix_prob": 0.5,
    "perturb_speed": False,
    "concatenate_samples": False,
    "concatenate_gap_seconds": 0.1,
    "concatenate_duration_factor": 1.0,
    "concatenate_merge_supervisions": True,
    "db_norm": -25.0,
    "truncate_duration": None,
    "truncate_offset_type": "random",
    "cut_into_windows_duration": None,
    "cut_into_windows_hop": None,
    "keep_excessive_supervisions": True,
    "clipping_enabled": False,
    "clipping_gain_db": (0.0, 24.0),
    "clipping_normalize": True,
    "clipping_oversampling": 2,
    "clipping_prob": 0.5,
    "clipping_prob_hard": 0.5,
    "rir_enabled": False,
    "rir_path": None,
    "rir_prob": 0.5,
    "pad_min_duration": None,
    "pad_direction": "right",
    "lowpass_enabled": False,
    "lowpass_frequencies_interval": (3500.0, 8000.0),
    "lowpass_prob": 0.5,
    "compression_enabled": False,
    "compression_prob": 0.5,
    "compression_level_interval": (0.8, 0.99),
    "compression_codecs": ("opus",),
    "compression_codec_weights": None,
    "compression_enable_for_custom_fields": False,
}
OURS = {
    "bad_samples": "bad_samples.jsonl",
    "micro_batches_per_step": None,
    "oversize": "alone",
    "locality": None,
    "cache_bytes": 64 * 2**30,
    "cache_dir": None,
    "window_draws": None,
    "auto_index": False,
    "info": False,
    "on_change": "error",
    "prefetch_factor": 2,
    "multiprocessing_context": None,
}


def read(*, strict: bool = False, **section) -> Options:
    return read_options(section, where=WHERE, strict=strict, notes=[])


def notes_of(**section) -> list[str]:
    notes: list[str] = []
    read_options(section, where=WHERE, strict=False, notes=notes)
    return notes


def test_every_option_has_nemos_name_and_default():
    assert {field.name: field.default for field in fields(Options)} == {**NEMO, **OURS}
    assert read() == Options()


def test_every_option_has_a_status_and_units_belong_to_options():
    assert STATUS.keys() == NAMES
    assert UNITS.keys() <= NAMES


def test_the_page_shows_every_option():
    assert PAGE.read_text() == page_with_table(), "run python tests/support/options_table.py"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("batch_size", 2.0, 2),
        ("batch_size", "8", 8),
        ("batch_duration", 600, 600.0),
        ("batch_duration", "1e2", 100.0),
        ("bucket_duration_bins", [1, "2.5", 3.0], (1.0, 2.5, 3.0)),
        ("min_duration", None, None),
        ("max_duration", ".5", 0.5),
        ("max_duration", math.inf, math.inf),
        ("shuffle", "true", True),
        ("shuffle", "No", False),
        ("pin_memory", 1, True),
        ("seed", "trng", "trng"),
        ("seed", "17", 17),
        ("seed", -3, -3),
        ("shard_seed", "randomized", "randomized"),
        ("channel_selector", 1, 1),
        ("channel_selector", "which", "which"),
        ("reweight_temperature", 0.5, 0.5),
        ("reweight_temperature", [1, 0.5], (1.0, 0.5)),
        ("oversize", "drop", "drop"),
        ("locality", None, None),
        ("num_workers", 0, 0),
        ("cache_bytes", 2**70, 2**70),
        ("noise_snr", [5, 10, 15], (5.0, 10.0, 15.0)),
    ],
)
def test_values_that_can_be_read(name, value, expected):
    found = getattr(read(**{name: value}), name)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("batch_size", 2.5, "`batch_size` is 2.5, and has to be a whole number"),
        ("batch_size", 0, "`batch_size` is 0, and has to be at least 1"),
        ("batch_size", True, "has to be a whole number"),
        ("batch_size", math.inf, "has to be a whole number"),
        ("batch_duration", "long", "`batch_duration` is 'long', and has to be a number"),
        ("batch_duration", 0, "has to be a number above 0"),
        ("batch_duration", math.inf, "has to be a number above 0"),
        ("batch_duration", math.nan, "has to be a number"),
        ("batch_duration", [600], "has to be a number"),
        ("quadratic_duration", -1, "has to be a number above 0"),
        ("num_workers", -1, "has to be at least 0"),
        ("num_buckets", None, "`num_buckets` is null, and has to be a whole number"),
        ("shuffle", "maybe", "has to be true or false"),
        ("shuffle", 2, "has to be true or false"),
        ("text_field", 5, "has to be a text"),
        ("text_field", None, "`text_field` is null, and has to be a text"),
        ("seed", "random", "has to be a whole number, trng or randomized"),
        ("seed", 1.5, "has to be a whole number or a text"),
        ("seed", None, "`seed` is null"),
        ("oversize", "keep", "has to be one of alone, drop, error"),
        ("on_change", "ignore", "one of error, restart_pass"),
        ("multiprocessing_context", "thread", "one of fork, spawn, forkserver"),
        ("reweight_temperature", -1, "has to be at least 0"),
        ("reweight_temperature", [1, -1], "has to be at least 0"),
        ("reweight_temperature", math.inf, "has to be at least 0"),
        ("bucket_duration_bins", 5, "has to be a list, each item a number"),
        ("bucket_duration_bins", [0, 1], "has to be a number above 0"),
        ("bucket_duration_bins", [2, 1], "which is not ascending"),
        ("bucket_duration_bins", [1, 1], "which is not ascending"),
        ("bucket_duration_bins", [], "which is not ascending"),
        ("min_duration", math.inf, "a finite number"),
        ("max_duration", -math.inf, "a finite number"),
        ("sample_rate", 0, "has to be at least 1"),
        ("window_draws", 0, "has to be at least 1"),
    ],
)
def test_values_that_cannot_be_used_are_named_with_their_place(name, value, said):
    with pytest.raises(ConfigError) as caught:
        read(**{name: value})
    message = str(caught.value)
    assert said in message
    assert f"(train.yaml: model.train_ds.{name})" in message


def test_an_impossible_value_says_the_default():
    with pytest.raises(ConfigError, match="leave it out for its default, 30"):
        read(num_buckets=0)
    with pytest.raises(ConfigError, match="leave it out for its default, none"):
        read(batch_size=0)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"bucket_batch_size": [2, 1]}, "given without `bucket_duration_bins`"),
        (
            {"bucket_batch_size": [3, 2, 1], "bucket_duration_bins": [1, 2]},
            "`bucket_batch_size` has 3 numbers and `bucket_duration_bins` 2",
        ),
        (
            {"bucket_batch_size": [1, 2], "bucket_duration_bins": [1, 2]},
            "which grows with the length",
        ),
        ({"bucket_batch_size": [], "bucket_duration_bins": [1]}, "has 0 numbers"),
        ({"min_duration": 3, "max_duration": 2}, "`min_duration` 3.0 is above `max_duration` 2.0"),
        ({"min_tokens": 3, "max_tokens": 2}, "`min_tokens` 3.0 is above `max_tokens` 2.0"),
        ({"min_tpt": 3, "max_tpt": 2}, "`min_tpt` 3.0 is above `max_tpt` 2.0"),
        ({"use_packed_sequence_sampling": True}, "nothing measures or limits these"),
        (
            {"use_packed_sequence_sampling": True, "use_multimodal_sampling": True},
            "Set use_multimodal_sampling: true and batch_tokens",
        ),
    ],
)
def test_options_that_contradict_each_other(section, said):
    with pytest.raises(ConfigError, match=said):
        read(**section)


def test_bins_or_sizes_switch_bucketing_on():
    bins = {"bucket_duration_bins": [1, 2]}
    assert read(**bins).use_bucketing
    assert read(**bins, bucket_batch_size=[4, 4], use_bucketing=False).use_bucketing
    assert not read(num_buckets=5).use_bucketing


def test_nothing_of_nemos_is_refused():
    assert {status.value for status in STATUS.values()} == {"works", "no meaning here"}


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"batch_tokens": 100}, "batch_tokens: no effect without use_multimodal_sampling"),
        (
            {"quadratic_factor": 50, "cut_text_into_windows_tokens": 9},
            "quadratic_factor and cut_text_into_windows_tokens: no effect without",
        ),
        (
            {"use_multimodal_sampling": True, "batch_tokens": 9, "batch_duration": 20},
            "batch_duration: no effect with use_multimodal_sampling",
        ),
        ({"max_tpt": [1, 2]}, "max_tpt is a list, which has no effect without bucket_batch_size"),
        (
            {"audio_token_estimator": {"x": 1}, "measure_total_length": False},
            "audio_token_estimator and measure_total_length: no effect as nothing is measured in",
        ),
        (
            {
                "use_multimodal_sampling": True,
                "use_packed_sequence_sampling": True,
                "batch_tokens": 9,
                "num_buckets": 3,
            },
            "num_buckets: no effect with use_packed_sequence_sampling",
        ),
    ],
)
def test_lengths_that_count_for_nothing_are_said(section, said):
    (note,) = notes_of(**section)
    assert said in note


@pytest.mark.parametrize(
    "section",
    [
        {"perturb_speed": "false"},
        {"fault_tolerant_audio_loading": False},
        {"min_tps": 0},
        {"min_tps": None},
        {"max_tps": None},
        {"min_tokens": 0},
        {"max_tokens": math.inf},
        {"excluded_speaker_ids": []},
        {"db_norm": -20, "noise_mix_prob": 0.3, "rir_prob": 0.1, "noise_snr": [0, 5]},
        {"sampler_weights": {"a": 1}, "sampler_fusion": "zip"},
        {"bucketing_2d_strict_mode": False, "token_equivalent_duration": 0.08},
    ],
)
def test_values_and_details_that_switch_nothing_on(section):
    assert notes_of(**section) == []


def test_two_dimensional_bins():
    bins = [[5, 10], [5, 20], [10, 20]]
    options = read(bucket_duration_bins=bins, bucket_batch_size=[8, 4, 2], max_tps=[9, 9, 8.5])
    assert options.bucket_duration_bins == ((5.0, 10.0), (5.0, 20.0), (10.0, 20.0))
    assert options.use_bucketing
    assert options.max_tps == (9.0, 9.0, 8.5)
    with pytest.raises(ConfigError, match="not ascending"):
        read(bucket_duration_bins=[[5, 20], [5, 10]], bucket_batch_size=[8, 4])
    with pytest.raises(ConfigError, match="3 numbers and `bucket_duration_bins` 2"):
        read(bucket_duration_bins=bins[:2], bucket_batch_size=[8, 4, 2])
    for wrong in ([[5, 10], 20], [[5, 10, 3], [6, 11, 3]], [[5], [6]], [[5, 0], [6, 1]]):
        with pytest.raises(ConfigError, match="bucket_duration_bins"):
            read(bucket_duration_bins=wrong, bucket_batch_size=[8, 4])


def test_options_without_a_meaning_are_said_once():
    said = "options of train.yaml: model.train_ds that have no meaning here: "
    assert notes_of(concurrent_bucketing=False, shard_seed=3, batch_size=2) == [
        said + "concurrent_bucketing, shard_seed"
    ]


def test_no_checkpoint_is_said():
    assert "a checkpoint will not be offered" in notes_of(use_stateful_dataloader=False)[0]
    assert notes_of(use_stateful_dataloader=True) == []
    assert read().use_stateful_dataloader is None


def test_samples_without_a_size_are_said():
    sizes = {"bucket_duration_bins": [1, 2.5], "bucket_batch_size": [2, 1]}
    assert "longer than the last of bucket_duration_bins, 2.5 s" in notes_of(**sizes)[0]
    assert notes_of(**sizes, max_duration=2.5) == []


def test_what_was_left_to_fill_in_is_no_value():
    assert read(manifest_filepath="???", batch_size="???") == Options()


def test_unknown_keys_are_said_once():
    assert notes_of(use_lhotse=True, trim_silence=False, labels=["a"]) == [
        "keys of train.yaml: model.train_ds that mean nothing here: trim_silence, labels"
    ]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("batch_duratoin", "batch_duration"),
        ("batchsize", "batch_size"),
        ("bucket_batch_sizes", "bucket_batch_size"),
        ("tarred_audio_filepath", "tarred_audio_filepaths"),
        ("manifest_filepaths", "manifest_filepath"),
        ("manifest_path", "manifest_filepath"),
        ("cut_path", "cuts_path"),
        ("num_worker", "num_workers"),
        ("shufle", "shuffle"),
        ("sede", "seed"),
        ("use_multimodal_dataloading", "use_multimodal_sampling"),
        ("duration_bins", "bucket_duration_bins"),
        ("temperature", "reweight_temperature"),
        ("samplerate", "sample_rate"),
    ],
)
def test_slips_are_errors_that_name_what_was_meant(key, meant):
    with pytest.raises(UnknownOptionError) as caught:
        read(**{key: 1})
    assert f"the key `{key}` is not known, but `{meant}` is" in str(caught.value).lower()
    assert f"(train.yaml: model.train_ds.{key})" in str(caught.value)


# Keys of NeMo's other dataloaders, and what people write beside a section's options.
OTHERS_KEYS = [
    "augmentor",
    "bucketing_batch_size",
    "bucketing_strategy",
    "bucketing_weights",
    "cache_audio",
    "concat_sampling_probabilities",
    "concat_sampling_technique",
    "dataloader_type",
    "dataset",
    "defer_setup",
    "do_lowercase",
    "do_normalize",
    "global_rank",
    "id",
    "int_values",
    "is_concat",
    "is_tarred",
    "labels",
    "load_audio",
    "max_utts",
    "normalize",
    "normalize_transcripts",
    "parser",
    "pad_id",
    "question_file_set",
    "return_sample_id",
    "shuffle_n",
    "tarred_shard_strategy",
    "tokenizer",
    "trim",
    "trim_silence",
    "use_dali",
    "use_start_end_token",
    "vocab",
    "window_stride",
    "world_size",
]


def test_keys_of_others_are_not_taken_for_slips():
    assert {key: nearest(key, NAMES) for key in OTHERS_KEYS} == dict.fromkeys(OTHERS_KEYS)


def test_strict_names_all_unknown_keys():
    with pytest.raises(UnknownOptionError, match="The keys `one`, `another` are not known"):
        read(strict=True, one=1, another=2, batch_size=1)
    assert read(strict=True, use_lhotse=True, batch_size=1).batch_size == 1


@given(st.sampled_from(sorted(NAMES)), st.integers(0, 60), st.sampled_from("abz_"))
def test_one_wrong_letter_is_always_a_slip(name, place, letter):
    place %= len(name)
    slip = name[:place] + letter + name[place + 1 :]
    found = nearest(slip, NAMES)
    assert slip in NAMES or found is not None
    left_out = name[:place] + name[place + 1 :]
    assert left_out in NAMES or nearest(left_out, NAMES) is not None


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("batch_duration", 1e18, "from 0.001 to 1,000,000,000 seconds"),
        ("batch_duration", 1e-9, "from 0.001 to 1,000,000,000 seconds"),
        ("quadratic_duration", 1e15, "from 0.001 to 1,000,000,000 seconds"),
        ("max_duration", -1, "from 0.0 to 1,000,000,000 seconds"),
        ("min_duration", 1e12, "at most 1,000,000,000"),
        ("micro_batches_per_step", 10**9, "at most 131,072"),
        ("window_draws", 10**12, "at most 100,000,000"),
        ("num_workers", 10**6, "at most 4,096"),
    ],
)
def test_numbers_that_no_machine_could_work_with_are_refused(name, value, wanted):
    """A typo of some zeros would fill a node's memory, or overflow in the middle of a plan."""
    with pytest.raises(ConfigError, match=f"`{name}` is .*, and has to be {wanted}"):
        read_options({name: value}, where=Spot("blend.yaml"), strict=False, notes=[])


def test_a_default_of_0_is_not_called_false():
    with pytest.raises(ConfigError, match="leave it out for its default, 0"):
        read_options({"num_workers": -1}, where=Spot("blend.yaml"), strict=False, notes=[])


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"max_tps": [9, 9]}, "max_tps is a list, which has no effect without bucket_batch_size"),
        (
            {
                "bucket_duration_bins": [[1, 5], [2, 9]],
                "bucket_batch_size": [4, 2],
                "max_tps": [9, 9],
                "max_duration": 2,
                "bucketing_2d_strict_mode": False,
            },
            "max_tps is a list, which has no effect in lenient bins",
        ),
        ({"cut_into_windows_hop": 1}, "no effect without cut_into_windows_duration"),
        (
            {"cut_into_windows_duration": 1, "cut_into_windows_hop": 2},
            "the hop of 2 s leaves out audio between windows of 1 s",
        ),
        ({"rir_path": "rirs.jsonl"}, "rir_path has no effect without rir_enabled"),
    ],
)
def test_options_that_have_no_effect_are_said(section, said):
    assert any(said in note for note in notes_of(**section))
