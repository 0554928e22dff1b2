"""Playhead: opening a pack of 100,000 shards, with one of its leaves and the table of its files."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from meter import Settings, main, median_cpu
from playhead.index.columns import COLUMNS, ColumnSpool, Digester
from playhead.index.pack import open_pack
from playhead.index.pack_table import LeafEntry, ShardTable
from playhead.index.pack_write import write_pack

_PAIRS = 50_000
_ROWS_A_SHARD = 20
_REPEATS = 15


def measure(settings: Settings) -> dict[str, float]:
    pairs = _PAIRS // 10 if settings.quick else _PAIRS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "many.idxpack")
        _write(path, pairs)
        cpu = median_cpu(lambda: _open(path), _REPEATS)
    return {"open_ms": 1000 * cpu}


def _open(path: Path) -> None:
    assert len(open_pack(path).leaf("leaf").shards)


def _write(path: Path, pairs: int) -> None:
    rows = pairs * _ROWS_A_SHARD
    columns = {name: np.zeros(rows, dtype) for name, dtype in COLUMNS.items()}
    columns["duration_us"] += 5_000_000
    columns["shard"] += np.repeat(np.arange(0, 2 * pairs, 2, np.int32), _ROWS_A_SHARD)
    columns["tar"] += columns["shard"] + np.int32(1)
    digester = Digester()
    digester.append(columns)
    entry = LeafEntry(
        key="leaf",
        source="0" * 16,
        type="nemo_tarred",
        start=0,
        num_rows=rows,
        shard_start=0,
        num_shards=2 * pairs,
        manifests=list(range(0, 2 * pairs, 2)),
    )
    names = (
        name
        for number in range(pairs)
        for name in (f"/data/speech/manifest_{number}.json", f"/data/speech/audio_{number}.tar")
    )
    sizes = np.full(2 * pairs, 1_000_000)
    shards = ShardTable(
        pa.array(names, pa.string()),
        sizes,
        sizes,
        np.tile([_ROWS_A_SHARD, 0], pairs),
        pa.nulls(2 * pairs, pa.string()),
    )
    with closing(ColumnSpool(path.parent, embed=False, with_parts=False)) as spool:
        spool.append(columns)
        write_pack(path, [entry], [shards], digester.digests, spool)


if __name__ == "__main__":
    main(measure)
