"""The original tool's search on one device: every size is a step in this one process.

Takes a JSON file with the model, its buckets and the budget; prints the sizes and the number of
tries as JSON.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]


def main() -> int:
    asked = json.loads(Path(sys.argv[1]).read_text())
    # The algorithm stands with the tests, which count its tries on simulated devices.
    sys.path[:0] = [str(_ROOT / "tests"), str(_ROOT / "examples"), str(Path.cwd())]
    from support.original_search import original_search

    sizes, tries = original_search(len(asked["buckets"]), _steps(asked), largest=asked["largest"])
    print(json.dumps({"sizes": sizes, "tries": tries}))
    return 0


def _steps(asked: dict[str, Any]) -> Any:
    import torch

    from playhead.fit.bucket import Bucket
    from playhead.fit.live_tensors import LiveTensors
    from playhead.fit.model import ModelSource
    from playhead.fit.models import open_model
    from playhead.fit.probing.oom import judge
    from playhead.fit.steps import prepare, train_step
    from playhead.fit.training import Training

    device = torch.device(asked["device"])
    on_gpu = device.type == "cuda"
    if on_gpu:
        device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(device)
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, asked["budget"] / total), device)
    training = Training(dtype=asked["dtype"])
    model = open_model(ModelSource(**asked["source"]), str(device), training)
    buckets = [
        Bucket(bound=bound, input_length=first, output_length=second)
        for bound, first, second in asked["buckets"]
    ]
    counted = None if on_gpu else LiveTensors(limit=asked["budget"])
    if counted is not None:
        counted.watch(chain(model.module.parameters(), model.module.buffers()))
    with counted or nullcontext():
        prepared = prepare(model, training)

    def fits(bucket: int, size: int) -> bool:
        try:
            with counted or nullcontext():
                train_step(prepared, buckets[bucket], size)
        except Exception as error:
            if judge(error) == "fault":
                raise
            prepared.optimizer.zero_grad(set_to_none=True)
            return False
        return True

    return fits


if __name__ == "__main__":
    sys.exit(main())
