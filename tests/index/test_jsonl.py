import subprocess
import sys
from itertools import accumulate, chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import playhead.index.jsonl
from playhead.errors import SourceNotFoundError
from playhead.index.jsonl import iter_jsonl_offsets, scan_jsonl


def expected(data: bytes) -> list[int]:
    """The rule itself: `\\n` alone ends a record, and what is left over is a record too."""
    parts = [part + b"\n" for part in data.split(b"\n")]
    parts[-1] = parts[-1][:-1]
    return list(accumulate((len(part) for part in parts if part), initial=0))


@pytest.mark.parametrize(
    ("data", "offsets"),
    [
        (b"", [0]),
        (b"{}\n{}\n", [0, 3, 6]),
        (b"{}\n{}", [0, 3, 5]),
        (b"{}\r\n{}\r\n", [0, 4, 8]),
        (b"{}\r{}\r", [0, 6]),
        (b"\n\n{}\n", [0, 1, 2, 5]),
        (b"\xef\xbb\xbf{}\n{}\n", [0, 6, 9]),
        ('{"a":"\u2028"}\n{}\n'.encode(), [0, 12, 15]),
    ],
    ids=["empty", "plain", "no newline at the end", "CRLF", "CR", "blank", "BOM", "U+2028"],
)
def test_records(tmp_path, data, offsets):
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    found = scan_jsonl(path)
    assert found.dtype == np.uint64
    assert found.tolist() == offsets


@given(
    data=st.lists(st.sampled_from([b"\n", b"\r\n", b"x", b'{"a": 1}'])).map(b"".join),
    block=st.integers(1, 9),
)
def test_blocks_do_not_show(tmp_path_factory, data, block):
    path = tmp_path_factory.getbasetemp() / "blocks.jsonl"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(playhead.index.jsonl, "_BLOCK", block)
        pieces = [piece.tolist() for piece in iter_jsonl_offsets(path)]
    assert list(chain(*pieces)) == expected(data)
    assert pieces[-1] == [len(data)]


def test_missing_file_is_named(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"nowhere\.jsonl"):
        scan_jsonl(tmp_path / "nowhere.jsonl")


def test_memory_does_not_grow_with_the_file(tmp_path):
    """256 MiB with 8 M records, most of it a hole, in a process with its own peak."""
    path = tmp_path / "large.jsonl"
    with path.open("wb") as file:
        file.write(b"\n" * 8_000_000)
        file.truncate(1 << 28)
    code = """
import resource, sys
from playhead.index.sidecars import Sidecar, build_sidecar
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(build_sidecar(Sidecar(path=sys.argv[1], kind="jsonl", idx=sys.argv[1] + ".idx")))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    records, kibibytes = map(int, done.stdout.split())
    assert records == 8_000_001
    assert kibibytes < 40 * 1024
