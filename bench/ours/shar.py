"""Playhead: decoded audio from a Lhotse Shar, with both kinds of dataset."""

from __future__ import annotations

from configs import shar

import playhead
from meter import Settings, main
from speech import LhotseSpeech
from streaming import stream_rates


def measure(settings: Settings) -> dict[str, float]:
    count = 15 if settings.quick else 40
    figures: dict[str, float] = {}
    for workers in (0, 2):
        for kind, dataset in (("", None), ("lhotse_", LhotseSpeech())):
            loader = playhead.dataloader(shar(settings.data), dataset=dataset, num_workers=workers)
            cpu, wall = stream_rates(iter(loader), count)
            loader.close()
            figures[f"{kind}shar_{workers}_cpu"] = cpu
            figures[f"{kind}shar_{workers}_wall"] = wall
    return figures


if __name__ == "__main__":
    main(measure)
