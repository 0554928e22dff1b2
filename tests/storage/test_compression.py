from __future__ import annotations

import bz2
import gzip
import lzma
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.support.stores import MemoryStore, plugged_in

from playhead.errors import DataError, NotSupportedError, SourceNotFoundError
from playhead.index.source import read_lines
from playhead.storage.compression import open_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


CODECS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}
LINES = b"".join(
    b'{"id": "%d", "x": %d}\n' % (i, random.Random(i).random() * 1e9) for i in range(99)
)


@pytest.fixture(params=CODECS)
def suffix(request: pytest.FixtureRequest) -> str:
    return request.param


def read(path: Path | str, block_bytes: int = 1 << 20) -> bytes:
    return b"".join(block.data for block in read_lines(str(path), block_bytes))


@pytest.mark.parametrize("block_bytes", [1, 1000, 1 << 20])
def test_all_of_it_is_read(tmp_path: Path, suffix: str, block_bytes: int):
    path = tmp_path / f"cuts.jsonl{suffix}"
    path.write_bytes(CODECS[suffix](LINES))
    assert read(path, block_bytes) == LINES


def test_streams_in_a_row_are_one(tmp_path: Path, suffix: str):
    path = tmp_path / f"cuts.jsonl{suffix}"
    streams = [LINES[:700], b"", LINES[700:701], LINES[701:]]
    path.write_bytes(b"".join(map(CODECS[suffix], streams)))
    assert read(path) == LINES


def test_more_than_one_piece_of_a_compressed_file(tmp_path: Path, suffix: str):
    data = random.Random(0).randbytes(300_000).replace(b"\n", b"") + b"\n"
    path = tmp_path / f"cuts.jsonl{suffix}"
    path.write_bytes(CODECS[suffix](data) + CODECS[suffix](data))
    assert read(path) == data + data


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_zeros_behind_a_stream_are_padding(tmp_path: Path, suffix: str):
    path = tmp_path / f"cuts.jsonl{suffix}"
    path.write_bytes(CODECS[suffix](LINES) + bytes(100_000))
    assert read(path) == LINES
    path.write_bytes(CODECS[suffix](LINES) + bytes(8) + CODECS[suffix](LINES))
    assert read(path) == LINES + LINES


def test_a_byte_order_mark_in_a_compressed_file(tmp_path: Path, suffix: str):
    path = tmp_path / f"cuts.jsonl{suffix}"
    path.write_bytes(CODECS[suffix](b"\xef") + CODECS[suffix](b"\xbb\xbf" + LINES))
    (block,) = read_lines(str(path))
    assert (block.data, block.offset) == (LINES, 3)


def test_cut_short_anywhere_it_is_an_error(tmp_path: Path, suffix: str):
    path = tmp_path / f"cuts.jsonl{suffix}"
    first, second = CODECS[suffix](LINES), CODECS[suffix](LINES[:500])
    for size in range(len(first) + len(second)):
        path.write_bytes((first + second)[:size])
        if size == len(first):
            # Two streams, of which one is left: nobody can tell.
            assert read(path) == LINES
            continue
        with pytest.raises(DataError, match="cannot be decompressed") as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_a_flipped_bit_never_makes_another_manifest(tmp_path: Path, suffix: str):
    path = tmp_path / f"cuts.jsonl{suffix}"
    whole = CODECS[suffix](LINES) + CODECS[suffix](LINES)
    wrong = []
    for place in random.Random(1).sample(range(8 * len(whole)), 400):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            found = read(path)
        except DataError:
            continue
        wrong += [place] if found != LINES + LINES else []
    # zstd has a checksum only where its writer asked for one, and this one did not.
    assert not wrong or suffix == ".zst"


@pytest.mark.parametrize("behind", [b"garbage", b"\0\0garbage", b"\x1f", b"BZh", b"\xfd7zXZ\0\0\4"])
def test_what_is_behind_it_is_not_passed_over(tmp_path: Path, suffix: str, behind: bytes):
    path = tmp_path / f"cuts.jsonl{suffix}"
    path.write_bytes(CODECS[suffix](LINES) + behind)
    with pytest.raises(DataError, match="cannot be decompressed"):
        read(path)


def test_the_wrong_suffix(tmp_path: Path, suffix: str):
    path = tmp_path / f"cuts.jsonl{suffix}"
    path.write_bytes(LINES)
    with pytest.raises(DataError, match="cannot be decompressed"):
        read(path)


def test_other_codecs_are_refused(tmp_path: Path):
    path = tmp_path / "cuts.jsonl.lz4"
    path.write_bytes(LINES)
    with pytest.raises(NotSupportedError, match="gzip, bzip2, xz or zstd only"):
        read(path)


def test_errors_of_the_disk_are_no_damage(tmp_path: Path):
    with pytest.raises(FileNotFoundError), open_whole(str(tmp_path / "none.jsonl.gz")):
        pass


def test_objects_and_commands_are_read_as_files_are(tmp_path: Path, suffix: str):
    data = CODECS[suffix](LINES)
    (tmp_path / f"cuts.jsonl{suffix}").write_bytes(data)
    uris = [f"s3://b/cuts.jsonl{suffix}", f"http://b/cuts.jsonl{suffix}?key=1.txt"]
    with plugged_in(MemoryStore(dict.fromkeys(uris, data))):
        assert [read(uri, 1000) for uri in uris] == [LINES, LINES]
    # What a command writes is what it is, whatever the command names.
    assert read(f"pipe:cat {tmp_path}/cuts.jsonl{suffix}") == data


def test_an_object_that_is_gone_is_no_damage():
    with plugged_in(MemoryStore()), pytest.raises(SourceNotFoundError):
        read("s3://b/cuts.jsonl.gz")
