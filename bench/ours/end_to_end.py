"""Playhead: decoded audio from NeMo archives and plain files, with both kinds of dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from configs import plain, tarred

import playhead
from meter import Settings, main
from speech import LhotseSpeech
from streaming import stream_rates

if TYPE_CHECKING:
    from collections.abc import Callable

_DATASETS: dict[str, Callable[[], Any]] = {
    "": lambda: None,
    "lhotse_": LhotseSpeech,
}


def measure(settings: Settings) -> dict[str, float]:
    count = 15 if settings.quick else 30
    figures: dict[str, float] = {}
    for workers in (0, 2):
        for name, config in (("tarred", tarred(settings.data)), ("files", plain(settings.data))):
            for kind, dataset in _DATASETS.items():
                loader = playhead.dataloader(config, dataset=dataset(), num_workers=workers)
                cpu, wall = stream_rates(iter(loader), count)
                loader.close()
                figures[f"{kind}{name}_{workers}_cpu"] = cpu
                figures[f"{kind}{name}_{workers}_wall"] = wall
    return figures


if __name__ == "__main__":
    main(measure)
