from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead.blend import read_blend
from playhead.errors import ConfigError, StaleIndexError
from playhead.index.blend_pack import blend_target, build_blend_pack
from playhead.index.build import open_leaves
from playhead.index.build_pack import PackSettings
from playhead.index.exclusions import Exclusion, add_exclusions, find_exclusions
from playhead.index.rebind import rebind_pack
from support import talk, talk_cuts
from support.corpus import nemo_corpus, tarred_corpus
from support.parquet import speech_columns, write_table
from support.shar import simple_cuts, write_shar

if TYPE_CHECKING:
    from playhead.index.pack import Pack

# One of each type.
FORMS = {form.type: form for form in {**talk.FORMS, **talk_cuts.FORMS}.values()}


def tarred(folder: Path) -> dict[str, Any]:
    manifest, tar = tarred_corpus(folder, [0.1] * 7, 2)
    return {"type": "nemo_tarred", "manifest_filepath": manifest, "tarred_audio_filepaths": tar}


def plain(folder: Path) -> dict[str, Any]:
    return {"type": "nemo", "manifest_filepath": str(nemo_corpus(folder, [0.1] * 3))}


def leaves_of(entries: list[dict[str, Any]]):
    weighted = [{"weight": 1, **entry} for entry in entries]
    return read_blend({"input_cfg": weighted, "batch_size": 1}).leaves


def pack_of(entries: list[dict[str, Any]], path: Path, **settings: Any) -> Pack:
    return build_blend_pack(blend_target(str(path), leaves_of(entries)), PackSettings(**settings))


def moved(entries: list[dict[str, Any]], old: Path, new: Path) -> list[dict[str, Any]]:
    """Move the data, and say what a config says of them then."""
    shutil.move(str(old), str(new))
    text = json.dumps(entries).replace(f"{old}/", f"{new}/").replace(f'{old}"', f'{new}"')
    return json.loads(text)


def rebound(entries: list[dict[str, Any]], old: Pack, path: Path) -> Pack:
    return rebind_pack(blend_target(str(path), leaves_of(entries)), old.path)


@pytest.fixture
def entries(tmp_path: Path) -> list[dict[str, Any]]:
    return [tarred(tmp_path / "old/tarred"), plain(tmp_path / "old/plain")]


def test_a_pack_of_moved_data_has_the_same_rows_at_new_paths(tmp_path: Path, entries):
    old = pack_of(entries, tmp_path / "a.idxpack")
    now = moved(entries, tmp_path / "old", tmp_path / "new")
    new = rebound(now, old, tmp_path / "b.idxpack")
    for before, after in zip(old.leaves, new.leaves, strict=True):
        one, other = old.leaf(before.key), new.leaf(after.key)
        assert one.digest == other.digest
        assert all(
            (one.columns()[name] == column).all() for name, column in other.columns().items()
        )
        assert [uri.replace("/old/", "/new/") for uri in one.shards.uris] == other.shards.uris
    declared = [{**entry, "indexed": True, "index_pack": new.path} for entry in now]
    opened = open_leaves(leaves_of(declared))
    assert [leaf.path for leaf in opened] == [new.path] * 2


def test_inputs_that_changed_places_are_matched_by_name(tmp_path: Path, entries):
    named = [{**entry, "name": name} for entry, name in zip(entries, ("one", "two"), strict=True)]
    old = pack_of(named, tmp_path / "a.idxpack")
    now = moved(named, tmp_path / "old", tmp_path / "new")
    new = rebound(now[::-1], old, tmp_path / "b.idxpack")
    assert [leaf.key for leaf in new.leaves] == ["one", "two"]
    assert new.leaf("two").shards.uris == [now[1]["manifest_filepath"]]


def parquet(folder: Path) -> dict[str, Any]:
    path = write_table(folder / "a.parquet", speech_columns(6), rows=2)
    return {"type": "parquet", "manifest_filepath": str(path)}


def shar(folder: Path) -> dict[str, Any]:
    write_shar(folder / "shar", simple_cuts(folder, ["a", "b", "c"]))
    return {"type": "lhotse_shar", "shar_path": str(folder / "shar")}


