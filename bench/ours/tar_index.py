"""Playhead: the index of archives, of one member a sample (NeMo) and of two (Shar)."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from meter import Settings, main, median_cpu
from playhead.index.sidecars import Sidecar, build_sidecar

if TYPE_CHECKING:
    from playhead.index.sidecars import Kind


def measure(settings: Settings) -> dict[str, float]:
    kinds: dict[Kind, tuple[str, int]] = {"nemo_tar": ("tarred", 1), "wds_tar": ("shar", 2)}
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, (name, members) in kinds.items():
            sidecars = [
                Sidecar(path=str(path), kind=kind, idx=f"{folder}/{path.name}.idx")
                for path in sorted((settings.data / name).glob("*.tar"))
            ]
            samples = sum(map(build_sidecar, sidecars))
            cpu = median_cpu(lambda those=sidecars: [build_sidecar(one) for one in those])
            figures[f"{name}_index_members_per_s"] = samples * members / cpu
    return figures


if __name__ == "__main__":
    main(measure)
