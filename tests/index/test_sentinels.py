"""Very many `.idx` are compared with their data by the last entry alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from playhead.errors import SourceNotFoundError, StaleIndexError
from playhead.index.sentinels import check_sentinels
from playhead.index.sidecars import Kind, Sidecar

if TYPE_CHECKING:
    from pathlib import Path


def sidecar(folder: Path, data: bytes | None, idx: bytes | None, kind: Kind = "wds_tar") -> Sidecar:
    path, index = folder / "a.tar", folder / "a.tar.idx"
    for file, content in ((path, data), (index, idx)):
        if content is not None:
            file.write_bytes(content)
    return Sidecar(path=str(path), kind=kind, idx=str(index))


def entries(*offsets: int) -> bytes:
    return np.array(offsets, "<u8").tobytes()


@pytest.mark.parametrize(
    ("data", "idx", "kind", "found"),
    [
        (b"x" * 99, entries(0, 50, 99), "jsonl", (2, None)),
        (b"x" * 99, None, "jsonl", (None, None)),
        (b"x" * 98, entries(0, 50, 99), "jsonl", (2, StaleIndexError)),
        (b"x" * 99, entries(0, 99)[:-1], "jsonl", (None, StaleIndexError)),
        (b"x" * 99, b"", "jsonl", (None, StaleIndexError)),
        (None, entries(0, 99), "jsonl", (1, SourceNotFoundError)),
        # Lhotse's last entry of a tar of pairs may leave out a record of zeros.
        (b"x" * 10240 + bytes(10240), entries(0, 10240), "wds_tar", (1, None)),
        (b"x" * 10240 + bytes(10240), entries(0, 10240), "nemo_tar", (1, StaleIndexError)),
        (b"x" * 10240 + bytes(10239) + b"x", entries(0, 10240), "wds_tar", (1, StaleIndexError)),
        (b"x" * 10241 + bytes(10239), entries(0, 10241), "wds_tar", (1, StaleIndexError)),
    ],
)
def test_what_is_known_of_an_index(tmp_path, data, idx, kind, found):
    [(records, error)] = check_sentinels([sidecar(tmp_path, data, idx, kind)])
    assert (records, error and type(error)) == found
