"""Which samples filters keep: by length, tokens, what rows say of themselves, and 2-D bins."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

import playhead
from playhead.datasets import Ids
from support.corpus import write_jsonl


class Letters:
    """A token for each letter."""

    digest = "letters"

    def encode(self, text: str) -> list[int]:
        return list(text.encode())


@pytest.fixture
def kept(tmp_path):
    """What a pass hands out of rows that are given by name, and what it says of the others."""

    def read(rows: dict[str, dict], **options):
        made = [{"audio_filepath": name, "duration": 1.0, **row} for name, row in rows.items()]
        manifest = write_jsonl(tmp_path / "manifest.json", made)
        config = {"manifest_filepath": str(manifest), "batch_size": 4, "force_finite": True}
        tokenizer = Letters() if any("t" in str(row.get("text", "")) for row in made) else None
        tokenizer = options.pop("tokenizer", tokenizer)
        loader = playhead.dataloader({**config, **options}, dataset=Ids(), tokenizer=tokenizer)
        found = [Path(name).stem for batch in loader for name in batch["ids"]]
        return sorted(found), loader.report().leaves[0].refused

    return read


def test_lengths_within_both_bounds(kept):
    rows = {"a": 0.5, "b": 1.0, "c": 1.5, "d": 2.0, "e": 2.5}
    found, refused = kept(
        {name: {"duration": seconds} for name, seconds in rows.items()},
        min_duration=1.0,
        max_duration=2.0,
    )
    assert found == ["b", "c", "d"]
    assert refused == {"min_duration": 1, "max_duration": 1}


def spoken(letters: int, seconds: float) -> dict:
    return {"text": "t" * letters, "duration": seconds}


def test_tokens_per_second_within_both_bounds(kept):
    rows = {
        "slow": spoken(4, 4.0),
        "least": spoken(4, 2.0),
        "most": spoken(12, 2.0),
        "fast": spoken(13, 2.0),
    }
    found, refused = kept(rows, min_tps=2.0, max_tps=6.0)
    assert found == ["least", "most"]
    assert refused == {"min_tps": 1, "max_tps": 1}


def test_a_bound_of_tokens_without_a_tokenizer_is_said_to_have_no_effect(kept):
    with pytest.warns(UserWarning, match="no effect, as there is no tokenizer"):
        found, refused = kept({"a": spoken(4, 1.0)}, min_tps=9.0, tokenizer=None)
    assert (found, refused) == (["a"], {})


def test_error_rates_up_to_a_bound(kept):
    rows = {"low": {"cer": 2.0}, "equal": {"cer": 5.0}, "high": {"cer": 5.5}, "unknown": {}}
    found, refused = kept(rows, max_cer=5.0)
    assert found == ["equal", "low", "unknown"]
    assert refused == {"max_cer": 1}


def test_similarities_from_a_bound_on(kept):
    rows = {
        "low": {"context_speaker_similarity": 0.5},
        "equal": {"context_speaker_similarity": 0.6},
        "high": {"context_speaker_similarity": 0.9},
        "unknown": {},
    }
    found, refused = kept(rows, min_context_speaker_similarity=0.6)
    assert found == ["equal", "high", "unknown"]
    assert refused == {"min_context_speaker_similarity": 1}


def test_a_status_other_than_what_is_kept(kept):
    rows = {
        "passed": {"validation_status": "pass"},
        "failed": {"validation_status": "mixed_speakers"},
        "unknown": {},
    }
    found, refused = kept(rows)
    assert found == ["passed", "unknown"]
    assert refused == {"validation_status": 1}
    assert kept(rows, keep="mixed_speakers")[0] == ["failed", "unknown"]


def test_speakers_that_are_held_out(kept, tmp_path):
    rows = {"a": {"speaker": "A"}, "b": {"speaker": "B"}, "c": {"narrator": "B"}, "unknown": {}}
    fields = {"speaker_filter_fields": ["speaker"]}
    found, refused = kept(rows, excluded_speaker_ids=["B"], **fields)
    assert found == ["a", "c", "unknown"]
    assert refused == {"excluded_speaker_ids": 1}
    listed = tmp_path / "speakers.yaml"
    listed.write_text("[A, B]")
    both = {"speaker_filter_fields": ["speaker", "narrator"]}
    assert kept(rows, excluded_speaker_ids=str(listed), **both)[0] == ["unknown"]


def test_filters_that_nothing_passes(kept):
    """Not an empty loader in silence."""
    with pytest.raises(playhead.PlanError, match=r"no sample|nothing|none"):
        kept({"a": {"duration": 1.0}}, min_duration=5.0)


BINS = {"bucket_duration_bins": [[2.0, 5], [2.0, 10], [4.0, 10], [4.0, 20]]}
BOUNDED = pytest.mark.filterwarnings("ignore:samples longer than the last of bucket_duration_bins")
SIZES = {"bucket_batch_size": [4, 3, 2, 1]}


def groups(tmp_path, rows, **options) -> list[Counter]:
    """Batches as counts of what their samples are called."""
    made = [
        {"audio_filepath": f"{name}/{n}.wav", **spoken(*size)}
        for name, size in rows.items()
        for n in range(12)
    ]
    manifest = write_jsonl(tmp_path / "manifest.json", made)
    config = {"manifest_filepath": str(manifest), **BINS, **SIZES, "shuffle": True, "seed": 1}
    entry = {key: config.pop(key) for key in ("manifest_filepath",)}
    blend = {**config, "input_cfg": [{"type": "nemo", **entry}, {"type": "nemo", **entry}]}
    loader = playhead.dataloader({**blend, **options}, dataset=Ids(), tokenizer=Letters())
    return [
        Counter(name.partition("/")[0] for name in batch["ids"]) for batch in islice(loader, 60)
    ]


@BOUNDED
def test_the_smallest_bin_that_fits_both_ways(tmp_path):
    rows = {"few": (5, 1.5), "more": (6, 2.0), "long": (10, 2.5), "longest": (20, 4.0)}
    batches = groups(tmp_path, rows)
    alone = {name: max(batch[name] for batch in batches) for name in rows}
    assert alone == {"few": 4, "more": 3, "long": 2, "longest": 1}
    assert {sum(batch.values()) for batch in batches} == {1, 2, 3, 4}


@BOUNDED
def test_strictly_a_bin_of_the_first_length_that_fits(tmp_path):
    """Short with many tokens: no bin of its length takes it, a longer one would."""
    rows = {"few": (5, 1.5), "dense": (15, 1.5)}
    strict = groups(tmp_path, rows)
    assert not any(batch["dense"] for batch in strict)
    lenient = groups(tmp_path, rows, bucketing_2d_strict_mode=False)
    assert max(batch["dense"] for batch in lenient) == 1


@BOUNDED
def test_a_bound_of_tokens_per_second_for_each_bin(tmp_path):
    rows = {"few": (5, 1.5), "dense": (9, 1.5), "calm": (9, 4.0)}
    batches = groups(tmp_path, rows, max_tps=[5.0, 5.0, 5.0, 5.0])
    assert not any(batch["dense"] for batch in batches)
    assert any(batch["calm"] for batch in batches)
