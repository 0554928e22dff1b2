"""Sections of NeMo configs become loaders, as NeMo's models ask for them."""

from __future__ import annotations

import copy

import pytest
import torch
from omegaconf import OmegaConf

import playhead
from integrations.nemo.fake_nemo import HOME, build
from playhead.datasets import Ids
from playhead.errors import ConfigError
from playhead.integrations.nemo import get_lhotse_dataloader_from_config
from support.corpus import nemo_corpus, tarred_corpus

pytestmark = pytest.mark.filterwarnings("ignore:.*of config.* that")

SECONDS = [0.4 + 0.02 * n for n in range(20)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The `model` of a config, as NeMo's examples write it."""
    folder = tmp_path_factory.mktemp("nemo")
    manifest, tars = tarred_corpus(folder / "tarred", SECONDS, 2)
    held_out = nemo_corpus(folder / "plain", SECONDS[:7], prefix="held")
    common = {"sample_rate": "${model.sample_rate}", "use_lhotse": True, "num_workers": 0}
    return OmegaConf.create(
        {
            "model": {
                "sample_rate": 16000,
                "labels": [" ", "a"],
                "train_ds": {
                    **common,
                    "manifest_filepath": manifest,
                    "tarred_audio_filepaths": tars,
                    "batch_size": 4,
                    "batch_duration": None,
                    "shuffle": True,
                    "seed": 3,
                    "shard_seed": "trng",
                    "is_tarred": True,
                    "labels": "${model.labels}",
                    "bucketing_strategy": "synced_randomized",
                    "bucketing_batch_size": None,
                    "shuffle_n": 2048,
                    "trim_silence": False,
                    "pin_memory": False,
                    "defer_setup": False,
                },
                "validation_ds": {
                    **common,
                    "manifest_filepath": str(held_out),
                    "batch_size": 2,
                    "shuffle": False,
                },
                "test_ds": {
                    **common,
                    "manifest_filepath": manifest,
                    "tarred_audio_filepaths": tars,
                    "batch_size": 3,
                },
            }
        }
    ).model


def make(config, rank=0, world_size=1, dataset=None):
    return get_lhotse_dataloader_from_config(
        config, global_rank=rank, world_size=world_size, dataset=dataset or Ids()
    )


def test_a_section_is_read_as_it_is_and_stays_so(model):
    before = copy.deepcopy(model)
    loader = make(model.train_ds)
    assert isinstance(loader, playhead.Loader)
    assert model == before
    first = next(iter(loader))
    alone = OmegaConf.to_container(model.train_ds, resolve=True)
    again = playhead.dataloader(alone, dataset=Ids(), rank=0, world_size=1)
    assert first["ids"] == next(iter(again))["ids"]
    assert len(first["ids"]) == 4


def test_training_on_tars_is_endless_and_sections_of_evaluation_end(model):
    with pytest.raises(TypeError, match="endless"):
        len(make(model.train_ds))
    held_out = make(model.validation_ds)
    ids = [batch["ids"] for batch in held_out]
    assert [len(some) for some in ids] == [2, 2, 2, 1]
    declared = [name for some in ids for name in some]
    assert declared == sorted(declared)
    assert len(held_out) == 4
    assert len(make(model.test_ds)) == 7


def test_a_sanity_check_takes_nothing_from_the_validation_after_it(model):
    section = OmegaConf.merge(model, {"validation_ds": {"shuffle": True}}).validation_ds
    loader = make(section)
    sanity = iter(loader)
    first = next(sanity)["ids"]
    whole = [batch["ids"] for batch in loader]
    assert whole[0] == first
    assert len(whole) == 4
    assert [batch["ids"] for batch in loader] == whole


def test_ranks_share_each_step(model):
    two = [make(model.test_ds, rank, 2) for rank in (0, 1)]
    assert [(one.rank, one.world_size) for one in two] == [(0, 2), (1, 2)]
    shares = [list(one) for one in two]
    assert [batch["playhead"].step for batch in shares[0]] == [0, 1, 2, 3]
    ids = [name for share in shares for batch in share for name in batch["ids"]]
    assert len(ids) == len(set(ids)) == len(SECONDS)


def test_a_plain_mapping_is_a_config_too(model):
    section = OmegaConf.to_container(model.validation_ds, resolve=True)
    assert len(make(section)) == 4


def test_a_wrong_key_is_refused_by_name(model):
    section = OmegaConf.merge(model.train_ds, {"batch_durations": 10})
    with pytest.raises(ConfigError, match=r"batch_durations.*batch_duration"):
        make(section)


def test_several_configs_take_turns(model):
    part = OmegaConf.to_container(model.train_ds, resolve=True)
    del part["seed"], part["shard_seed"], part["shuffle"]
    top = {"multi_config": True, "sampler_fusion": "zip", "shuffle": True, "seed": 1}
    loader = make(OmegaConf.create({**top, "shard_seed": 1, "a": part, "b": part}))
    assert len(next(iter(loader))["ids"]) == 8


def test_nemo_finds_no_samples_to_count_and_is_told_what_to_set(model):
    loader = make(model.train_ds)
    # What setup_training_data asks before it changes trainer.limit_train_batches.
    assert not (hasattr(loader, "dataset") and isinstance(loader.dataset, torch.utils.data.Dataset))
    # What schedulers ask for where trainer.max_steps is not set.
    with pytest.raises(ConfigError, match=r"asks for `dataset`.*Set trainer\.max_steps"):
        len(loader.dataset)
    with pytest.raises(AttributeError, match="NemoLoader has no attribute 'datasets'"):
        _ = loader.datasets


def test_the_state_is_a_position_that_any_loader_takes(model):
    loader = make(model.train_ds)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    state = loader.state_dict()
    expected = next(batches)
    resumed = make(model.train_ds)
    resumed.load_state_dict(state)
    assert next(iter(resumed))["ids"] == expected["ids"]


def test_the_allocator_is_set_as_nemo_sets_it(model, monkeypatch):
    modules = build(monkeypatch)
    make(model.train_ds)
    make(OmegaConf.merge(model.train_ds, {"cuda_expandable_segments": False}))
    assert modules[HOME].segments == [True, False]


def test_sets_that_an_asr_model_cannot_read_are_refused_with_what_to_write(model):
    section = copy.deepcopy(model.validation_ds)
    sets = OmegaConf.create({"datasets": {"dev": {"manifest_filepath": section.manifest_filepath}}})
    for config in (sets, OmegaConf.to_container(sets)):
        with pytest.raises(ConfigError, match="a list in manifest_filepath"):
            get_lhotse_dataloader_from_config(config, 0, 1, Ids())
