"""Opens and trains models of NeMo where NeMo is, and writes what it saw.

python nemo_child.py FOLDER: reads `cases.json` there, writes `seen.json`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import torch

from playhead.errors import PlayheadError
from playhead.fit.bucket import buckets_of
from playhead.fit.model import ModelSource
from playhead.fit.models import open_model
from playhead.fit.steps import prepare, train_step
from playhead.fit.training import Training


def main(folder: Path) -> None:
    seen = {}
    for name, case in json.loads((folder / "cases.json").read_text()).items():
        seen[name] = answer(case)
    (folder / "seen.json").write_text(json.dumps(seen))


def answer(case: dict[str, Any]) -> dict[str, Any]:
    try:
        return trained(**case)
    except PlayheadError as error:
        return {"error": str(error), "exit_code": error.exit_code}


def trained(source: dict[str, Any], optimizer: str = "adamw", save: str | None = None) -> Any:
    training = Training(optimizer=optimizer)
    model = open_model(ModelSource(**source), "cpu", training)
    (bucket,) = buckets_of([(1.5, 9)], model.rule)
    batch = model.make_batch(2, bucket.input_length, bucket.output_length)
    prepared = prepare(model, training)
    train_step(prepared, bucket, 2)
    train_step(prepared, bucket, 3)
    loss = model.loss(batch)
    if save is not None:
        model.module.save_to(save)
    return {
        "class": type(model.module).__name__,
        "batch": type(batch).__name__,
        "items": items_of(batch),
        "loss": loss.item(),
        "optimizer": type(prepared.optimizer).__name__,
        "states": len(prepared.optimizer.state),
    }


def items_of(batch: Any) -> list[tuple[list[int], str]]:
    if dataclasses.is_dataclass(batch):
        values = [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    else:
        values = list(batch)
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return [(list(tensor.shape), str(tensor.dtype)) for tensor in tensors]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
