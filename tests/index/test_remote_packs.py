"""Packs of data on stores and of pipes: those of the same files on a disk, row for row."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from playhead.blend import read_blend
from playhead.errors import (
    ArchiveError,
    BuildError,
    ConfigError,
    DataError,
    IndexMissingError,
    SourceNotFoundError,
)
from playhead.index.build import open_leaves
from support.corpus import wav_bytes, write_jsonl, write_tar
from support.parquet import speech_columns, write_table
from support.shar import simple_cuts, write_shar
from support.stores import MemoryStore, plugged_in
from support.talk_cuts import FORMS

BUCKET = "s3://bucket/data"


def nemo(folder: Path) -> dict[str, Any]:
    """Plain audio beside its manifest, of which nobody says how long it is."""
    (folder / "wav").mkdir(parents=True)
    rows = []
    for number in range(5):
        (folder / f"wav/{number}.wav").write_bytes(wav_bytes(0.1 * number + 0.1, 8000))
        rows.append({"audio_filepath": f"wav/{number}.wav", "text": "x"})
    write_jsonl(folder / "manifest.json", rows)
    return {"type": "nemo", "manifest_filepath": f"{folder}/manifest.json"}


def nemo_tarred(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    for shard in range(2):
        names = [f"{shard}-{number}.wav" for number in range(4)]
        write_tar(folder / f"audio_{shard}.tar", [(name, wav_bytes(0.1, 8000)) for name in names])
        rows = [{"audio_filepath": name, "duration": 0.1} for name in names]
        write_jsonl(folder / f"manifest_{shard}.json", rows)
    return {
        "type": "nemo_tarred",
        "manifest_filepath": f"{folder}/manifest_{{0..1}}.json",
        "tarred_audio_filepaths": f"{folder}/audio_{{0..1}}.tar",
    }


def parquet(folder: Path) -> dict[str, Any]:
    columns = speech_columns(8)
    columns["duration"][3] = None
    folder.mkdir()
    write_table(folder / "t.parquet", columns)
    return {"type": "parquet", "manifest_filepath": f"{folder}/t.parquet"}


def shar(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    cuts = simple_cuts(folder, ["a", "b", "c", "d", "e"])
    write_shar(folder / "shar", cuts, {"recording": "flac"}, shard_size=2)
    return {"type": "lhotse_shar", "shar_path": f"{folder}/shar"}


MAKERS = {
    "nemo": nemo,
    "nemo_tarred": nemo_tarred,
    "parquet": parquet,
    "shar": shar,
    **{
        name: (lambda folder, form=form: {**form.write(folder), **({} if form.num else SOME)})
        for name, form in FORMS.items()
    },
}
SOME = {"num_mixtures": 6}


def moved(value: Any, old: str, new: str) -> Any:
    """An entry whose files are somewhere else."""
    if isinstance(value, dict):
        return {key: moved(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [moved(item, old, new) for item in value]
    return value.replace(old, new) if isinstance(value, str) else value


def packs_of(entry: dict[str, Any], folder: Path, **options: Any) -> list[Any]:
    leaves = read_blend({"input_cfg": [entry], "batch_size": 1, **options}).leaves
    return open_leaves(leaves, pack_dir=str(folder))


def objects_of(folder: Path, root: str = BUCKET) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {f"{root}/{path.relative_to(folder)}": path.read_bytes() for path in files}


def row_of(pack: Any, row: int, folder: Path) -> bytes | None:
    """A row's bytes, from its manifest where the pack has them not; None for a table's."""
    held = pack.row_bytes(row)
    path = pack.shards.uris[int(pack.shard[row])].replace(BUCKET, str(folder))
    if held is not None or pack.groups is not None:
        return held
    begin = int(pack.row_offset[row])
    return Path(path).read_bytes()[begin : begin + int(pack.row_size[row])]


def facts(pack: Any, folder: Path | None = None) -> dict[str, Any]:
    """Everything in a pack but where and when its files were."""
    found = {name: column.tolist() for name, column in pack.columns().items()}
    found["rows"] = [
        row_of(pack, row, folder) if folder else pack.row_bytes(row) for row in range(pack.num_rows)
    ]
    found["dropped"] = pack.entry.dropped
    if pack.entry.fields:
        found["parts"] = [part.tolist() for part in pack.parts(np.arange(pack.num_rows))]
    return found


@pytest.mark.parametrize("name", MAKERS)
def test_a_pack_of_objects_is_that_of_files(tmp_path: Path, name: str):
    folder = tmp_path / "data"
    entry = MAKERS[name](folder)
    local = packs_of(entry, tmp_path / "local")
    with plugged_in(MemoryStore(objects_of(folder))) as store:
        remote = packs_of(moved(entry, str(folder), BUCKET), tmp_path / "remote")
        # It is kept as long as nothing changes.
        asked = len(store.asked), len(store.streamed)
        packs_of(moved(entry, str(folder), BUCKET), tmp_path / "remote")
        assert (len(store.asked), len(store.streamed)) == asked or "webdataset" in name
    assert [facts(pack, folder) for pack in remote] == [facts(pack, folder) for pack in local]
    uris = [uri for pack in remote for uri in pack.shards.uris]
    assert uris
    assert all(uri.startswith(BUCKET) for uri in uris)
    assert [pack.shards.sizes.tolist() for pack in remote] == [
        pack.shards.sizes.tolist() for pack in local
    ]


@pytest.mark.parametrize(("name", "embedded"), [("nemo", True), ("nemo_tarred", False)])
def test_rows_that_a_store_would_be_asked_for_one_by_one_are_in_the_pack(
    tmp_path: Path, name: str, *, embedded: bool
):
    folder = tmp_path / "data"
    entry = moved(MAKERS[name](folder), str(folder), BUCKET)
    with plugged_in(MemoryStore(objects_of(folder))):
        (pack,) = packs_of(entry, tmp_path / "remote")
    assert (pack.row_bytes(0) is not None) == embedded


@pytest.mark.parametrize("name", ["nemo_tarred", "shar", "share_gpt_webdataset", "nemo"])
def test_a_server_that_gives_whole_objects_only_is_read_from_the_start(tmp_path: Path, name: str):
    folder = tmp_path / "data"
    entry = MAKERS[name](folder)
    local = packs_of(entry, tmp_path / "local")
    objects = objects_of(folder)
    # Headers of plain audio are read from where they are, whatever that takes.
    wavs = name == "nemo"
    store = MemoryStore(objects)
    store.without_ranges = set() if wavs else set(objects)
    with plugged_in(store):
        remote = packs_of(moved(entry, str(folder), BUCKET), tmp_path / "remote")
    assert [facts(pack, folder) for pack in remote] == [facts(pack, folder) for pack in local]


def compressed(folder: Path, names: str) -> None:
    for path in folder.rglob(names):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()


@pytest.mark.parametrize("where", ["disk", "store"])
@pytest.mark.parametrize(
    "name", ["nemo_tarred", "nemotron_text_converation, tar", "share_gpt, tars"]
)
def test_offsets_in_a_compressed_archive_are_those_of_the_archive_in_it(
    tmp_path: Path, name: str, where: str
):
    folder = tmp_path / "data"
    entry = MAKERS[name](folder)
    plain = packs_of(entry, tmp_path / "plain")
    compressed(folder, "*.tar")
    entry = moved(entry, ".tar", ".tar.gz")
    if where == "store":
        with plugged_in(MemoryStore(objects_of(folder))):
            packed = packs_of(moved(entry, str(folder), BUCKET), tmp_path / "packed")
    else:
        packed = packs_of(entry, tmp_path / "packed")
    for one, other in zip(packed, plain, strict=True):
        found, expected = facts(one), facts(other)
        # Rows that lie in what has no middle are in the pack.
        assert found.pop("rows") == expected.pop("rows") or one.entry.embedded
        assert found == expected
        tars = [uri for uri in one.shards.uris if uri.endswith(".tar.gz")]
        assert tars
        sizes = dict(zip(one.shards.uris, one.shards.sizes.tolist(), strict=True))
        for uri in tars:
            name = uri.replace(BUCKET, str(folder))
            assert sizes[uri] == len((folder / name).read_bytes())


def test_what_commands_write_is_read_as_files_are(tmp_path: Path):
    folder = tmp_path / "data"
    entry = nemo_tarred(folder)
    plain = packs_of(entry, tmp_path / "plain")
    entry = {
        "type": "nemo_tarred",
        "manifest_filepath": f"pipe:cat {folder}/manifest_{{0..1}}.json",
        "tarred_audio_filepaths": f"pipe:cat {folder}/audio_{{0..1}}.tar | cat",
    }
    (piped,) = packs_of(entry, tmp_path / "piped")
    found, expected = facts(piped), facts(plain[0])
    assert all(found.pop("rows"))
    expected.pop("rows")
    assert found == expected
    assert set(piped.shards.sizes.tolist()) == {0}
    assert piped.shards.uris[0] == f"pipe:cat {folder}/manifest_0.json"


@pytest.mark.parametrize("kind", ["pipe", "gz"])
def test_indexed_takes_a_pack_of_what_can_have_no_idx(tmp_path: Path, kind: str):
    folder = tmp_path / "data"
    entry = {**nemo_tarred(folder), "indexed": True}
    if kind == "pipe":
        entry["tarred_audio_filepaths"] = f"pipe:cat {folder}/audio_{{0..1}}.tar"
    else:
        compressed(folder, "*.tar")
        entry["tarred_audio_filepaths"] += ".gz"
    with pytest.raises(IndexMissingError, match=r"can have no \.idx.*playhead index"):
        packs_of(entry, tmp_path / "packs")
    packs_of({**entry, "indexed": False}, tmp_path / "packs")
    assert packs_of(entry, tmp_path / "packs")[0].num_rows == 8


def test_two_sources_with_one_idx_are_refused_where_it_is_opened(tmp_path: Path):
    folder = tmp_path / "data"
    nemo_tarred(folder)
    entries = [
        {"type": "nemo", "manifest_filepath": uri, "indexed": True}
        for uri in ("s3://bucket/data/manifest_0.json", "ais://bucket/data/manifest_0.json")
    ]
    blend = {"input_cfg": entries, "batch_size": 1, "indexes_root": str(tmp_path / "indexes")}
    objects = {**objects_of(folder), **objects_of(folder, "ais://bucket/data")}
    with (
        plugged_in(MemoryStore(objects)),
        pytest.raises(ConfigError, match=r"s3://bucket/data.*ais://bucket/data.*same index"),
    ):
        open_leaves(read_blend(blend).leaves, pack_dir=str(tmp_path / "packs"))


def test_packs_are_not_looked_for_on_a_store(tmp_path: Path):
    entry = nemo_tarred(tmp_path / "data")
    leaves = read_blend({"input_cfg": [entry], "batch_size": 1, "indexes_root": "s3://b/i"}).leaves
    with pytest.raises(ConfigError, match=r"not on a disk \(s3://b/i\).*playhead prefetch"):
        open_leaves(leaves)


def test_objects_that_are_gone_cut_short_or_replaced_are_errors(tmp_path: Path):
    folder = tmp_path / "data"
    entry = moved(nemo_tarred(folder), str(folder), BUCKET)
    objects = objects_of(folder)
    tar = f"{BUCKET}/audio_1.tar"

    def fails(error: type[Exception], says: str, store: MemoryStore) -> None:
        with plugged_in(store), pytest.raises(error, match=says):
            packs_of(entry, tmp_path / "packs")

    others = {uri: data for uri, data in objects.items() if uri != tar}
    fails(SourceNotFoundError, "audio_1", MemoryStore(others))
    for cut in (300, 700, 2500):
        fails(ArchiveError, "cut short", MemoryStore({**objects, tar: objects[tar][:cut]}))
    fails(ArchiveError, "damaged", MemoryStore({**objects, tar: b"?" * 5000}))
    fails(DataError, "ends early", Replaced(objects, tar, objects[tar][:1000]))
    at = objects[tar].index(b"WAVE")
    other = objects[tar][:at] + b"wave" + objects[tar][at + 4 :]
    fails(BuildError, "changed while it was read", Replaced(objects, tar, other))


class Replaced(MemoryStore):
    """A store one of whose objects becomes another one after it was looked at."""

    def __init__(self, objects: dict[str, bytes], uri: str, data: bytes) -> None:
        super().__init__(objects)
        self.other = {uri: data}

    def read(self, ranges):
        if any(one.uri in self.other for one in ranges):
            self.objects |= self.other
        return super().read(ranges)
