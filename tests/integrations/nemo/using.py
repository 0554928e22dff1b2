"""Uses NeMo with and without Playhead in it, and writes what comes out; run where NeMo is.

- `python using.py model CONFIG.json OUT.json`: transcribes, validates and sets training up.
- `torchrun … using.py slot CONFIG.json OUT`: one data-parallel slot of two ranks, whose
  `DataModule` makes a loader on each; `OUT.RANK` gets what each is given.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning.pytorch as pl
import torch
from omegaconf import OmegaConf

from playhead.integrations.nemo import install, uninstall


def of_model(content: dict[str, Any]) -> dict[str, Any]:
    from nemo.collections.asr.models import EncDecCTCModelBPE

    settings = OmegaConf.create(content)
    sections = {
        name: OmegaConf.to_container(settings.model[name], resolve=True)
        for name in ("train_ds", "validation_ds")
    }
    files = [
        json.loads(line)["audio_filepath"]
        for line in Path(sections["validation_ds"]["manifest_filepath"]).read_text().splitlines()
    ]
    for name in sections:
        del settings.model[name]
    trainer = pl.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        max_steps=3,
    )
    pl.seed_everything(1)
    model = EncDecCTCModelBPE(cfg=settings.model, trainer=trainer)
    answer = {}
    for name in ("theirs", "ours"):
        install() if name == "ours" else uninstall()
        model.setup_validation_data(OmegaConf.create(sections["validation_ds"]))
        said = model.transcribe(files, batch_size=3, num_workers=0, verbose=False)
        answer[name] = {
            "loader": type(model.val_dataloader()).__name__,
            "transcripts": [one.text for one in said],
            "validation": trainer.validate(model, verbose=False),
        }
    model.setup_training_data(OmegaConf.create(sections["train_ds"]))
    return {**answer, "limit_train_batches": trainer.limit_train_batches}


class Digests:
    """What is in a batch, in few words."""

    def __getitem__(self, cuts: Any) -> list[str]:
        return [hashlib.sha256(cut.load_audio().tobytes()).hexdigest() for cut in cuts]


def of_slot(content: dict[str, Any], out: Path) -> None:
    import torch.distributed as dist
    from nemo.collections.speechlm2.data.datamodule import DataModule

    dist.init_process_group("gloo")
    names = ("dp_replicate", "dp_shard", "tp")
    mesh = dist.device_mesh.init_device_mesh("cpu", (1, 1, 2), mesh_dim_names=names)
    install()
    model = content["model"]
    train = {**model["train_ds"], "sample_rate": model["sample_rate"], "num_workers": 0}
    module = DataModule(OmegaConf.create({"train_ds": train}), None, Digests())
    module.trainer = SimpleNamespace(model=SimpleNamespace(device_mesh=mesh))
    loader = module.train_dataloader()
    batches = iter(loader)
    given = {
        "loader": type(loader).__name__,
        "ranks": [loader.rank, loader.world_size],
        "batches": [next(batches) for _ in range(4)],
        "state": loader.state_dict(),
    }
    Path(f"{out}.{dist.get_rank()}").write_text(json.dumps(given))
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, path, target = sys.argv[1:]
    read = json.loads(Path(path).read_text())
    if what == "model":
        Path(target).write_text(json.dumps(of_model(read)))
    else:
        of_slot(read, Path(target))
