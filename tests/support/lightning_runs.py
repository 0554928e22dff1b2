"""Runs of Lightning's Trainer that note what they train on, saved at every hook and resumed."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PACKAGES = {"lightning": "lightning.pytorch", "pytorch_lightning": "pytorch_lightning"}
BATCH_ENDS = ("on_train_batch_end",)
HOOKS = (
    *BATCH_ENDS,
    "on_validation_end",
    "on_train_epoch_end",
    "on_train_epoch_start",
    "on_train_start",
    "on_train_end",
)
_HARMLESS = (
    "does not have many workers",
    "LeafSpec",
    "was called without a model",
    "there is no last checkpoint available",
    "callbacks used to create the checkpoint",
    "The dirpath has changed",
)


@dataclass
class Outcome:
    """What a run trained on, and where it stood at its end."""

    trained: list[Any] = field(default_factory=list)
    """Epoch, number of the batch in it, and what the batch was of."""
    weight: float = 0.0
    rate: float = 0.0
    epoch: int = 0
    step: int = 0
    logged: list[tuple[int, float]] = field(default_factory=list)
    validated: int = 0

    @property
    def end(self) -> tuple[float, float, int, int]:
        return self.weight, self.rate, self.epoch, self.step


class StopError(Exception):
    """Ends a run in its middle."""


def parts_of(batch: Any) -> Iterator[dict[str, Any]]:
    if isinstance(batch, dict) and "rows" in batch:
        yield batch
    elif isinstance(batch, dict):
        for part in batch.values():
            yield from parts_of(part)
    elif isinstance(batch, list | tuple):
        for part in batch:
            yield from parts_of(part)


def library(package: str) -> Any:
    """The package's own module, with `Trainer` and the rest."""
    return importlib.import_module(PACKAGES[package])


def run(
    package: str,
    folder: Path,
    make: Callable[[], Any],
    *,
    saved_in: tuple[str, ...] = (),
    saves_first: bool = False,
    resumed: Path | str | None = None,
    estimated: bool = False,
    stop_at: int | None = None,
    validated: bool = False,
    callbacks: tuple[Any, ...] = (),
    follow: bool = True,
    saved_after: str | None = None,
    steps_after: int | None = None,
    **options: Any,
) -> Outcome:
    """Train, and save a checkpoint in each of the hooks, every time that they are called.

    `make` makes the training data whenever the trainer asks for them. Checkpoints are named by
    their order, hook and batches that were trained on. With `steps_after` the module steps its
    optimizer itself, after so many batches.
    """
    pl = library(package)
    ours = importlib.import_module(f"playhead.integrations.{package}")
    outcome = Outcome()

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones((), dtype=torch.float64))
            self.lr = 0.01
            self.automatic_optimization = steps_after is None

        def train_dataloader(self):
            return make()

        def training_step(self, batch, batch_idx):
            parts = [(p["step"], p["slot"], tuple(p["rows"])) for p in parts_of(batch)]
            outcome.trained.append((self.trainer.current_epoch, batch_idx, parts))
            if len(outcome.trained) == stop_at:
                raise StopError
            scale = sum((1 + row % 7) * (1 + leaf) for *_, rows in parts for leaf, row in rows)
            loss = (self.weight - scale / 100) ** 2
            self.log("loss", loss, batch_size=1)
            if steps_after is not None:
                self.step_by_itself(loss, ends=(batch_idx + 1) % steps_after == 0)
            return loss

        def step_by_itself(self, loss, *, ends):
            self.manual_backward(loss)
            if ends:
                self.optimizers().step()
                self.optimizers().zero_grad()

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.5)
            steps = self.trainer.estimated_stepping_batches if estimated else 100
            schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, int(min(steps, 200)))
            return [optimizer], [{"scheduler": schedule, "interval": "step"}]

    class Validated(Module):
        def val_dataloader(self):
            return torch.utils.data.DataLoader(range(2), batch_size=1)

        def validation_step(self, batch, batch_idx):
            outcome.validated += 1

    class Saver(pl.Callback):
        saves = 0

    def save(hook: str) -> Callable[..., None]:
        def saving(self, trainer, *arguments) -> None:
            if trainer.sanity_checking:
                return
            self.saves += 1
            name = f"{self.saves:03}.{hook}.{len(outcome.trained)}.ckpt"
            trainer.save_checkpoint(folder / name)

        return saving

    for hook in saved_in:
        setattr(Saver, hook, save(hook))

    class Logger(pl.loggers.logger.DummyLogger):
        def log_metrics(self, metrics, step=None, **_):
            if "loss" in metrics:
                outcome.logged.append((step, metrics["loss"]))

    following = [ours.PlayheadCallback()] if follow else []
    both = [Saver(), *following] if saves_first else [*following, Saver()]
    model = Validated() if validated else Module()
    folder.mkdir(parents=True, exist_ok=True)
    trainer = pl.Trainer(
        **{
            "accelerator": "cpu",
            "logger": Logger(),
            "log_every_n_steps": 1,
            "enable_checkpointing": any(isinstance(c, pl.callbacks.Checkpoint) for c in callbacks),
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "default_root_dir": str(folder),
            "callbacks": [*both, *callbacks],
            "num_sanity_val_steps": 0,
            **options,
        }
    )
    with warnings.catch_warnings():
        for ignored in _HARMLESS:
            warnings.filterwarnings("ignore", f".*{ignored}")
        try:
            trainer.fit(model, ckpt_path=resumed)
        except StopError:
            outcome.trained.pop()
    if saved_after is not None:
        trainer.save_checkpoint(folder / saved_after)
    outcome.weight, outcome.epoch, outcome.step = (
        model.weight.item(),
        trainer.current_epoch,
        trainer.global_step,
    )
    if trainer.optimizers:
        outcome.rate = trainer.optimizers[0].param_groups[0]["lr"]
    return outcome


def check_exact(
    package: str,
    folder: Path,
    make: Callable[[], Any],
    *,
    saved_in: tuple[str, ...] = HOOKS,
    per_step: int = 1,
    every: int = 1,
    **options: Any,
) -> Outcome:
    """Resume from every n-th checkpoint of a run, and compare what is trained on from there."""
    whole = run(package, folder, make, saved_in=saved_in, **options)
    checkpoints = sorted(folder.glob("*.ckpt"))
    assert checkpoints
    for checkpoint in checkpoints[::every]:
        done = int(checkpoint.name.split(".")[2]) // per_step * per_step
        again = run(package, folder / "again", make, resumed=checkpoint, **options)
        assert again.trained == whole.trained[done:], checkpoint.name
        assert again.end[:2] == whole.end[:2], checkpoint.name
        if again.trained:
            assert again.end == whole.end, checkpoint.name
        steps = [step for step, _ in again.logged]
        assert again.logged == whole.logged[len(whole.logged) - len(steps) :], checkpoint.name
    return whole
