"""Lhotse: the index of a JSONL file, by its API and by its command."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from lhotse.indexing import create_jsonl_index

from meter import Settings, cpu_of, main, median_cpu


def measure(settings: Settings) -> dict[str, float]:
    manifest = settings.data / "nemo/manifest.json"
    rows = manifest.read_bytes().count(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        api = median_cpu(lambda: create_jsonl_index(manifest, Path(folder) / "index"))
        command = [str(Path(sys.executable).with_name("lhotse")), "index", "jsonl", str(manifest)]
        cli = cpu_of(lambda: subprocess.run([*command, "-o", folder], check=True))
    return {"jsonl_index_rows_per_s": rows / api, "jsonl_index_cli_rows_per_s": rows / cli}


if __name__ == "__main__":
    main(measure)
