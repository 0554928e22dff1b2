"""A job of Lightning on real speech, that notes what it trains on: `python lightning_job.py SPEC`.

A spec holds: `package`, `config`, `folder` (for checkpoints), `notes` (JSON lines, one file a
rank), `ranks`, `step` (micro-batches), `steps`, and `pause`: seconds that every batch takes.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from datetime import timedelta
from pathlib import Path

import torch


def main(spec: dict) -> None:
    libraries = {"lightning": "lightning.pytorch", "pytorch_lightning": "pytorch_lightning"}
    pl = importlib.import_module(libraries[spec["package"]])
    ours = importlib.import_module(f"playhead.integrations.{spec['package']}")

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
            torch.nn.init.ones_(self.layer.weight)
            torch.nn.init.zeros_(self.layer.bias)

        def on_fit_start(self) -> None:
            self.notes = Path(f"{spec['notes']}.{self.global_rank}").open("a")  # noqa: SIM115 - until the end

        def training_step(self, batch, batch_idx):
            info = batch["playhead"]
            line = {
                "step": info.step,
                "slot": info.slot,
                "ids": batch["ids"],
                "repeated": info.repeated,
                "at": self.trainer.global_step,
            }
            self.notes.write(json.dumps(line) + "\n")
            self.notes.flush()
            os.fsync(self.notes.fileno())
            time.sleep(spec["pause"])
            audio = batch["audio"]
            heard = torch.stack([audio.abs().mean(-1), audio.square().mean(-1)], -1)
            return (self.layer(heard) - 0.5).square().mean()

        def validation_step(self, batch, batch_idx):
            pass

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
            if spec.get("estimated"):
                assert self.trainer.estimated_stepping_batches == spec["steps"]
            return optimizer

    last = Path(spec["folder"]) / "last.ckpt"
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=spec["ranks"],
        strategy=pl.strategies.DDPStrategy(
            process_group_backend="gloo", timeout=timedelta(seconds=60)
        )
        if spec["ranks"] > 1
        else "auto",
        accumulate_grad_batches=spec["step"] // spec["ranks"],
        max_steps=spec["steps"],
        limit_train_batches=spec["step"] // spec["ranks"] * 4,
        callbacks=[
            ours.PlayheadCallback(),
            pl.callbacks.ModelCheckpoint(
                spec["folder"],
                save_last=True,
                train_time_interval=timedelta(seconds=spec["pause"]),
                enable_version_counter=False,
            ),
        ],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = ours.PlayheadDataModule(
        spec["config"],
        section="train_ds",
        overrides={"micro_batches_per_step": spec["step"], "info": True},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = Module()
        trainer.fit(module, datamodule=data, ckpt_path=last if last.exists() else None)
    if trainer.is_global_zero:
        done = {"weight": module.layer.weight.tolist(), "step": trainer.global_step}
        (Path(spec["folder"]) / "done.json").write_text(json.dumps(done))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
