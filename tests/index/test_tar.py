import io
import os
import shutil
import subprocess
import sys
import tarfile
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import playhead.index.tar
from playhead.errors import ArchiveError, SourceNotFoundError
from playhead.index.tar import (
    guess_layout,
    head_offsets,
    iter_tar_offsets,
    scan_tar,
    tar_offsets,
)
from support.corpus import write_tar

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}

part = st.text(
    st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=60
).filter(lambda text: text.strip(".") and text == text.strip())
names = (
    st.lists(part, min_size=1, max_size=6).map("/".join).map(lambda name: name[:300].strip("/ "))
)
kinds = st.sampled_from(["file", "file", "file", "folder", "symlink", "hardlink", "fifo"])
entries = st.lists(st.tuples(names.filter(bool), kinds, st.integers(0, 2000)), max_size=8)


def build(contents, dialect, *, payload: bytes = b"z") -> bytes:
    types = {
        "folder": tarfile.DIRTYPE,
        "symlink": tarfile.SYMTYPE,
        "hardlink": tarfile.LNKTYPE,
        "fifo": tarfile.FIFOTYPE,
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=dialect, encoding="utf-8") as tar:
        for name, kind, size in contents:
            info = tarfile.TarInfo(name)
            if kind == "file":
                info.size = size
            else:
                info.type = types[kind]
                info.linkname = name if "link" in kind else ""
            tar.addfile(info, io.BytesIO(payload * info.size))
    return buffer.getvalue()


def as_tarfile_sees(path):
    with tarfile.open(path, "r:", encoding="utf-8") as tar:
        return [(m.name, m.offset, m.offset_data, m.size) for m in tar if m.isreg()]


def as_we_see(path):
    found = scan_tar(path)
    return list(
        zip(
            found.names,
            found.header.tolist(),
            found.payload.tolist(),
            found.size.tolist(),
            strict=True,
        )
    )


@given(contents=entries, dialect=st.sampled_from(sorted(FORMATS)))
def test_same_members_as_tarfile(tmp_path_factory, contents, dialect):
    path = tmp_path_factory.getbasetemp() / "random.tar"
    try:
        path.write_bytes(build(contents, FORMATS[dialect]))
    except ValueError:
        assume(False)  # a name that ustar cannot hold
    assert as_we_see(path) == as_tarfile_sees(path)


def test_long_and_foreign_names_are_complete_and_begin_at_their_extension_header(tmp_path):
    long, foreign = "d/" * 120 + "utt.wav", "sprache/äöü-語.flac"
    for name, dialect in FORMATS.items():
        if name == "ustar":
            continue
        path = tmp_path / f"{name}.tar"
        path.write_bytes(
            build([("a", "file", 1), (long, "file", 3), (foreign, "file", 4)], dialect)
        )
        found = scan_tar(path)
        assert found.names == ["a", long, foreign]
        assert int(found.header[1]) == 1024
        assert int(found.payload[1]) > 1024 + 512
        assert as_we_see(path) == as_tarfile_sees(path)


def test_ustar_prefix(tmp_path):
    name = "p" * 90 + "/" + "q" * 80
    path = write_tar(tmp_path / "a.tar", [(name, b"1")], tarfile.USTAR_FORMAT)
    assert scan_tar(path).names == [name]


def test_old_gnu_times_are_no_prefix(tmp_path):
    """GNU's incremental archives keep a time where POSIX has the prefix."""
    info = tarfile.TarInfo("a.wav")
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[345:357] = b"12345670123\0"
    path = tmp_path / "a.tar"
    path.write_bytes(with_checksum(block) + bytes(1024))
    assert scan_tar(path).names == ["a.wav"]


def test_v7_folder_and_file(tmp_path):
    def block(name):
        header = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT))
        header[156:157] = b"\0"
        header[257:345] = bytes(88)
        return with_checksum(header)

    path = tmp_path / "a.tar"
    path.write_bytes(block("folder/") + block("file") + bytes(1024))
    assert as_we_see(path) == [("file", 512, 1024, 0)]


def with_checksum(block: bytearray, *, signed: bool = False) -> bytes:
    block[148:156] = b" " * 8
    total = int(np.frombuffer(bytes(block), np.int8 if signed else np.uint8).sum(dtype=np.int64))
    block[148:156] = b"%06o\0 " % total
    return bytes(block)


