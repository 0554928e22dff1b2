from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from playhead.errors import IndexFileError, StaleIndexError
from playhead.index.build import open_leaves
from playhead.index.idx import read_idx
from playhead.index.sidecars import Sidecar, build_sidecar
from playhead.index.tarhop import Archive
from playhead.paths import expand
from support.corpus import tarred_corpus
from support.idxpack import Collection, write_idxpack
from support.leaves import make_leaf, open_one
from support.stores import MemoryStore, plugged_in


def idx_of(path: str, folder: Path) -> list[int]:
    idx = str(folder / f"{Path(path).name}.idx")
    kind = "nemo_tar" if path.endswith(".tar") else "jsonl"
    build_sidecar(Sidecar(path=path, kind=kind, idx=idx))
    return read_idx(idx).tolist()


@pytest.fixture
def leaf(tmp_path: Path):
    """A tarred leaf that demands indexes, and declares a pack of NeMo."""
    manifests, tars = map(expand, tarred_corpus(tmp_path / "data", [0.1] * 7, 2))
    collections = [
        Collection("manifest", "jsonl", manifests, [idx_of(one, tmp_path) for one in manifests]),
        Collection("tar", "nemo_tar", tars, [idx_of(one, tmp_path) for one in tars]),
    ]
    pack = write_idxpack(tmp_path / "nemo.idxpack", collections)
    options = {"indexed": True, "index_pack": str(pack)}
    return make_leaf("nemo_tarred", manifest=manifests, tar=tars, **options)


def test_a_pack_of_nemo_is_a_source_of_offsets_and_stands_for_idx_files(tmp_path: Path, leaf):
    found = open_one(leaf, tmp_path / "packs")
    plain = replace(leaf, options=replace(leaf.options, index_pack=None, indexed=None))
    assert found.digest == open_one(plain, tmp_path / "other").digest
    assert found.path.startswith(str(tmp_path / "packs"))


def test_a_file_that_has_changed_since_is_an_error(tmp_path: Path, leaf):
    with Path(leaf.paths["tar"][1]).open("ab") as file:
        file.write(bytes(512))
    with pytest.raises(StaleIndexError, match=r"audio_1\.tar, which has .*`playhead pack`"):
        open_one(leaf, tmp_path / "packs")


def test_a_pack_of_other_data_is_an_error(tmp_path: Path, leaf):
    write_idxpack(tmp_path / "nemo.idxpack", [])
    with pytest.raises(IndexFileError, match=r"does not hold .*manifest_0.*`playhead pack`"):
        open_one(leaf, tmp_path / "packs")


def test_a_pack_without_member_offsets_names_what_to_build(tmp_path: Path, leaf):
    bare = [
        Collection("manifest", "jsonl", leaf.paths["manifest"], [[], []], path_only=True),
        Collection("tar", "nemo_tar", leaf.paths["tar"], [[], []], path_only=True),
    ]
    write_idxpack(tmp_path / "nemo.idxpack", bare)
    with pytest.raises(IndexFileError, match=r"no member offsets.*--native-tar-paths-only"):
        open_one(leaf, tmp_path / "packs")


def test_a_damaged_or_newer_pack_names_the_command(tmp_path: Path, leaf):
    path = write_idxpack(tmp_path / "nemo.idxpack", [], version=4)
    with pytest.raises(IndexFileError, match=r"version 4.*`playhead pack`"):
        open_leaves([leaf], pack_dir=str(tmp_path / "packs"))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(IndexFileError, match=r"`playhead pack`"):
        open_leaves([leaf], pack_dir=str(tmp_path / "packs"))


@pytest.mark.parametrize("shift", [0, 512])
def test_of_an_object_the_headers_alone_are_read_and_wrong_offsets_do_no_harm(
    tmp_path: Path, leaf, shift: int
):
    path = leaf.paths["tar"][0]
    known = np.array(idx_of(path, tmp_path)[:-1]) + shift
    with plugged_in(MemoryStore({"s3://b/a.tar": Path(path).read_bytes()})) as store:
        found = list(Archive("s3://b/a.tar", known=known).hop())
    assert [member[1:] for member in found] == [member[1:] for member in Archive(path).hop()]
    if not shift:
        # The heads of four members in one request, then the end mark.
        assert [one.offset for one in store.asked[:4]] == known.tolist()
        assert sum(one.size for one in store.asked[:4]) == 4 * 2048
