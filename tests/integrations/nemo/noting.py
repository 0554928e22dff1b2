"""Runs a training script of NeMo, and writes down what its model is trained on.

`python noting.py FOLDER SCRIPT ARGUMENT…`, with a Python that has NeMo. Every training step appends
a line to `FOLDER/trained-RANK.jsonl`, synced to disk: the name of the run, the optimizer step, a
digest of the batch, the loss, and a digest of the weights before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import torch
from nemo.collections.asr.models import EncDecCTCModelBPE


def digest(tensors: Any) -> str:
    seen = hashlib.sha256()
    for tensor in tensors:
        array = tensor.detach().cpu().contiguous().numpy()
        seen.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return seen.hexdigest()[:16]


def note_training(folder: Path) -> None:
    step = EncDecCTCModelBPE.training_step

    def noted(self: Any, batch: Any, batch_nb: int) -> Any:
        weights = digest(self.state_dict().values())
        made = step(self, batch, batch_nb)
        line = {
            "run": os.environ["RUN"],
            "step": self.trainer.global_step,
            "batch": digest(batch),
            "size": len(batch[0]),
            "loss": made["loss"].item(),
            "weights": weights,
        }
        with (folder / f"trained-{self.trainer.global_rank}.jsonl").open("a") as lines:
            lines.write(json.dumps(line) + "\n")
            lines.flush()
            os.fsync(lines.fileno())
        return made

    EncDecCTCModelBPE.training_step = noted


if __name__ == "__main__":
    torch.set_num_threads(1)
    note_training(Path(sys.argv[1]))
    script, *arguments = sys.argv[2:]
    # Ranks that Lightning starts are called as this process was.
    own = sys.argv
    sys.argv = [script, *arguments]
    namespace = runpy.run_path(script)
    sys.argv = own
    namespace["main"](*arguments)
