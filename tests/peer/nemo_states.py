"""Run by a Python that has NeMo: states of its loaders, and what was read.

`nemo_states.py FOLDER` writes `FOLDER/nemo.json`. NeMo 3.0 has no loader that saves a state: its
sampler and graph of sources are those of the config, and torchdata's loader runs them, as later
versions do.
"""

from __future__ import annotations

import copy
import json
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
from lhotse_states import ROWS, Ids, counted, make, per_rank  # noqa: E402
from nemo.collections.common.data.lhotse import dataloader as nemo_dataloader  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from torchdata.stateful_dataloader import StatefulDataLoader  # noqa: E402

RANKS, WORKERS, STEPS = 2, 2, 25
PLAIN = {"use_bucketing": False}
BUCKETS = {
    "use_bucketing": True,
    "num_buckets": 3,
    "bucket_duration_bins": [3.0, 6.0],
    "bucket_buffer_size": 20,
    "concurrent_bucketing": False,
}


class Texts(list):
    """What one cut becomes: a list that can say where it is from, which a plain one cannot."""


flattened = nemo_dataloader._flatten_alt_text
nemo_dataloader._flatten_alt_text = lambda cut: Texts(flattened(cut))


def section(folder: Path, more: dict) -> dict:
    files = make(folder)
    inner = folder / "inner.yaml"
    below = [
        {"type": "lhotse", "corpus": name, "weight": weight, "cuts_path": str(files[name])}
        for name, weight in (("b", 0.4), ("c", 0.6))
    ]
    inner.write_text(json.dumps(below))
    first = {"type": "lhotse", "corpus": "a", "weight": 0.5, "cuts_path": str(files["a"])}
    return {
        "input_cfg": [first, {"type": "group", "weight": 0.5, "input_cfg": str(inner)}],
        "reweight_temperature": [1.0, 0.5],
        "seed": 0,
        "shard_seed": 0,
        "shuffle": False,
        "batch_duration": 20,
        "max_duration": 20.0,
        "force_iterable_dataset": True,
        "num_workers": WORKERS,
        "sample_rate": 16000,
        **more,
    }


def main(folder: Path) -> None:
    cases = {}
    for name, more in (("plain", PLAIN), ("buckets", BUCKETS)):
        config = section(folder, more)
        ids, states = [], []
        for rank in range(RANKS):
            made = nemo_dataloader.get_lhotse_dataloader_from_config(
                OmegaConf.create(config),
                global_rank=rank,
                world_size=RANKS,
                dataset=Ids(),
                tokenizer=None,
            )
            loader = StatefulDataLoader(
                made.dataset,
                batch_size=None,
                num_workers=WORKERS,
                worker_init_fn=made.worker_init_fn,
            )
            for _, batch in zip(range(STEPS), loader, strict=False):
                ids += batch
            states.append(copy.deepcopy(loader.state_dict()))
        cases[name] = {
            "config": {"train_ds": config},
            "state": per_rank(states),
            "read": [counted(ids)[one] for one in ROWS],
        }
    (folder / "nemo.json").write_text(json.dumps(cases, default=list))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