def test_signed_checksums_of_old_programs(tmp_path):
    block = bytearray(tarfile.TarInfo("ü").tobuf(tarfile.USTAR_FORMAT, "utf-8"))
    path = tmp_path / "a.tar"
    path.write_bytes(with_checksum(block, signed=True) + bytes(1024))
    assert scan_tar(path).names == ["ü"]


@pytest.mark.parametrize("dialect", ["gnu", "pax"])
def test_members_over_8_gib(tmp_path, dialect):
    info = tarfile.TarInfo("huge.wav")
    info.size = 9 * 2**30 + 17
    path = tmp_path / "huge.tar"
    with path.open("wb") as file:
        file.write(info.tobuf(FORMATS[dialect]))
        payload = file.tell()
        after = file.seek(payload + 9 * 2**30 + 512)
        file.write(tarfile.TarInfo("small.wav").tobuf(FORMATS[dialect]))
        file.truncate(after + 512 + 1024)
    assert as_we_see(path) == [
        ("huge.wav", 0, payload, info.size),
        ("small.wav", after, after + 512, 0),
    ]


def test_shared_pax_header_belongs_to_no_member(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "x"}) as tar:
        tar.addfile(tarfile.TarInfo("a"))
        tar.addfile(tarfile.TarInfo("ä"))
    assert as_we_see(path) == as_tarfile_sees(path)
    assert int(scan_tar(path).header[0]) == 1024


