"""Playhead: looking at a position of very many leaves, and at a checkpoint of five gigabytes."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from many_manifests import RANKS, blend_of

import playhead
from meter import Settings, cpu_of, main
from playhead.datasets import Ids
from playhead.inspect import inspect_checkpoint

_TENSOR_BYTES = 5 << 30
_STEPS = 100


def measure(settings: Settings) -> dict[str, float]:
    config = blend_of(settings.data, 800 if settings.quick else 80_000)
    state = _state_of(config)
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "position.json"), Path(folder, "large.ckpt")
        small.write_text(json.dumps({"loader": state}))
        _write_sparse(large, {"loader": state})
        return {
            "with_config_s": cpu_of(lambda: inspect_checkpoint(small, config)),
            "alone_s": cpu_of(lambda: inspect_checkpoint(small)),
            "five_gb_s": cpu_of(lambda: inspect_checkpoint(large)),
        }


def _state_of(config: Path) -> dict[str, Any]:
    """The state after some steps."""
    loader = playhead.dataloader(config, dataset=Ids(), rank=0, world_size=RANKS)
    for _ in itertools.islice(loader, _STEPS):
        pass
    state = loader.state_dict()
    loader.close()
    return state


def _write_sparse(path: Path, content: dict[str, Any]) -> None:
    """A checkpoint of PyTorch with room for tensors that takes none of the disk."""
    with path.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content, protocol=2))
        file.seek(_TENSOR_BYTES, os.SEEK_CUR)
        archive.start_dir = file.tell()


if __name__ == "__main__":
    main(measure)
