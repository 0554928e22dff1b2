"""Our `.idx` are Lhotse 2's, byte for byte; its Python is named by PLAYHEAD_PEER_PYTHON."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from playhead.index.sidecars import Sidecar, build_sidecar

LHOTSE = """
import sys
from lhotse.indexing import create_jsonl_index, create_tar_index
for path in sys.argv[1:]:
    (create_tar_index if path.endswith(".tar") else create_jsonl_index)(path)
"""

ROWS = {
    "plain": b'{"a": 1}\n{"a": "\xc3\xbc"}\n',
    "no newline at the end": b"{}\n{}",
    "crlf": b"{}\r\n{}\r\n",
    "cr": b"{}\r{}\r",
    "blank lines": b"\n\n{}\n\n",
    "bom": b"\xef\xbb\xbf{}\n{}\n",
    "line separator": '{"a": "\u2028"}\n{}\n'.encode(),
    "empty": b"",
    "many": b"".join(b'{"id": %d}\n' % i for i in range(400_000)),
}


def write_shar(
    path: Path, count: int, *, dialect: int = tarfile.PAX_FORMAT, name: str = "cut"
) -> None:
    with tarfile.open(path, "w", format=dialect) as tar:
        for i in range(count):
            for suffix, size in (("flac", 700 + 997 * i % 4000), ("json", 40)):
                info = tarfile.TarInfo(f"{name}-{i}.{suffix}")
                info.size = size
                tar.addfile(info, io.BytesIO(b"x" * size))


@pytest.fixture(scope="module")
def peer() -> str:
    python = os.environ.get("PLAYHEAD_PEER_PYTHON", "")
    if not Path(python).is_file():
        pytest.skip("PLAYHEAD_PEER_PYTHON names no Python with lhotse 2")
    return python


def test_same_bytes(tmp_path, peer):
    """All kinds of line ends, and Shar archives around the borders of a tar's records."""
    for name, data in ROWS.items():
        (tmp_path / f"{name}.jsonl").write_bytes(data)
    for count in range(60):
        write_shar(tmp_path / f"{count}.tar", count)
    write_shar(tmp_path / "gnu.tar", 30, dialect=tarfile.GNU_FORMAT, name="long" * 40)
    write_shar(tmp_path / "pax.tar", 30, name="lang-ä" * 40)
    write_shar(tmp_path / "unpadded.tar", 9)
    with tarfile.open(tmp_path / "unpadded.tar") as tar:
        end = tar.getmembers()[-1].offset_data + 512
    os.truncate(tmp_path / "unpadded.tar", end)
    paths = sorted(str(path) for path in tmp_path.iterdir())
    subprocess.run([peer, "-c", LHOTSE, *paths], check=True, timeout=120)
    for path in paths:
        theirs = Path(f"{path}.idx").read_bytes()
        kind = "wds_tar" if path.endswith(".tar") else "jsonl"
        ours = Sidecar(path=path, kind=kind, idx=f"{path}.ours")
        build_sidecar(ours)
        assert Path(ours.idx).read_bytes() == theirs, path
