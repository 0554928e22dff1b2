"""Loaders of validation sets: whole passes, each sample once, whatever happened before."""

from __future__ import annotations

from multiprocessing import active_children

import pytest

import playhead
from playhead.datasets import Ids
from playhead.errors import ConfigError
from support.corpus import nemo_corpus


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def config(tmp_path):
    for name, count in (("clean", 11), ("noisy", 5)):
        nemo_corpus(tmp_path / name, [0.2 + 0.1 * n for n in range(count)], prefix=name)
    return {
        "train_ds": {"manifest_filepath": str(tmp_path / "clean/manifest.json"), "batch_size": 2},
        "validation_ds": {
            "batch_size": 3,
            "datasets": {
                name: {"manifest_filepath": str(tmp_path / name / "manifest.json")}
                for name in ("clean", "noisy")
            },
        },
    }


def ids(loader):
    return [name for batch in loader for name in batch["ids"]]


def declared(name, count):
    return [f"wav/{name}{n:05d}.wav" for n in range(count)]


def test_every_set_is_a_loader_of_whole_passes_in_declared_order(config):
    sets = playhead.validation_dataloaders(config, dataset=Ids())
    assert list(sets) == ["clean", "noisy"]
    assert [len(loader) for loader in sets.values()] == [4, 2]
    for _ in range(2):
        assert ids(sets["clean"]) == declared("clean", 11)
        assert ids(sets["noisy"]) == declared("noisy", 5)


def test_an_abandoned_pass_does_no_harm(config):
    loader = playhead.validation_dataloaders(config, dataset=Ids())["clean"]
    sanity = iter(loader)
    next(sanity)
    next(sanity)
    assert len(loader) == 4
    assert ids(loader) == declared("clean", 11)
    assert len(loader) == 4


def test_datasets_by_name(config):
    class Named(Ids):
        def collate(self, examples, **more):
            return {**super().collate(examples, **more), "by": "me"}

    sets = playhead.validation_dataloaders(config, dataset={"clean": Ids(), "noisy": Named()})
    assert "by" not in next(iter(sets["clean"]))
    assert next(iter(sets["noisy"]))["by"] == "me"


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ({"clean": Ids()}, "none for noisy.*clean, noisy"),
        ({"clean": Ids(), "noisy": Ids(), "other": Ids()}, "some for other"),
        (Ids, "class Ids itself"),
        ({"clean": Ids, "noisy": Ids()}, "class Ids itself"),
    ],
)
def test_datasets_that_do_not_fit_the_sets_are_refused(config, dataset, said):
    with pytest.raises(playhead.ConfigError, match=said):
        playhead.validation_dataloaders(config, dataset=dataset)


def test_workers_end_with_their_pass_and_when_nobody_goes_on_with_it(config):
    loader = playhead.validation_dataloaders(config, dataset=Ids(), num_workers=1)["clean"]
    for _ in range(2):
        assert ids(loader) == declared("clean", 11)
        assert not active_children()
    abandoned = iter(loader)
    next(abandoned)
    assert len(active_children()) == 1
    again = iter(loader)
    assert next(again)["ids"] == declared("clean", 3)
    del abandoned
    assert len(active_children()) == 1, "an iterator that is over ended the workers of another"
    del again
    assert not active_children()


def test_workers_end_with_the_last_batch_of_a_pass_though_nobody_asks_for_its_end(config):
    loader = playhead.validation_dataloaders(config, dataset=Ids(), num_workers=2)["clean"]
    batches = iter(loader)
    names = [name for _ in range(len(loader)) for name in next(batches)["ids"]]
    assert names == declared("clean", 11)
    assert not active_children()
    with pytest.raises(StopIteration):
        next(batches)


def test_no_more_workers_are_started_than_there_are_batches(config):
    loader = playhead.validation_dataloaders(config, dataset=Ids(), num_workers=4)["noisy"]
    batches = iter(loader)
    next(batches)
    assert len(active_children()) == len(loader) == 2


def test_a_seed_that_is_drawn_would_make_results_differ(config):
    shuffled = {"shuffle": True, "dataset": Ids()}
    drawn = playhead.validation_dataloaders(config, seed="trng", **shuffled)["clean"]
    fixed = playhead.validation_dataloaders(config, seed=0, **shuffled)["clean"]
    assert ids(drawn) == ids(fixed) != declared("clean", 11)
    assert drawn.state_dict() == fixed.state_dict()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"min_duration": 50}, "set clean: No row of any leaf is kept: min_duration"),
        ({"batch_size": None}, "set clean: Nothing limits a batch"),
        ({"drop_last": True}, "drop_last"),
        ({"section": "model.test_ds"}, "no section 'model.test_ds'"),
        ({"batch_sise": 3}, "`batch_size` is"),
    ],
)
def test_what_leaves_nothing_to_evaluate_is_refused_in_a_line(config, options, said):
    with pytest.raises(playhead.PlayheadError, match=said) as refused:
        playhead.validation_dataloaders(config, dataset=Ids(), **options)
    assert "\n" not in str(refused.value)


def test_the_plan_says_which_batches_of_any_dataset_count(config):
    class Tuples:
        def __getitem__(self, cuts):
            return tuple(cuts.ids)

    found = []
    for rank in range(4):
        loader = playhead.validation_dataloaders(
            config, dataset=Tuples(), batch_size=1, rank=rank, world_size=4
        )["noisy"]
        for names, micro_batch in zip(loader, loader.micro_batches(), strict=True):
            if not micro_batch.repeated.any():
                found.append((micro_batch.row.tolist(), names))
    assert [name for _, names in sorted(found) for name in names] == declared("noisy", 5)


def test_a_class_in_place_of_a_dataset_is_refused(config):
    with pytest.raises(ConfigError, match="Dataset is the class Ids itself"):
        playhead.validation_dataloaders(config, dataset=Ids, rank=0, world_size=1)
