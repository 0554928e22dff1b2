"""Loaders of validation sets: whole passes, each sample once, whatever happened before."""

from __future__ import annotations

import pytest

import playhead
from playhead.datasets import Ids
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
