from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from playhead.errors import IndexFileError
from playhead.index.idx import read_idx
from playhead.index.idxpack2 import IdxPack, collection_key
from playhead.index.sidecars import Sidecar, build_sidecar
from playhead.paths import expand
from support.corpus import tarred_corpus
from support.idxpack import Collection, write_idxpack

LHOTSE = """
import json, sys
from lhotse.index_pack import IndexPackArraySpec, IndexPackCollectionSpec, write_index_pack
output, manifests, tars, array = json.loads(sys.argv[1])
specs = [
    IndexPackCollectionSpec("manifest", "jsonl", "m", tuple(manifests)),
    IndexPackCollectionSpec("tar", "nemo_tar", "bare", tuple(tars), offsets_required=False),
    IndexPackCollectionSpec("tar", "nemo_tar", "t", tuple(tars)),
]
if array:
    specs.append(IndexPackArraySpec("order", "permutation", "p", (array,)))
write_index_pack(output, specs)
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return write_idxpack(
        tmp_path / "a.idxpack",
        [
            Collection("manifest", "jsonl", ["/d/ä.json", "s3://b/c.json"], [[0, 5, 9], [0, 3]]),
            Collection("tar", "nemo_tar", ["/d/a.tar"], [[]], path_only=True),
            Collection("tar", "nemo_tar", ["/d/a.tar"], [[0, 1024, 10240]]),
        ],
    )


def test_files_are_found_by_their_paths(pack: Path):
    opened = IdxPack(str(pack))
    assert (opened.version, opened.num_collections) == (2, 3)
    segment = opened.find("/d/ä.json")
    assert segment is not None
    assert (segment.size, opened.offsets(segment).tolist()) == (9, [0, 5])
    assert opened.find("/d/other.json") is None


def test_a_file_that_is_there_twice_has_its_offsets(pack: Path):
    opened = IdxPack(str(pack))
    segment = opened.find("/d/a.tar")
    assert segment is not None
    assert opened.offsets(segment).tolist() == [0, 1024]


@pytest.mark.parametrize("version", [1, 4])
def test_other_versions_are_refused_by_name(tmp_path: Path, version: int):
    path = write_idxpack(tmp_path / "a.idxpack", [], version)
    with pytest.raises(IndexFileError, match=rf"has version {version}.*`playhead pack`"):
        IdxPack(str(path))


def everything(path: Path) -> dict[str, list[int]]:
    opened = IdxPack(str(path))
    found = {name: opened.find(name) for name in ("/d/ä.json", "s3://b/c.json", "/d/a.tar")}
    return {
        name: opened.offsets(segment).tolist()
        for name, segment in found.items()
        if segment is not None
    }


def test_what_is_cut_short_is_never_used(pack: Path):
    whole = pack.read_bytes()
    for length in range(0, len(whole), 5):
        pack.write_bytes(whole[:length])
        with pytest.raises(IndexFileError, match=r"damaged.*`playhead pack`"):
            IdxPack(str(pack))


def test_a_byte_that_changes_never_changes_an_offset(pack: Path):
    """It is an error, or of a part that is not read, or a file is not found by its name."""
    whole, right = pack.read_bytes(), everything(pack)
    refused = 0
    for at in range(0, len(whole), 3):
        changed = bytes([whole[at] ^ (1 << at % 8)])
        pack.write_bytes(whole[:at] + changed + whole[at + 1 :])
        try:
            found = everything(pack)
        except IndexFileError:
            refused += 1
            continue
        assert found.items() <= right.items()
    assert refused > 50


@pytest.mark.parametrize("with_array", [False, True])
def test_what_lhotse_writes_is_read(tmp_path: Path, with_array: bool):
    python = os.environ.get("PLAYHEAD_PEER_PYTHON", "")
    if not Path(python).is_file():
        pytest.skip("PLAYHEAD_PEER_PYTHON names no Python with lhotse 2")
    manifests, tars = map(expand, tarred_corpus(tmp_path, [0.1] * 7, 2))
    for path in [*manifests, *tars]:
        kind = "nemo_tar" if path.endswith(".tar") else "jsonl"
        build_sidecar(Sidecar(path=path, kind=kind, idx=f"{path}.idx"))
    np.array([1, 0], "<u4").tofile(tmp_path / "order")
    output = str(tmp_path / "theirs.idxpack")
    asked = [output, manifests, tars, str(tmp_path / "order") if with_array else None]
    subprocess.run([python, "-c", LHOTSE, json.dumps(asked)], check=True, timeout=120)
    opened = IdxPack(output)
    assert opened.version == (3 if with_array else 2)
    for path in [*manifests, *tars]:
        segment = opened.find(path)
        assert segment is not None
        assert segment.size == Path(path).stat().st_size
        assert opened.offsets(segment).tolist() == read_idx(f"{path}.idx").tolist()[:-1]


def test_the_files_of_a_collection_have_their_records(tmp_path: Path):
    paths = ["a.jsonl", "b.jsonl", "c.jsonl"]
    offsets = [[0, 5, 9], [0], [0, 1, 2, 3]]
    opened = IdxPack(
        str(
            write_idxpack(
                tmp_path / "p.idxpack",
                [
                    Collection("manifest", "jsonl", ["x"], [[0, 7]]),
                    Collection("manifest", "jsonl", paths, offsets),
                ],
            )
        )
    )

    assert opened.lengths(collection_key("manifest", "jsonl", paths)) == (2, 0, 3)
    assert opened.lengths(collection_key("tar", "jsonl", paths)) is None
    assert [opened.find(path).records for path in paths] == [2, 0, 3]
