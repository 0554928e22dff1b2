"""Playhead: the columns of a manifest, by one process."""

from __future__ import annotations

import tempfile

from configs import large

from meter import Settings, main, median_cpu
from playhead.blend import read_blend
from playhead.index.build import build_packs


def measure(settings: Settings) -> dict[str, float]:
    leaves = read_blend(large(settings.data)).leaves
    with tempfile.TemporaryDirectory() as folder:
        (result,) = build_packs(leaves, indexes_root=folder)
        cpu = median_cpu(lambda: build_packs(leaves, indexes_root=folder, force=True))
    return {"pack_rows_per_s": result.num_rows / cpu}


if __name__ == "__main__":
    main(measure)
