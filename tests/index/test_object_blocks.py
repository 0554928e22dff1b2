"""Archives on stores: what is asked for, how often, and that nothing else is found."""

from __future__ import annotations

import io
import tarfile
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.stores import MemoryStore, plugged_in

from playhead.errors import ArchiveError, DataError, SourceNotFoundError
from playhead.index.object_blocks import Link, ObjectBlocks
from playhead.index.tar import head_offsets, scan_tar
from playhead.index.tarhop import Archive
from playhead.storage.base import ByteRange, Stat

if TYPE_CHECKING:
    from collections.abc import Sequence

MIB = 1 << 20
URI = "s3://bucket/a.tar"


class SparseTar(MemoryStore):
    """An archive of members of given sizes whose payloads nobody holds."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.headers: dict[int, bytes] = {}
        at = 0
        for number, size in enumerate(sizes):
            info = tarfile.TarInfo(f"{number:05d}.flac")
            info.size = size
            self.headers[at] = info.tobuf()
            at += 512 + -(-size // 512) * 512
        self.size = at + 1024

    def stats(self, uris):
        return [Stat(self.size, 1)] * len(uris)

    def has_ranges(self, uri):
        return True

    def read(self, ranges):
        self.asked += ranges
        return [self._cut(one) for one in ranges]

    def _cut(self, one: ByteRange) -> bytes:
        data = bytearray(one.size)
        for at, header in self.headers.items():
            first, last = max(at, one.offset), min(at + 512, one.offset + one.size)
            if first < last:
                data[first - one.offset : last - one.offset] = header[first - at : last - at]
        return bytes(data)


@pytest.fixture
def link(monkeypatch):
    """A link on which a gap is worth a request from a length on that no clock decides."""
    monkeypatch.setattr(Link, "gap", 4 * MIB)


def found(store: MemoryStore, uri: str = URI) -> list[tuple[str, int, int]]:
    with plugged_in(store):
        return [(one.name, one.payload, one.size) for one in Archive(uri).hop()]


def test_short_members_are_read_through_in_few_requests():
    store = SparseTar([40_000] * 100)
    members = found(store)
    assert len(members) == 100
    assert members[-1][0] == "00099.flac"
    # 4 MB: one block to see what is there, then the others side by side.
    assert len(store.asked) == 4
    assert store.num_bytes == store.size
    assert store.asked[0].size == MIB


def test_a_long_archive_of_short_members_is_read_in_blocks_that_grow(link):
    store = SparseTar([400_000] * 1000)
    assert len(found(store)) == 1000
    assert len(store.asked) < 100
    assert max(one.size for one in store.asked) == 8 * MIB
    assert store.num_bytes == store.size


def test_long_payloads_are_hopped_over():
    store = SparseTar([100_000_000] * 20)
    assert len(found(store)) == 20
    # One a member, and one for the end mark.
    assert len(store.asked) <= 21
    assert store.num_bytes <= 21 * MIB


def test_data_and_metadata_of_a_sample_are_found_by_one_request():
    store = SparseTar([100_000_000, 300] * 20)
    assert len(found(store)) == 40
    assert len(store.asked) <= 21
    assert store.num_bytes <= 21 * MIB


def test_when_short_members_end_not_more_is_asked_for_in_vain_than_was_read_four_times(link):
    short, long = [100_000] * 200, [100_000_000] * 5
    store = SparseTar(short + long)
    assert len(found(store)) == 205
    assert store.num_bytes < 5 * sum(short) + 32 * MIB
    assert store.num_bytes < store.size / 5


@pytest.mark.parametrize("size", [100, 40_000, 100_000_000])
def test_the_first_members_alone_cost_next_to_nothing(size):
    store = SparseTar([size] * 1000)
    with plugged_in(store):
        assert head_offsets(URI, "nemo") == (0, 512 + -(-size // 512) * 512)
    assert store.num_bytes < 3 * 40_000 + 4 * 4 * 16 * 1024


@given(
    st.lists(st.integers(0, 3 * MIB) | st.sampled_from([9 * MIB, 40 * MIB]), max_size=40),
    st.sampled_from([MIB, 2 * MIB, 8 * MIB, 32 * MIB]),
)
def test_members_are_where_they_are_whatever_is_asked_for(sizes, gap):
    store = SparseTar(sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Link, "gap", gap)
        members = found(store)
    ends = [payload - 512 for _, payload, _ in members]
    assert ends == sorted(store.headers)[: len(sizes)]
    assert [size for _, _, size in members] == sizes
    assert store.num_bytes <= store.size
    # Nothing is read twice.
    asked = sorted(store.asked, key=lambda one: one.offset)
    assert all(one.offset + one.size <= after.offset for one, after in pairwise(asked))


@pytest.mark.parametrize("format_", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_an_object_and_a_file_have_the_same_members(tmp_path, format_):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format_) as tar:
        for number in range(300):
            info = tarfile.TarInfo(("long/" * 30 if number % 7 == 0 else "") + f"{number}.wav")
            info.size = number * 997
            tar.addfile(info, io.BytesIO(bytes([number % 256]) * info.size))
    (tmp_path / "a.tar").write_bytes(file.getvalue())
    local = scan_tar(tmp_path / "a.tar")
    with plugged_in(MemoryStore({URI: file.getvalue()})):
        remote = scan_tar(URI)
    assert remote.names == local.names
    for name in ("header", "payload", "size"):
        assert (getattr(remote, name) == getattr(local, name)).all()
    assert (remote.end, remote.file_size) == (local.end, local.file_size)


def test_what_is_cut_short_damaged_or_gone_is_an_error():
    store = SparseTar([40_000] * 100)
    whole = store._cut(ByteRange(URI, 0, store.size))
    for cut in (100, 512 * 3, 40_000, len(whole) - 5_000):
        with pytest.raises(ArchiveError, match="cut short"):
            found(MemoryStore({URI: whole[:cut]}))
    with pytest.raises(ArchiveError, match="damaged"):
        found(MemoryStore({URI: b"x" * 5000}))
    with pytest.raises(ArchiveError, match="is empty"):
        found(MemoryStore({URI: b""}))
    with pytest.raises(SourceNotFoundError):
        found(MemoryStore({}))


def test_an_object_that_shrinks_while_it_is_read_is_an_error():
    store = SparseTar([100_000_000] * 3)
    whole = MemoryStore({URI: store._cut(ByteRange(URI, 0, 2 * MIB))})
    whole.stats = store.stats
    with pytest.raises(DataError):
        found(whole)


def test_bytes_come_from_anywhere_in_any_pieces():
    data = bytes(range(256)) * 20_000
    with plugged_in(MemoryStore({URI: data})):
        blocks = ObjectBlocks(URI, len(data))
        for offset, size in [(0, 10), (MIB - 5, 10), (MIB + 3, 2 * MIB), (7, 9), (5_119_990, 100)]:
            assert blocks.pread(size, offset) == data[offset : offset + size]
        assert blocks.pread(10, len(data)) == b""
        blocks.close()


def test_a_link_is_measured_in_requests_of_different_sizes():
    link = Link()
    assert link.gap == Link.default
    link.add(MIB, 0.02)
    assert link.gap == Link.default
    link.add(8 * MIB, 0.01)
    assert link.gap == Link.default
    link = Link()
    for size in (MIB, 4 * MIB, 8 * MIB):
        link.add(size, 0.001 + size / 1e9)
    assert link.gap == Link.least
    for size in (MIB, 4 * MIB, 8 * MIB) * 100:
        link.add(size, 0.5 + size / 1e9)
    assert link.gap == Link.most
    for size in (MIB, 4 * MIB, 8 * MIB) * 100:
        link.add(size, 0.02 + size / 400e6)
    assert 7e6 < link.gap < 9e6
