"""The call that users make: what it refuses before anything is read, and what it says."""

from __future__ import annotations

import json
import warnings
from itertools import pairwise

import pytest

import playhead
from playhead.datasets import Ids
from support.corpus import nemo_corpus, tarred_corpus, write_jsonl


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def manifest(tmp_path):
    return nemo_corpus(tmp_path, [0.2 + 0.1 * n for n in range(12)])


def ids(loader):
    return [name for batch in loader for name in batch["ids"]]


def test_a_manifest_is_enough(manifest):
    loader = playhead.dataloader(
        {"manifest_filepath": str(manifest), "batch_size": 5}, dataset=Ids(), num_workers=0
    )
    assert loader.finite
    assert ids(loader) == [f"wav/utt{n:05d}.wav" for n in range(12)]


def test_a_class_is_not_a_dataset(manifest):
    with pytest.raises(playhead.ConfigError, match="class Ids itself"):
        playhead.dataloader({"manifest_filepath": str(manifest), "batch_size": 5}, dataset=Ids)


def test_what_is_no_tokenizer_is_refused(manifest):
    with pytest.raises(playhead.ConfigError, match="type object is no tokenizer"):
        playhead.dataloader(
            {"manifest_filepath": str(manifest), "batch_size": 5}, tokenizer=object()
        )


def test_only_rank_0_says_what_people_should_know(manifest):
    config = {"manifest_filepath": str(manifest), "batch_size": 5, "bucket_buffer_size": 7}
    with pytest.warns(UserWarning, match="bucket_buffer_size"):
        playhead.dataloader(config, rank=0, world_size=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        playhead.dataloader(config, rank=1, world_size=2)


def test_data_blend_dir_is_what_the_blend_refers_to(manifest, tmp_path):
    (tmp_path / "blend.yaml").write_text(
        "- {type: nemo, manifest_filepath: '${data_blend_dir}/manifest.json'}\n"
    )
    loader = playhead.dataloader(
        tmp_path / "blend.yaml", dataset=Ids(), batch_size=5, data_blend_dir=str(tmp_path)
    )
    assert len(ids(loader)) == 12


def test_shards_are_read_in_one_stretch_a_pass_where_locality_is_shards(tmp_path):
    pattern, tars = tarred_corpus(tmp_path / "tarred", [0.2] * 40, 8)
    config = {
        "manifest_filepath": pattern,
        "tarred_audio_filepaths": tars,
        "batch_size": 1,
        "shuffle": True,
        "use_bucketing": False,
        "force_finite": True,
        "locality": "shards",
        "window_draws": 5,
        "seed": 1,
    }
    shards = [int(name[3:8]) % 8 for name in ids(playhead.dataloader(config, dataset=Ids()))]
    assert sorted(shards) == sorted(n % 8 for n in range(40))
    stretches = 1 + sum(one != two for one, two in pairwise(shards))
    assert stretches == 8


def test_a_whole_training_config_as_it_is(manifest, tmp_path):
    section = {"manifest_filepath": str(manifest), "batch_size": 4, "is_tarred": False}
    config = {
        "name": "${oc.env:NOBODY_HAS_THIS}",
        "model": {"train_ds": {**section, "shuffle": True}, "validation_ds": section},
    }
    (tmp_path / "train.yaml").write_text(json.dumps(config))
    with pytest.warns(UserWarning, match="is_tarred"):
        train = playhead.dataloader(tmp_path / "train.yaml", dataset=Ids(), seed=1)
    with pytest.warns(UserWarning, match="is_tarred"):
        valid = playhead.dataloader(tmp_path / "train.yaml", section="validation_ds", dataset=Ids())
    assert sorted(ids(train)) == ids(valid)
    assert ids(train) != ids(valid)


def equal_rows(folder, order):
    """A manifest whose rows all have one length and one duration, as fixed chunks have."""
    rows = [{"audio_filepath": f"{n:03d}.wav", "duration": 1.0, "text": "x"} for n in order]
    return write_jsonl(folder / "chunks.json", rows)


def test_rows_of_one_length_in_another_order_are_other_data(tmp_path):
    """Lengths and offsets alone do not tell them apart: samples would be lost and repeated."""
    manifest = equal_rows(tmp_path, range(60))
    config = {"manifest_filepath": str(manifest), "batch_size": 4, "shuffle": True, "seed": 1}
    loader = playhead.dataloader(config, dataset=Ids())
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    state = loader.state_dict()
    equal_rows(tmp_path, reversed(range(60)))
    with pytest.raises(playhead.PositionError, match=r"chunks\.json: 60 rows differ"):
        playhead.dataloader(config, dataset=Ids()).load_state_dict(state)


def test_rows_that_change_under_the_run_are_noticed(tmp_path):
    manifest = equal_rows(tmp_path, range(60))
    config = {"manifest_filepath": str(manifest), "batch_size": 4, "shuffle": True, "seed": 1}
    batches = iter(playhead.dataloader(config, dataset=Ids()))
    next(batches)
    equal_rows(tmp_path, reversed(range(60)))
    with pytest.raises(playhead.StaleIndexError, match="not the one that was indexed"):
        list(batches)
