"""A rank that trains a little and evaluates sets in between, with a collective in every batch.

`python evaluate_sets.py SPEC.json` is one rank; the launcher's variables say which. A spec holds
`config`, `out`, `passes`, `abandoned` (batches of a pass that nobody ends, before the others) and
`num_workers`. What was evaluated and trained on goes to `<out>.<rank>.json`.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import timedelta
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist

import playhead
from playhead.datasets import SpeechToText


class Energy(torch.nn.Module):
    """A model whose forward pass needs all ranks, as one whose weights are sharded does."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        met = self.scale.detach().clone()
        dist.all_reduce(met)
        return self.scale * audio.square().mean(dim=1)


def main(spec: dict) -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    model = Energy()
    training = playhead.dataloader(spec["config"], dataset=SpeechToText(), section="train_ds")
    sets = playhead.validation_dataloaders(
        spec["config"], dataset=SpeechToText(), num_workers=spec["num_workers"]
    )
    torch.manual_seed(rank)
    random.seed(rank)
    for loader in sets.values():
        for batch in islice(loader, spec["abandoned"]):
            model(batch["audio"])
    trained = []
    evaluated = {name: [] for name in sets}
    lengths = {name: len(loader) for name, loader in sets.items()}
    batches = iter(training)
    for _ in range(spec["passes"]):
        trained.append(next(batches)["ids"])
        before = training.state_dict(), torch.random.get_rng_state().tolist(), random.getstate()
        for name, loader in sets.items():
            lines = []
            for batch in loader:
                info = batch["playhead"]
                energies = model(batch["audio"])[info.fresh].tolist()
                ids = [batch["ids"][row] for row in info.fresh]
                places = [info.declared[row] for row in info.fresh]
                lines.append(list(zip(places, ids, energies, strict=True)))
            evaluated[name].append(lines)
        after = training.state_dict(), torch.random.get_rng_state().tolist(), random.getstate()
        assert before == after, "a validation changed what training is in"
    told = {"trained": trained, "evaluated": evaluated, "lengths": lengths}
    Path(f"{spec['out']}.{rank}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
