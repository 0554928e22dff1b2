"""Steps of a run on any ranks and workers, and the state after them."""

from __future__ import annotations

import hashlib
import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import playhead

if TYPE_CHECKING:
    from collections.abc import Callable


def steps(
    config: dict[str, Any],
    count: int,
    *,
    world: int,
    told: Callable[[dict[str, Any]], Any],
    workers: int = 0,
    state: Any = None,
    **options: Any,
) -> tuple[dict[tuple[int, int], Any], Any]:
    """What is told of the batches of some steps, by (step, slot), whatever ranks there are; and the
    state then, which has to be the same on all of them."""
    found, states = {}, []
    for rank in range(world):
        loader = playhead.dataloader(
            config, rank=rank, world_size=world, num_workers=workers, info=True, **options
        )
        if state is not None:
            loader.load_state_dict(state)
        for batch in islice(loader, count * config["micro_batches_per_step"] // world):
            found[batch["playhead"].step, batch["playhead"].slot] = told(batch)
        states.append(loader.state_dict())
    assert all(each == states[0] for each in states)
    return found, json.loads(json.dumps(states[0]))


def heard(batch: dict[str, Any]) -> tuple[list[str], list[str], str]:
    """Ids, texts and a digest of the audio of a batch of `SpeechToText`."""
    audio = hashlib.sha256(batch["audio"].numpy().tobytes()).hexdigest()
    return batch["ids"], batch["texts"], audio
