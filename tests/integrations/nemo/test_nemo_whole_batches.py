"""NeMo's DataModule gets whole loaders on every rank, and sends no batches."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from integrations.nemo.fake_nemo import DATA_MODULE, build
from playhead.datasets import Ids
from playhead.errors import ConfigError
from playhead.integrations import nemo
from support.corpus import nemo_corpus


@pytest.fixture
def modules(monkeypatch):
    yield build(monkeypatch)
    nemo.uninstall()


@pytest.fixture(scope="module")
def loader(tmp_path_factory):
    manifest = nemo_corpus(tmp_path_factory.mktemp("nemo"), [0.5] * 4)
    config = {"manifest_filepath": str(manifest), "batch_size": 2, "seed": 1}
    return nemo.get_lhotse_dataloader_from_config(config, 0, 1, Ids())


def of_rank(number, data_module, loader):
    """What DataModule.train_dataloader() gives on a rank of a slot of two."""
    mesh = SimpleNamespace(rank=number)
    source = loader if data_module.is_dp_source_rank(mesh) else None
    return data_module.BroadcastingDataLoader(source=source, device_mesh=mesh)


def test_every_rank_of_a_slot_has_the_loader_itself(modules, loader):
    nemo.install()
    assert of_rank(0, modules[DATA_MODULE], loader) is loader
    assert of_rank(1, modules[DATA_MODULE], loader) is loader


def test_loaders_of_others_are_sent_as_before(modules):
    nemo.install()
    kind = modules[DATA_MODULE].BroadcastingDataLoader
    sent = kind([1, 2], "mesh", axes=("tp",))
    assert isinstance(sent, kind)
    assert (sent.source, sent.mesh, sent.axes) == ([1, 2], "mesh", ("tp",))


def test_uninstalled_it_is_as_it_was(modules, loader):
    nemo.install()
    nemo.uninstall()
    data_module = modules[DATA_MODULE]
    assert of_rank(0, data_module, loader).source is loader
    assert of_rank(1, data_module, loader).source is None


def test_a_data_module_imported_later_does_not_wait_for_ever(modules, monkeypatch, loader):
    later = modules[DATA_MODULE]
    monkeypatch.delitem(sys.modules, DATA_MODULE)
    nemo.install()
    monkeypatch.setitem(sys.modules, DATA_MODULE, later)
    assert of_rank(0, later, loader) is loader
    with pytest.raises(ConfigError, match="after NeMo's DataModule is imported"):
        of_rank(1, later, loader)