@pytest.mark.parametrize("form", [*FORMS, parquet, shar])
def test_inputs_of_every_type_can_be_moved(tmp_path: Path, form):
    write = FORMS[form].write if isinstance(form, str) else form
    entries = [write(tmp_path / "old")]
    old = pack_of(entries, tmp_path / "a.idxpack")
    now = moved(entries, tmp_path / "old", tmp_path / "new")
    new = rebound(now, old, tmp_path / "b.idxpack")
    assert [entry.num_rows for entry in new.leaves] == [entry.num_rows for entry in old.leaves]
    uris = new.shards.uris
    assert uris == [uri.replace(f"{tmp_path}/old/", f"{tmp_path}/new/") for uri in old.shards.uris]


def test_rows_that_are_left_out_stay_left_out(tmp_path: Path, entries):
    old = pack_of(entries, tmp_path / "a.idxpack")
    leaf = old.leaf(old.leaves[1].key)
    place = (leaf.shards.uris[0], int(leaf.row_offset[1]), int(leaf.row_crc[1]))
    add_exclusions(old.path, [Exclusion(leaf.entry.source, *place, "noise", 5)])
    now = moved(entries, tmp_path / "old", tmp_path / "new")
    new = rebound(now, old, tmp_path / "b.idxpack")
    found = find_exclusions(new.leaf(new.leaves[1].key))
    assert found is not None
    assert (found.rows.tolist(), found.at.tolist()) == ([1], [5])


def change_a_byte(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_other_data_of_the_same_size_are_refused(tmp_path: Path, entries):
    old = pack_of(entries, tmp_path / "a.idxpack")
    now = moved(entries, tmp_path / "old", tmp_path / "new")
    manifest = Path(now[1]["manifest_filepath"])
    change_a_byte(manifest, manifest.stat().st_size - 10)
    said = rf"not the data of the pack: the row there is another \({manifest}, byte \d+\)"
    with pytest.raises(StaleIndexError, match=f"(?i){said}"):
        rebound(now, old, tmp_path / "b.idxpack")
    assert not (tmp_path / "b.idxpack").exists()


def test_an_archive_with_other_members_is_refused(tmp_path: Path, entries):
    old = pack_of(entries, tmp_path / "a.idxpack")
    now = moved(entries, tmp_path / "old", tmp_path / "new")
    tar = tmp_path / "new/tarred/audio_1.tar"
    data = bytearray(tar.read_bytes())
    data[:1024] = bytes(1024)
    tar.write_bytes(data)
    with pytest.raises(StaleIndexError, match=r"no member there.*audio_1\.tar, byte 0"):
        rebound(now, old, tmp_path / "b.idxpack")


def test_a_file_of_another_size_is_refused(tmp_path: Path, entries):
    old = pack_of(entries, tmp_path / "a.idxpack")
    now = moved(entries, tmp_path / "old", tmp_path / "new")
    with Path(now[1]["manifest_filepath"]).open("a") as file:
        file.write("\n")
    with pytest.raises(
        StaleIndexError, match=r"new/plain.* has [\d,]+ bytes, and .*old/plain.* had"
    ):
        rebound(now, old, tmp_path / "b.idxpack")


def test_another_blend_is_refused(tmp_path: Path, entries):
    old = pack_of(entries, tmp_path / "a.idxpack")
    with pytest.raises(StaleIndexError, match=r"has 1 inputs, the pack 2"):
        rebound(entries[:1], old, tmp_path / "b.idxpack")
    other = [entries[0], {**entries[1], "channel_selector": 1, "name": "x"}]
    with pytest.raises(StaleIndexError, match=r"options: .*channel_selector.*in the config"):
        rebound(other, old, tmp_path / "b.idxpack")
    now = moved(entries, tmp_path / "old", tmp_path / "new")
    with pytest.raises(StaleIndexError, match=r"type: 'nemo_tarred' in the pack, 'nemo'"):
        rebound(now[::-1], old, tmp_path / "b.idxpack")


def test_a_pack_is_not_replaced_unasked(tmp_path: Path, entries):
    old = pack_of(entries, tmp_path / "a.idxpack")
    with pytest.raises(ConfigError, match="a file already"):
        rebound(entries, old, tmp_path / "a.idxpack")
