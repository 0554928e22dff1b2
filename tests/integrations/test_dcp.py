"""Positions in checkpoints of torch.distributed.checkpoint: whole, whatever the loader is now."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException

import playhead
from playhead.datasets import Ids
from playhead.errors import PositionError
from playhead.inspect import inspect_checkpoint
from playhead.integrations.dcp import LoaderPosition
from support.corpus import nemo_corpus
from support.handed_out import take

pytestmark = pytest.mark.filterwarnings(
    "ignore:torch.distributed is disabled:UserWarning", "ignore:.*dealt out anew:UserWarning"
)


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(folder / "cache"))
        seconds = [0.3 + 0.02 * n for n in range(40)]
        yield {name: nemo_corpus(folder / name, seconds, 8000, name) for name in "abc"}


@pytest.fixture
def loader(manifests):
    def make(names="abc", *, rank=0, world_size=1, **options):
        entries = [
            {"type": "nemo", "manifest_filepath": str(manifests[name]), "name": name}
            for name in names
        ]
        config = {
            "input_cfg": entries,
            "sample_rate": 8000,
            "shuffle": True,
            "seed": 1,
            "batch_duration": 3,
            "window_draws": 100,
            "micro_batches_per_step": 2,
        }
        place = {"rank": rank, "world_size": world_size}
        return playhead.dataloader({**config, **options}, dataset=Ids(), **place)

    return make


CHANGES = {
    "the same": ({}, {}),
    "a smaller limit": ({}, {"batch_duration": 2}),
    "a source that is gone": ({"names": "abc"}, {"names": "ab"}),
    "a source that is new": ({"names": "ab"}, {"names": "abc"}),
    "a filter that is gone": ({"max_duration": 0.8}, {}),
    "a filter that is new": ({}, {"max_duration": 0.8}),
    "a larger step": ({}, {"micro_batches_per_step": 4}),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("change", CHANGES)
def test_a_fresh_loader_goes_on_as_from_the_state_itself(loader, tmp_path, change):
    before, now = CHANGES[change]
    saving, told, loading = loader(**before), loader(**now), loader(**now)
    take(saving, 26)
    dcp.save({"loader": LoaderPosition(saving)}, checkpoint_id=tmp_path)
    dcp.load({"loader": LoaderPosition(loading)}, checkpoint_id=tmp_path)
    told.load_state_dict(saving.state_dict())
    assert loading.state_dict() == told.state_dict()
    assert take(loading, 20) == take(told, 20)


@pytest.mark.parametrize("ask", [dcp.save, dcp.async_save, dcp.load])
def test_a_bare_loader_is_refused_with_the_line_to_write(loader, tmp_path, ask):
    with pytest.raises(PositionError, match=r'Write \{"loader": LoaderPosition\(loader\)\}'):
        ask({"loader": loader()}, checkpoint_id=tmp_path)


@pytest.mark.parametrize("now", [{}, {"max_duration": 0.8}, {"names": "ab"}])
def test_a_nested_state_of_which_parts_were_loaded_is_refused(loader, tmp_path, now):
    saving, loading = loader(max_duration=0.8), loader(**now)
    take(saving, 26)
    dcp.save({"loader": saving.state_dict()}, checkpoint_id=tmp_path)
    state = {"loader": loading.state_dict()}
    dcp.load(state, checkpoint_id=tmp_path)
    with pytest.raises(PositionError, match=r"LoaderPosition|damaged"):
        loading.load_state_dict(state["loader"])


def test_a_checkpoint_that_is_not_whole_is_not_loaded(loader, tmp_path):
    saving, loading = loader(), loader()
    take(saving, 26)
    dcp.save({"loader": LoaderPosition(saving)}, checkpoint_id=tmp_path)
    # It is written last.
    (tmp_path / ".metadata").unlink()
    fresh = loading.state_dict()
    with pytest.raises(CheckpointException):
        dcp.load({"loader": LoaderPosition(loading)}, checkpoint_id=tmp_path)
    assert loading.state_dict() == fresh
    take(loading, 2)
    with pytest.raises(PositionError, match="and this loader has begun"):
        LoaderPosition(loading).load_state_dict({"position": ""})


def test_something_else_under_its_key_is_refused(loader):
    for state in ({}, {"position": 3}, loader().state_dict()):
        with pytest.raises(PositionError, match="not the position of a loader"):
            LoaderPosition(loader()).load_state_dict(state)


def test_a_save_in_the_background_holds_the_position_that_it_began_at(loader, tmp_path):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        saving, loading = loader(), loader()
        batches = iter(saving)
        list(islice(batches, 26))
        state = saving.state_dict()
        pending = dcp.async_save({"loader": LoaderPosition(saving)}, checkpoint_id=tmp_path)
        list(islice(batches, 10))
        pending.result()
        dcp.load({"loader": LoaderPosition(loading)}, checkpoint_id=tmp_path)
    finally:
        dist.destroy_process_group()
    assert loading.state_dict() == state


def test_a_seed_that_is_drawn_by_all_ranks_is_that_of_the_checkpoint(loader, tmp_path):
    """Where it is drawn at the first batch, a fresh loader has no position to load into yet."""
    saving = loader(seed="trng")
    take(saving, 26)
    dcp.save({"loader": LoaderPosition(saving)}, checkpoint_id=tmp_path)
    loading = loader(seed="trng", rank=1, world_size=2)
    with pytest.raises(PositionError, match="drawn when all ranks begin"):
        loading.state_dict()
    dcp.load({"loader": LoaderPosition(loading)}, checkpoint_id=tmp_path)
    assert loading.state_dict() == saving.state_dict()


def test_a_checkpoint_from_before_the_first_batch_begins_anew(loader, tmp_path):
    saving = loader(seed="trng", rank=0, world_size=2)
    dcp.save({"loader": LoaderPosition(saving)}, checkpoint_id=tmp_path)
    loading = loader(seed=3)
    fresh = loading.state_dict()
    dcp.load({"loader": LoaderPosition(loading)}, checkpoint_id=tmp_path)
    assert loading.state_dict() == fresh
    take(loading, 2)
    with pytest.raises(PositionError, match="and this loader has begun"):
        LoaderPosition(loading).load_state_dict({"position": ""})


def test_another_seed_is_refused_unless_it_is_asked_for(loader, tmp_path):
    saving, loading = loader(seed=1), loader(seed=2)
    take(saving, 26)
    dcp.save({"loader": LoaderPosition(saving)}, checkpoint_id=tmp_path)
    with pytest.raises(PositionError, match="seed 1 and the config has 2"):
        dcp.load({"loader": LoaderPosition(loading)}, checkpoint_id=tmp_path)
    with pytest.warns(UserWarning, match="changed the seed"):
        dcp.load({"loader": LoaderPosition(loading, reseed=True)}, checkpoint_id=tmp_path)
    assert loading.state_dict()["step"] == 13


def test_the_position_of_several_configs_is_saved_too(loader, manifests, tmp_path):
    config = {"multi_config": True, "seed": 1, "shuffle": True, "micro_batches_per_step": 2}
    for name in "ab":
        entry = {"type": "nemo", "manifest_filepath": str(manifests[name])}
        config[name] = {"input_cfg": [entry], "batch_duration": 3, "sample_rate": 8000}
    saving, loading = (
        playhead.dataloader(config, dataset=Ids(), rank=0, world_size=1) for _ in range(2)
    )
    take(saving, 26)
    dcp.save({"loader": LoaderPosition(saving)}, checkpoint_id=tmp_path)
    dcp.load({"loader": LoaderPosition(loading)}, checkpoint_id=tmp_path)
    assert loading.state_dict() == saving.state_dict()


def test_it_can_be_looked_at(loader, tmp_path):
    saving = loader()
    lines = take(saving, 26)
    model = torch.nn.Linear(2, 2)
    state = {"model": model.state_dict(), "loader": LoaderPosition(saving), "step": 13}
    dcp.save(state, checkpoint_id=tmp_path / "step-13")
    summary = inspect_checkpoint(tmp_path)
    assert summary.checkpoint_metadata_loaded.endswith("loader.position")
    assert summary.overall.step == 13
    read = {row.dataset: row.consumed_items for row in summary.rows}
    assert read == Counter(name[4] for line in lines for name in line["ids"])
