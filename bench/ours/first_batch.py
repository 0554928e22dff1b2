"""Playhead: the time from the call to the first batch of a large leaf whose pack is there."""

from __future__ import annotations

from configs import large

import playhead
from meter import Settings, cpu_of, main
from playhead.datasets import Ids


def measure(settings: Settings) -> dict[str, float]:
    config = large(settings.data)
    playhead.dataloader(config, dataset=Ids())  # builds the pack if it is not there
    first = cpu_of(lambda: next(iter(playhead.dataloader(config, dataset=Ids()))))
    return {"first_batch_indexed_s": first}


if __name__ == "__main__":
    main(measure)
