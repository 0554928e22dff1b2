"""A job that trains a small Whisper with a Trainer or with accelerate, and notes on what.

`python train_hugging_face.py SPEC.json`, under torchrun for several processes. A spec holds
`framework` (`trainer`, `accelerate`), `blend`, `overrides`, `folder` (of checkpoints, and of the
notes and `weights.pt`), `accumulation`, `steps`, `save_every`, and maybe `dropout`, and `kill_at`:
the step, and the number of a batch in it, that the last rank does not come back from.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import playhead
from playhead.integrations.huggingface import (
    PlayheadTrainerMixin,
    last_checkpoint,
    prepare_loader,
)
from support.small_whisper import Notes, WhisperInputs, small_whisper

if TYPE_CHECKING:
    from playhead import Loader


class Killed(Notes):
    """Notes of a job that is killed when it is to train on some batch."""

    def __init__(self, spec: dict[str, Any], loader: Loader) -> None:
        super().__init__(Path(spec["folder"]) / f"notes.{loader.rank}.jsonl")
        last = loader.rank == loader.world_size - 1
        self._kill_at = spec.get("kill_at") if last else None
        self._step, self._count = -1, 0

    def add(self, step: int, batch: dict[str, Any]) -> None:
        super().add(step, batch)
        self._step, self._count = step, self._count + 1 if step == self._step else 1
        if [step, self._count] == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def train_with_trainer(spec: dict[str, Any], loader: Loader, folder: Path) -> Any:
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

    notes = Killed(spec, loader)

    class SpeechTrainer(PlayheadTrainerMixin, Seq2SeqTrainer):
        def training_step(self, model: Any, inputs: Any, *more: Any) -> Any:
            notes.add(self.state.global_step, inputs)
            return super().training_step(model, inputs, *more)

    trainer = SpeechTrainer(
        model=small_whisper(spec.get("dropout", 0.0)),
        args=Seq2SeqTrainingArguments(
            output_dir=str(folder),
            gradient_accumulation_steps=spec["accumulation"],
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            max_steps=spec["steps"],
            save_steps=spec["save_every"],
        ),
        train_dataset=loader,
    )
    trainer.train(resume_from_checkpoint=last_checkpoint(folder))
    return trainer.model


def train_with_accelerate(spec: dict[str, Any], loader: Loader, folder: Path) -> Any:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=spec["accumulation"])
    model = small_whisper(spec.get("dropout", 0.0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    batches = prepare_loader(accelerator, loader)
    notes = Killed(spec, loader)
    step = 0
    saved = sorted(folder.glob("step-*"), key=lambda path: int(path.name[5:]))
    if saved:
        accelerator.load_state(str(saved[-1]))
        step = int(saved[-1].name[5:])
    for batch in batches:
        if step == spec["steps"]:
            break
        notes.add(step, batch)
        with accelerator.accumulate(model):
            loss = model(input_features=batch["input_features"], labels=batch["labels"]).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        if not accelerator.sync_gradients:
            continue
        step += 1
        if step % spec["save_every"] == 0:
            accelerator.save_state(str(folder / "unfinished"))
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                (folder / "unfinished").rename(folder / f"step-{step}")
            accelerator.wait_for_everyone()
    return accelerator.unwrap_model(model)


def run(spec: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    loader = playhead.dataloader(spec["blend"], dataset=WhisperInputs(), **spec["overrides"])
    train = train_with_trainer if spec["framework"] == "trainer" else train_with_accelerate
    folder = Path(spec["folder"])
    model = train(spec, loader, folder)
    if loader.rank == 0:
        torch.save(model.state_dict(), folder / "weights.pt")
    loader.close()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()))
