from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from playhead.index.columns import COLUMNS, ColumnSpool
from playhead.index.pack import open_pack
from playhead.index.pack_table import LeafEntry, ShardTable
from playhead.index.pack_write import write_pack

if TYPE_CHECKING:
    from pathlib import Path

WRITE_MUCH = """
import resource, sys
from pathlib import Path
import numpy as np
import pyarrow.ipc
from playhead.index.columns import COLUMNS, ColumnSpool
from playhead.index.pack_write import write_pack

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

folder = Path(sys.argv[1])
spool = ColumnSpool(folder, embed=True, with_parts=False)
block = {name: np.zeros(1 << 16, dtype) for name, dtype in COLUMNS.items()}
block["row_size"] += 64
write_pack(folder / "small.idxpack", [], [], [], ColumnSpool(folder, embed=True, with_parts=False))
before = peak()
for _ in range(32):
    spool.append(block, [bytes(64)] * (1 << 16))
write_pack(folder / "a.idxpack", [], [], [], spool)
print((folder / "a.idxpack").stat().st_size >> 20, peak() - before)
"""


def entry(rows: int, *, embedded: bool) -> LeafEntry:
    return LeafEntry(
        key="k",
        source="s",
        type="nemo",
        start=0,
        num_rows=rows,
        shard_start=0,
        num_shards=99,
        manifests=[],
        embedded=embedded,
        statuses=["pass"] * 99,
    )


def some_shards() -> ShardTable:
    sizes = np.full(99, 1000, np.int64)
    names = pa.array(["shard"] * 99)
    return ShardTable(names, sizes, sizes, sizes, pa.nulls(99, pa.string()))


@pytest.mark.parametrize("rows", [0, 1, 5000])
@pytest.mark.parametrize("embed", [False, True])
def test_what_was_spooled_is_read(tmp_path: Path, rows: int, embed: bool):
    rng = np.random.default_rng(rows)
    block = {name: rng.integers(1, 99, rows).astype(dtype) for name, dtype in COLUMNS.items()}
    texts = [bytes([i % 256]) * int(size) for i, size in enumerate(block["row_size"])]
    path = tmp_path / "a.idxpack"
    with closing(ColumnSpool(tmp_path, embed=embed, with_parts=False)) as spool:
        spool.append(block, texts if embed else None)
        write_pack(path, [entry(rows, embedded=embed)], [some_shards()], [], spool)
    leaf = open_pack(path).leaf("k")
    for name, column in block.items():
        np.testing.assert_array_equal(getattr(leaf, name), column)
    assert [leaf.row_bytes(i) for i in range(rows)] == (texts if embed else [None] * rows)
    assert [file.name for file in tmp_path.iterdir()] == ["a.idxpack"]


def test_memory_does_not_grow_with_the_pack(tmp_path: Path):
    command = [sys.executable, "-c", WRITE_MUCH, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    megabytes, grown = map(int, done.stdout.split())
    assert megabytes > 250
    assert grown < 60
