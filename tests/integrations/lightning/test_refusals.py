"""What does not fit together is refused when training begins, with what to set."""

from __future__ import annotations

import importlib
import sys

import pytest
import torch

from playhead.errors import (
    ConfigError,
    MissingExtraError,
    NotSupportedError,
    PositionError,
    TopologyError,
)
from support.column_loader import loader
from support.lightning_runs import PACKAGES, library, run


class Plain:
    """Batches that are not of Playhead."""

    def __iter__(self):
        return iter([{"rows": [(0, n)], "step": n, "slot": 0} for n in range(5)])


@pytest.mark.parametrize("package", PACKAGES)
def test_a_state_that_nobody_follows_is_refused_with_the_line_to_add(package, tmp_path):
    line = f"from playhead.integrations.{package} import PlayheadCallback"
    with pytest.raises(PositionError, match=line):
        run(
            package, tmp_path, lambda: loader(step=1), follow=False, max_steps=2,
            saved_in=("on_train_batch_end",),
        )  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_a_checkpoint_that_the_callback_saved_is_refused_without_it(package, tmp_path):
    make = lambda: loader(step=1)  # noqa: E731
    run(package, tmp_path, make, max_steps=2, saved_after="last.ckpt")
    line = f"from playhead.integrations.{package} import PlayheadCallback"
    with pytest.raises(PositionError, match=line):
        run(package, tmp_path, make, follow=False, max_steps=4, resumed=tmp_path / "last.ckpt")


def test_the_optimizer_step_has_to_be_that_of_the_loader(tmp_path):
    with pytest.raises(TopologyError) as caught:
        run("lightning", tmp_path, lambda: loader(step=6), max_steps=2, accumulate_grad_batches=4)
    assert str(caught.value) == (
        "A step is 6 micro-batches, 6 for each of 1 ranks, and the Trainer steps after 4. Use"
        " accumulate_grad_batches=6 in the Trainer, or set micro_batches_per_step: 4 for the"
        " loader."
    )


def test_a_schedule_of_accumulation_is_refused(tmp_path):
    schedule = library("lightning").callbacks.GradientAccumulationScheduler({0: 1, 2: 3})
    with pytest.raises(TopologyError, match="GradientAccumulationScheduler changes that"):
        run("lightning", tmp_path, lambda: loader(step=1), callbacks=(schedule,), max_steps=2)


@pytest.mark.parametrize(("batches", "choice"), [(8, "6 or 9"), (2, "3")])
def test_an_epoch_does_not_end_inside_a_step(batches, choice, tmp_path):
    with pytest.raises(ConfigError, match=f"limit_train_batches.* Set it to {choice}"):
        run(
            "lightning", tmp_path, lambda: loader(step=3), accumulate_grad_batches=3,
            limit_train_batches=batches, max_epochs=1,
        )  # fmt: skip


def test_a_loader_of_other_ranks_is_refused(tmp_path):
    with pytest.raises(TopologyError, match=r"made for rank 1 of 2, and .* rank 0 of 1"):
        run("lightning", tmp_path, lambda: loader(step=2, rank=1, world_size=2), max_steps=1)


def test_there_has_to_be_something_to_follow(tmp_path):
    strange = Plain()
    with pytest.raises(ConfigError, match="nothing to follow"):
        run("lightning", tmp_path, lambda: strange, max_steps=1)


@pytest.mark.filterwarnings("ignore:.*dataloader_iter")
def test_a_training_step_that_takes_the_iterator_is_refused(tmp_path):
    pl = library("lightning")
    ours = importlib.import_module("playhead.integrations.lightning")

    class Greedy(pl.LightningModule):
        def training_step(self, dataloader_iter):
            raise AssertionError

        def configure_optimizers(self):
            return torch.optim.SGD([torch.nn.Parameter(torch.ones(()))], lr=0.1)

    trainer = pl.Trainer(
        callbacks=[ours.PlayheadCallback()], logger=False, enable_checkpointing=False,
        accelerator="cpu", default_root_dir=tmp_path, max_steps=1,
    )  # fmt: skip
    with pytest.raises(NotSupportedError, match="dataloader_iter"):
        trainer.fit(Greedy(), loader(step=1))


def test_a_checkpoint_of_another_time_says_that_it_has_no_position(tmp_path):
    plain = Plain()
    run(
        "lightning", tmp_path, lambda: plain, follow=False, max_steps=2,
        saved_in=("on_train_batch_end",),
    )  # fmt: skip
    with pytest.warns(UserWarning, match="has no position of Playhead"):
        run(
            "lightning", tmp_path, lambda: loader(step=1), max_steps=3,
            resumed=sorted(tmp_path.glob("*.ckpt"))[1],
        )  # fmt: skip


def test_a_state_of_another_version_is_refused():
    ours = importlib.import_module("playhead.integrations.lightning").PlayheadCallback()
    ours._fits = True
    with pytest.raises(PositionError, match="version 7, and this one reads 1"):
        ours.load_state_dict({"version": 7})


@pytest.mark.parametrize(("package", "library_"), [*PACKAGES.items()])
def test_the_extra_is_named_where_the_package_is_missing(package, library_, monkeypatch):
    monkeypatch.setitem(sys.modules, library_, None)
    monkeypatch.delitem(sys.modules, f"playhead.integrations.{package}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"Install playhead\[{package.replace('_', '-')}"):
        importlib.import_module(f"playhead.integrations.{package}")


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_each_module_imports_its_own_package_alone(package):
    import subprocess

    other = {"lightning": "pytorch_lightning", "pytorch_lightning": "lightning"}[package]
    code = f"import sys, playhead.integrations.{package}; print({other!r} in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120,
        check=True,
    )  # fmt: skip
    assert done.stdout == "False\n"
