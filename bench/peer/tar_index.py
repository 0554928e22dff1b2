"""Lhotse: the index of a Shar archive."""

from __future__ import annotations

import tempfile
from pathlib import Path

from lhotse.indexing import create_tar_index, read_index

from meter import Settings, cpu_of, main


def measure(settings: Settings) -> dict[str, float]:
    archives = sorted((settings.data / "shar").glob("recording.*.tar"))[
        : 1 if settings.quick else 5
    ]
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        members = 0

        def build() -> None:
            nonlocal members
            for archive in archives:
                create_tar_index(archive, index)
                members += 2 * (len(read_index(index)) - 1)

        cpu = cpu_of(build)
    return {"tar_index_members_per_s": members / cpu}


if __name__ == "__main__":
    main(measure)
