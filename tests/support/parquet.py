"""Parquet files with audio in their cells, and leaves over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from playhead.blend.leaf import Leaf, LeafOptions
from support.corpus import wav_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

OWN = {
    "audio_field": "audio",
    "duration_field": "duration",
    "id_field": "id",
    "sampling_rate": None,
}


def parquet_leaf(
    *paths: Path, own: dict[str, Any] | None = None, tags: dict | None = None, **options: Any
) -> Leaf:
    return Leaf(
        key="leaf",
        name="leaf",
        type="parquet",
        weight=1 << 32,
        paths={"parquet": tuple(map(str, paths))},
        options=LeafOptions(**options),
        own={**OWN, **(own or {})},
        tags=tags or {},
    )


def write_table(
    path: Path, table: pa.Table | dict[str, Any], rows: int = 4, **options: Any
) -> Path:
    """A Parquet file with so many rows in a row group."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(table, dict):
        table = pa.table(table)
    pq.write_table(table, path, row_group_size=rows, **options)
    return path


def cells(audio: Sequence[bytes | None], kind: str, paths: Sequence[str | None] = ()) -> pa.Array:
    """Cells of audio: `bytes`, or `struct` with bytes and paths, or `path`, a struct of paths."""
    named = list(paths) or [None] * len(audio)
    if kind == "bytes":
        return pa.array(audio, pa.binary())
    pairs: Iterable[tuple[bytes | None, str | None]] = zip(audio, named, strict=True)
    if kind == "path":
        return pa.array([{"path": path} for _, path in pairs], pa.struct([("path", pa.string())]))
    return pa.array(
        [{"bytes": data, "path": path} for data, path in pairs],
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    )


SECONDS = [0.1, 0.25, 0.3, 0.05, 0.2, 0.4, 0.15, 0.35, 0.45, 0.5]


def audio_of(number: int) -> bytes:
    return wav_bytes(SECONDS[number % len(SECONDS)], rate=8000, seed=number)


def speech_columns(num_rows: int, kind: str = "bytes") -> dict[str, Any]:
    """Columns of a small corpus; row n says `text n` for `SECONDS[n % 10]`."""
    return {
        "id": [f"row-{n}" for n in range(num_rows)],
        "audio": cells([audio_of(n) for n in range(num_rows)], kind),
        "duration": [SECONDS[n % len(SECONDS)] for n in range(num_rows)],
        "text": [f"text {n}" for n in range(num_rows)],
        "lang": ["en"] * num_rows,
        "speaker": [n % 3 for n in range(num_rows)],
    }
