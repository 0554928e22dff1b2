"""The data module: loaders of the sections of a config, and what is logged of them."""

from __future__ import annotations

import importlib
import json
import warnings

import pytest
import torch

from playhead.datasets import Ids
from playhead.errors import ConfigError
from playhead.fetch.info import BatchInfo
from support.corpus import nemo_corpus
from support.lightning_runs import PACKAGES, library


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    train = nemo_corpus(tmp_path / "train", [0.2 + 0.02 * n for n in range(20)], rate=8000)
    sets = {
        name: {"manifest_filepath": str(nemo_corpus(tmp_path / name, [0.2] * n, 8000, name))}
        for name, n in (("clean", 3), ("other", 2))
    }
    common = {"sample_rate": 8000, "batch_size": 2, "num_workers": 0}
    content = {
        "train_ds": {
            **common,
            "input_cfg": [{"type": "nemo", "manifest_filepath": str(train)}] * 2,
            "shuffle": True,
            "seed": 1,
        },
        "validation_ds": {**common, "datasets": sets},
    }
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(content))
    return path


def fit(package, data, tmp_path, **options):
    """Train a little, and return what was seen and logged."""
    pl = library(package)
    ours = importlib.import_module(f"playhead.integrations.{package}")
    seen = {"trained": [], "validated": [], "logged": [], "moved": []}

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(()))

        def transfer_batch_to_device(self, batch, device, dataloader_idx):
            seen["moved"].append(super().transfer_batch_to_device(batch, device, dataloader_idx))
            return seen["moved"][-1]

        def training_step(self, batch, batch_idx):
            seen["trained"].append(batch["ids"])
            return self.weight**2

        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            seen["validated"].append((dataloader_idx, batch["ids"]))

        test_step = predict_step = validation_step

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class Logger(pl.loggers.logger.DummyLogger):
        def log_metrics(self, metrics, step=None, **_):
            seen["logged"].append((step, metrics))

    callbacks = options.pop("callbacks", [ours.PlayheadCallback()])
    trainer = pl.Trainer(
        accelerator="cpu", logger=Logger(), callbacks=callbacks, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
        num_sanity_val_steps=0, **options,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*LeafSpec")
        warnings.filterwarnings("ignore", "You have overridden `transfer_batch_to_device`")
        warnings.filterwarnings("ignore", "You defined a `validation_step`")
        trainer.fit(Module(), datamodule=data)
    return seen, trainer


@pytest.mark.parametrize("package", PACKAGES)
def test_training_and_every_set_come_from_one_config(package, config, tmp_path):
    ours = importlib.import_module(f"playhead.integrations.{package}")
    data = ours.PlayheadDataModule(config, dataset=Ids(), overrides={"batch_size": 5})
    seen, _ = fit(package, data, tmp_path, max_steps=4, val_check_interval=2, log_every_n_steps=2,
                  check_val_every_n_epoch=None)  # fmt: skip
    assert [len(ids) for ids in seen["trained"]] == [5] * 4
    once = [
        (0, ["clean00000", "clean00001"]),
        (0, ["clean00002"]),
        (1, ["other00000", "other00001"]),
    ]
    names = [
        (place, [id_.rpartition("/")[2][:10] for id_ in ids]) for place, ids in seen["validated"]
    ]
    assert names == once * 2
    assert list(data.val_dataloader()) == ["clean", "other"]
    assert data.train_dataloader() is data.train_dataloader()


def test_batches_pass_through_the_hooks_that_move_them(config, tmp_path):
    ours = importlib.import_module("playhead.integrations.lightning")
    data = ours.PlayheadDataModule(config, overrides={"info": True})
    seen, _ = fit("lightning", data, tmp_path, max_steps=2, limit_val_batches=0)
    for step, batch in enumerate(seen["moved"][:2]):
        assert isinstance(batch["playhead"], BatchInfo)
        assert batch["playhead"].step == step


def test_the_figures_of_the_data_are_logged_beside_the_loss(config, tmp_path):
    ours = importlib.import_module("playhead.integrations.lightning")
    data = ours.PlayheadDataModule(config, dataset=Ids())
    seen, _ = fit(
        "lightning", data, tmp_path, max_steps=6, log_every_n_steps=3, limit_val_batches=0
    )
    logged = [(step, metrics) for step, metrics in seen["logged"] if "data/step" in metrics]
    assert [step for step, _ in logged] == [2, 5]
    assert [metrics["data/step"] for _, metrics in logged] == [3, 6]
    assert all(
        isinstance(value, int | float) for _, metrics in logged for value in metrics.values()
    )


def test_it_wants_the_callback(config, tmp_path):
    ours = importlib.import_module("playhead.integrations.lightning")
    with pytest.raises(ConfigError, match=r"Trainer\(callbacks=\[PlayheadCallback\(\)\]\)"):
        fit("lightning", ours.PlayheadDataModule(config), tmp_path, max_steps=1, callbacks=[])


def test_a_blend_alone_has_nothing_to_validate(config, tmp_path):
    ours = importlib.import_module("playhead.integrations.lightning")
    blend = json.loads(config.read_text())["train_ds"]
    seen, _ = fit("lightning", ours.PlayheadDataModule(blend, dataset=Ids()), tmp_path, max_steps=2)
    assert len(seen["trained"]) == 2
    assert not seen["validated"]


def test_a_trainer_says_that_there_is_nothing_to_test(config, tmp_path):
    ours = importlib.import_module("playhead.integrations.lightning")
    data = ours.PlayheadDataModule(config, dataset=Ids())
    _, trainer = fit("lightning", data, tmp_path, max_steps=1, limit_val_batches=0)
    with pytest.raises(Exception, match="`test_dataloader` must be implemented"):
        trainer.test(trainer.lightning_module, datamodule=data)


def test_a_section_that_is_asked_for_has_to_be_there(config, tmp_path):
    ours = importlib.import_module("playhead.integrations.lightning")
    data = ours.PlayheadDataModule(config, dataset=Ids(), validation_section="dev_ds")
    with pytest.raises(ConfigError, match="no section 'dev_ds'"):
        fit("lightning", data, tmp_path, max_steps=1)