@pytest.mark.parametrize(
    ("tool", "options"),
    [
        *(("tar", [f"--format={dialect}"]) for dialect in ("v7", "oldgnu", "gnu", "ustar", "pax")),
        ("tar", ["--format=gnu", "-b", "1"]),
        *(("bsdtar", ["--format", dialect]) for dialect in ("ustar", "pax", "gnutar", "v7")),
        ("bsdtar", []),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_archives_of_other_programs(tmp_path, tool, options):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    short = "v7" in " ".join(options) or "ustar" in " ".join(options)
    source = tmp_path / "in"
    (source / "sub").mkdir(parents=True)
    files = ["a.wav", "sub/b.json", "x" * 99] + ([] if short else ["y" * 180, "é語.wav"])
    for i, name in enumerate(files):
        (source / name).write_bytes(b"q" * (511 + i))
    (source / "link").symlink_to("a.wav")
    os.link(source / "a.wav", source / "hard")
    path = tmp_path / "a.tar"
    members = [*files, "link", "hard", "sub"]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [tool, *options, "-cf", path, *members], cwd=source, check=True, timeout=20, env=environment
    )
    found = as_we_see(path)
    assert found == as_tarfile_sees(path)
    assert [name for name, *_ in found][: len(files)] == files
    data = path.read_bytes()
    for name, _, payload, size in found:
        assert data[payload : payload + size] == (source / name).read_bytes()


def test_sparse_members_are_refused(tmp_path):
    if shutil.which("tar") is None:
        pytest.skip("GNU tar is not installed")
    with (tmp_path / "holes.wav").open("wb") as file:
        file.truncate(1 << 20)
        file.seek(1 << 19)
        file.write(b"x")
    for dialect in ("gnu", "pax"):
        path = tmp_path / f"{dialect}.tar"
        subprocess.run(
            ["tar", "--sparse", f"--format={dialect}", "-cf", path, "holes.wav"],
            cwd=tmp_path,
            check=True,
            timeout=20,
        )
        with pytest.raises(ArchiveError, match=r"holes\.wav.*sparse.*byte.*Write the archive"):
            scan_tar(path)


SAMPLES = [
    ("a.wav", "file", 700),
    ("b.wav", "file", 0),
    ("folder", "folder", 0),
    ("c", "file", 512),
]


def test_every_truncation_is_noticed_or_harmless(tmp_path):
    data = build(SAMPLES, tarfile.USTAR_FORMAT)
    path = tmp_path / "cut.tar"
    path.write_bytes(data)
    whole = as_we_see(path)
    # What ends between two members cannot be told from an archive without an end mark.
    between = {2: 512 + 1024, 3: 4 * 512, 4: 5 * 512}
    end = 7 * 512
    for size in [*range(0, end + 1100, 37), *between.values(), end - 1, end, end + 512]:
        path.write_bytes(data[:size])
        if size >= end:
            assert as_we_see(path) == whole
        elif size in between.values():
            assert as_we_see(path) == [m for m in whole if m[2] + m[3] <= size]
        else:
            with pytest.raises(ArchiveError, match=r"cut\.tar"):
                scan_tar(path)


@given(bit=st.integers(0, 7 * 4096 + 3 * 4096 - 1), payload=st.sampled_from([b"z", b"\0"]))
def test_every_flipped_bit_of_a_header_is_noticed(tmp_path_factory, bit, payload):
    path = tmp_path_factory.getbasetemp() / "flipped.tar"
    data = bytearray(build(SAMPLES, tarfile.USTAR_FORMAT, payload=payload))
    path.write_bytes(data)
    whole = as_we_see(path)
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    block, place = bit // 4096, bit // 8 % 512
    if block in {1, 2, 6}:
        assert as_we_see(path) == whole, "a payload is not looked at"
    elif block < 7 and 148 <= place < 156:
        # The checksum may be written in several ways: a blank for its first zero, for one.
        try:
            assert as_we_see(path) == whole
        except ArchiveError as error:
            assert "checksum" in str(error)  # noqa: PT017  (either outcome is right)
    else:
        with pytest.raises(ArchiveError, match=r"flipped\.tar, byte"):
            scan_tar(path)


@given(
    data=st.binary(max_size=3000),
    position=st.integers(0, 5000),
    dialect=st.sampled_from(["gnu", "pax"]),
)
def test_rubbish_never_hangs_or_breaks_out(tmp_path_factory, data, position, dialect):
    path = tmp_path_factory.getbasetemp() / "rubbish.tar"
    contents = [("n" * 150, "file", 10), ("ü", "file", 600)]
    archive = bytearray(build(contents, FORMATS[dialect]))
    archive[position : position + len(data)] = data
    path.write_bytes(archive)
    try:
        found = scan_tar(path)
    except ArchiveError:
        return
    assert (found.payload + found.size <= len(archive)).all()
    assert (np.diff(found.header) > 0).all()


def test_what_lies_behind_the_end_mark(tmp_path):
    one = build(SAMPLES, tarfile.GNU_FORMAT)
    path = tmp_path / "a.tar"
    path.write_bytes(one + bytes(3_000_000))
    assert len(scan_tar(path).names) == 3
    assert tar_offsets(scan_tar(path), "nemo").tolist()[-1] == len(one) + 3_000_000
    path.write_bytes(one + one)
    with pytest.raises(
        ArchiveError, match=r"data at byte 10,240, behind the end mark.*tar --conca"
    ):
        scan_tar(path)


def test_the_error_names_the_member_and_the_byte(tmp_path):
    data = build(SAMPLES, tarfile.USTAR_FORMAT)
    path = tmp_path / "a.tar"
    path.write_bytes(data[:1000])
    with pytest.raises(
        ArchiveError, match=r"'a\.wav' ends at byte 1,536 and the file at byte 1,000"
    ):
        scan_tar(path)
    path.write_bytes(b"")
    with pytest.raises(ArchiveError, match="is empty"):
        scan_tar(path)
    with pytest.raises(SourceNotFoundError, match=r"nowhere\.tar"):
        scan_tar(tmp_path / "nowhere.tar")


def test_payloads_are_not_read(tmp_path, monkeypatch):
    path = write_tar(tmp_path / "a.tar", [(f"{i}.wav", b"x" * 50_000) for i in range(20)])
    read = []
    pread = os.pread

    def spy(file, size, offset):
        data = pread(file, size, offset)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", spy)
    scan_tar(path)
    assert sum(read) <= 20 * 512 + 2 * 10240


def shar(count: int, size: int = 100) -> list[tuple[str, str, int]]:
    return [
        (f"cut-{i:04d}.{suffix}", "file", length)
        for i in range(count)
        for suffix, length in (("flac", size), ("json", 30))
    ]


def test_offsets_of_both_layouts(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(build(shar(3), tarfile.PAX_FORMAT))
    members = scan_tar(path)
    assert tar_offsets(members, "nemo").tolist() == [0, 1024, 2048, 3072, 4096, 5120, 10240]
    assert tar_offsets(members, "shar").tolist() == [0, 2048, 4096, 10240]
    assert tar_offsets(members, "shar").dtype == np.uint64
    assert head_offsets(path, "nemo") == (0, 1024)
    assert head_offsets(path, "shar") == (0, 2048)
    assert guess_layout(path) == "shar"
    path.write_bytes(build(SAMPLES, tarfile.PAX_FORMAT))
    assert guess_layout(path) == "nemo"
    path.write_bytes(build([], tarfile.PAX_FORMAT))
    assert guess_layout(path) == "nemo"
    assert head_offsets(path, "shar") == ()
    assert tar_offsets(scan_tar(path), "shar").tolist() == [10240]


def test_lhotse_stops_a_record_early_where_the_end_mark_straddles_two(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(build([("a.wav", "file", 512 * 17), ("a.json", "file", 0)], 0))
    members = scan_tar(path)
    assert members.end == 10240 - 512
    assert members.file_size == 20480
    assert tar_offsets(members, "shar").tolist() == [0, 10240]
    assert tar_offsets(members, "nemo").tolist() == [0, 18 * 512, 20480]


def test_members_that_are_no_pairs_are_refused(tmp_path):
    path = tmp_path / "nemo.tar"
    for contents, message in (
        ([("a.wav", "file", 1), ("b.wav", "file", 1)], r"'a\.wav' and 'b\.wav'"),
        ([("a.wav", "file", 1), ("b.json", "file", 1)], r"'a\.wav' and 'b\.json'"),
        ([*shar(2), ("z.wav", "file", 1)], "5 members"),
    ):
        path.write_bytes(build(contents, tarfile.USTAR_FORMAT))
        with pytest.raises(ArchiveError, match=rf"{message}.*nemo\.tar.*--layout nemo"):
            list(iter_tar_offsets(path, "shar"))
        with pytest.raises(ArchiveError, match=message):
            tar_offsets(scan_tar(path), "shar")


def test_webdataset_pairs_in_either_order(tmp_path):
    path = tmp_path / "wds.tar"
    contents = [("d/1.json", "file", 1), ("d/1.left.wav", "file", 1)]
    path.write_bytes(build([*contents, ("2.wav", "file", 1), ("2.json", "file", 1)], 0))
    assert len(tar_offsets(scan_tar(path), "shar")) == 3


@given(count=st.integers(0, 20), piece=st.integers(1, 5), layout=st.sampled_from(["nemo", "shar"]))
def test_pieces_give_what_the_whole_gives(tmp_path_factory, count, piece, layout):
    path = tmp_path_factory.getbasetemp() / "pieces.tar"
    path.write_bytes(build(shar(count), tarfile.GNU_FORMAT))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(playhead.index.tar, "_PIECE", 2 * piece)
        pieces = np.concatenate(list(iter_tar_offsets(path, layout)))
    np.testing.assert_array_equal(pieces, tar_offsets(scan_tar(path), layout))


def test_memory_does_not_grow_with_the_archive(tmp_path):
    """150,000 members in a process with its own peak."""
    path = tmp_path / "large.tar"
    path.write_bytes(tarfile.TarInfo("a.wav").tobuf(tarfile.USTAR_FORMAT) * 150_000)
    code = """
import resource, sys
from playhead.index.sidecars import Sidecar, build_sidecar
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(build_sidecar(Sidecar(path=sys.argv[1], kind="nemo_tar", idx=sys.argv[1] + ".idx")))
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
    assert records == 150_000
    assert kibibytes < 40 * 1024


def test_small_members_are_fetched_ahead_and_large_ones_not(tmp_path, monkeypatch):
    if not hasattr(os, "posix_fadvise"):
        pytest.skip("this system has no posix_fadvise")
    ahead = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *what: ahead.append(what[1:]))
    for size, some in ((10_000, True), (200_000, False)):
        ahead.clear()
        path = write_tar(tmp_path / "a.tar", [("x", b"z" * size)] * (12_000_000 // size))
        scan_tar(path)
        assert (len(ahead) == 3) == some
        assert all(first < second for (first, *_), (second, *_) in pairwise(ahead))
