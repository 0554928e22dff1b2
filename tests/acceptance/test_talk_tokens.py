"""How long texts and conversations are, which of them are kept, and what batches may hold."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import playhead
from support.talk import section, write_voice
from support.told import (
    Facts,
    Words,
    batches_of,
    conversations,
    pair,
    plain,
    said,
    spoken,
    token_section,
    told,
)

pytestmark = pytest.mark.filterwarnings("ignore:a pass that ends takes every sample once")


def test_durations_are_those_of_all_audio_of_a_conversation(talk):
    """Texts pass, whatever the bounds are."""
    entries = [talk["multimodal_conversation"], talk["nemo_sft_jsonl"]]
    everything = told(token_section(*entries, shuffle=False), Words())
    kept = told(token_section(*entries, min_duration=0.7, max_duration=1.6), Words())

    def seconds(one: Facts) -> float:
        return sum(turn["duration"] for turn in one["turns"] if "audio" in turn)

    expected = [
        one for one in everything if seconds(one) == 0 or 0.7 <= round(seconds(one), 6) <= 1.6
    ]
    assert kept == expected
    assert 0 < len(kept) < len(everything)
    assert sum(seconds(one) == 0 for one in kept) >= 12


TEXTS = [["a"], ["a b c"], ["a b c d e f g h"]]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"min_tokens": 4, "max_tokens": 8}, {2, 3, 5}),
        ({"min_tokens": 2, "max_tokens": 4, "measure_total_length": False}, {3, 4}),
        ({"min_tpt": 2}, {1, 2, 5}),
        ({"max_tpt": 0.5}, {4, 6}),
    ],
)
def test_numbers_of_tokens(tmp_path, options, kept):
    """Sources and targets of 1, 3 and 8 words."""
    sizes = [(1, 1), (1, 3), (1, 8), (3, 1), (3, 3), (3, 8), (8, 1), (8, 3)]
    del kept
    lines = [(" ".join(["a"] * one), " ".join(["b"] * two)) for one, two in sizes]
    entry = pair(tmp_path, [[one for one, _ in lines]], [[two for _, two in lines]])
    total = options.get("measure_total_length", True)
    expected = [
        (one, two)
        for one, two in sizes
        if options.get("min_tokens", 0) <= (one + two if total else one)
        and (one + two if total else one) <= options.get("max_tokens", 99)
        and two / one >= options.get("min_tpt", 0)
        and two / one <= options.get("max_tpt", 99)
    ]
    found = plain(entry, **options)
    assert [(one["input_length"], one["output_length"]) for one in found] == expected
    assert 0 < len(expected) < len(sizes)


@pytest.mark.parametrize(
    "options", [{"min_tokens": 10_000}, {"max_tokens": 1}, {"min_tpt": 99}, {"max_tpt": 0.001}]
)
def test_filters_that_nothing_passes(talk, options):
    """Not an empty loader in silence."""
    with pytest.raises(playhead.PlanError, match=r"[Nn]o row of any leaf"):
        plain(talk["share_gpt"], **options)


def test_bounds_of_tokens_leave_cuts_alone(talk):
    cut = {"type": "lhotse", "cuts_path": talk["lhotse_as_conversation"]["cuts_path"]}
    assert len(plain(cut, min_tokens=10_000)) == 10


def test_prompts_are_needed_for_conversations(talk):
    config = section(talk["share_gpt"], use_multimodal_sampling=True)
    with pytest.raises(playhead.PlayheadError, match="prompt_format"):
        told(config, Words())


@pytest.mark.parametrize("quadratic", [None, 200.0])
@pytest.mark.parametrize("total", [True, False])
def test_no_batch_is_over_its_tokens(talk, quadratic, total):
    names = ["txt_pair", "multimodal_conversation", "share_gpt, tars", "lhotse_as_conversation"]
    config = token_section(
        *(talk[name] for name in names),
        shuffle=True,
        batch_size=None,
        batch_tokens=400,
        quadratic_factor=quadratic,
        measure_total_length=total,
        micro_batches_per_step=1,
    )
    batches = batches_of(config, Words())
    assert sum(map(len, batches)) == 40
    assert max(map(len, batches)) > 3
    name = "total_length" if total else "input_length"
    for batch in batches:
        lengths = np.array([one[name] for one in batch], dtype=float)
        costs = lengths + (0 if quadratic is None else lengths**2 / quadratic)
        assert len(batch) == 1 or len(batch) * costs.max() <= 400
        assert all(one["input_ids"] and one["context_ids"] is not None for one in batch)
        assert all(one["answer_ids"] and any(one["mask"]) for one in batch)


def test_packed_batches_are_full_and_never_over(tmp_path):
    rng = np.random.default_rng(0)
    lines = [" ".join(["a"] * n) for n in rng.integers(1, 60, 600).tolist()]
    entry = pair(tmp_path, [lines], [["b"] * len(lines)])
    options = {"use_packed_sequence_sampling": True, "batch_size": None, "batch_tokens": 300}
    config = token_section(
        entry,
        prompt_format="plain",
        shuffle=True,
        audio_token_estimator=ESTIMATOR,
        **options,
    )
    batches = batches_of(config, Words())
    sums = [sum(one["total_length"] for one in batch) for batch in batches]
    assert sum(map(len, batches)) == 600
    assert max(sums) <= 300
    assert sum(sums) >= 0.98 * 300 * len(sums)
    with pytest.raises(playhead.PlayheadError, match="max_tokens"):
        batches_of({**config, "batch_tokens": 50}, Words())


ESTIMATOR = {
    "preprocessor": {"n_fft": 512, "hop_length": 160, "stft_pad_amount": 256},
    "subsampling": [{"kernel_size": 3, "stride": 2, "padding": 1, "repeat": 3}],
}


@pytest.mark.parametrize(("chunk", "tokens"), [(None, 375), (15.0, 376)])
def test_tokens_of_audio_by_the_sample(tmp_path, chunk, tokens):
    """3,000 frames are 375 after three strides of two; twice 1,500 are 2 * 188."""
    write_voice(tmp_path / "v.wav", 1, 30.0)
    row = {"id": "a", "conversations": [spoken("v.wav", 30.0), said("x", "Assistant")]}
    estimator = ESTIMATOR | ({} if chunk is None else {"chunk_size_seconds": chunk})
    (found,) = plain(conversations(tmp_path, [row]), audio_token_estimator=estimator)
    assert found["total_length"] == tokens + 1


@pytest.mark.parametrize("fusion", ["zip", "round_robin", "randomized_round_robin"])
def test_batches_of_several_configs(talk, fusion):
    text, talks = (
        {
            key: value
            for key, value in token_section(talk[form], prompt_format="plain").items()
            if key not in {"force_finite", "shuffle", "seed", "batch_size"}
        }
        for form in ("txt_pair", "share_gpt")
    )
    config = {
        "multi_config": True,
        "force_finite": False,
        "sampler_fusion": fusion,
        "seed": 3,
        "shard_seed": 3,
        "shuffle": True,
        "text": {**text, "batch_tokens": 200},
        "talks": {**talks, "batch_tokens": 300},
    }
    if fusion == "randomized_round_robin":
        config["sampler_weights"] = {"text": 0.7, "talks": 0.3}
    loader = playhead.dataloader(config, tokenizer=Words(), dataset=_Kinds())
    found = [batch for batch, _ in zip(loader, range(200), strict=False)]
    if fusion == "zip":
        assert all(kinds == {"text", "talks"} for kinds, _ in found)
        assert all(tokens <= 500 for _, tokens in found)
        return
    assert all(len(kinds) == 1 for kinds, _ in found)
    names = [min(kinds) for kinds, _ in found]
    if fusion == "round_robin":
        assert all(one != two for one, two in pairwise(names))
    else:
        assert names.count("text") == pytest.approx(140, abs=30)


class _Kinds:
    """Which kinds a batch has, and the tokens of both kinds as they are padded."""

    def __getitem__(self, samples: Any) -> tuple[set[str], int]:
        found: dict[str, list[int]] = {}
        for one in samples:
            kind = "text" if hasattr(one, "source") else "talks"
            found.setdefault(kind, []).append(one.total_length)
        return set(found), sum(len(lengths) * max(lengths) for lengths in found.values())
