"""Playhead: the index of a JSONL file, by its API and by its command."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from meter import Settings, cpu_of, main, median_cpu
from playhead.index.sidecars import Sidecar, build_sidecar


def measure(settings: Settings) -> dict[str, float]:
    manifest = settings.data / "nemo/manifest.json"
    rows = manifest.read_bytes().count(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        sidecar = Sidecar(path=str(manifest), kind="jsonl", idx=f"{folder}/index")
        api = median_cpu(lambda: build_sidecar(sidecar))
        command = [str(Path(sys.executable).with_name("playhead")), "index", str(manifest)]
        cli = cpu_of(
            lambda: subprocess.run(
                [*command, "--indexes-root", folder], check=True, capture_output=True
            )
        )
    return {"jsonl_index_rows_per_s": rows / api, "jsonl_index_cli_rows_per_s": rows / cli}


if __name__ == "__main__":
    main(measure)
