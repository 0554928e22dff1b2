"""The scripts that make packs and give them other keys, by the command lines of the guides."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

import playhead
from playhead.datasets import Ids
from playhead.errors import IndexMissingError
from playhead.index.pack import open_pack
from playhead.index.pack_kind import ARROW_MAGIC
from support.command import run_script
from support.corpus import nemo_corpus, tarred_corpus

BUILD = "dataloading/build_indexes.py"
CONVERT, REBIND = (
    "dataloading/convert_indexes_to_idxpack.py",
    "dataloading/rebind_idxpack_collections.py",
)


@pytest.fixture
def folder(tmp_path):
    """A blend of files and archives below `data`, with indexes in a tree of their own."""
    manifest = nemo_corpus(tmp_path / "data" / "plain", [0.2, 0.3, 0.4])
    manifests, tars = tarred_corpus(tmp_path / "data" / "tarred", [0.25] * 4, 2)
    (tmp_path / "blend.yaml").write_text(
        f"- type: nemo_tarred\n  manifest_filepath: {manifests}\n"
        f"  tarred_audio_filepaths: {tars}\n"
        f"- type: nemo\n  manifest_filepath: {manifest}\n".replace(
            str(tmp_path / "data"), "${data_blend_dir}"
        )
    )
    made = run_script(BUILD, *places(tmp_path), "blend.yaml", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    return tmp_path


def places(folder):
    return "--data-blend-dir", folder / "data", "--indexes-root", folder / "indexes", "--workers", 1


def convert(folder, *flags, output="packs/train.idxpack"):
    return run_script(
        CONVERT, "--output", output, *places(folder), *flags, "blend.yaml", cwd=folder
    )


def rebind(folder, *flags, source="packs/train.idxpack", data="data", config="blend.yaml"):
    return run_script(
        REBIND,
        *("--source-pack", source, "--output", "new.idxpack"),
        *("--data-blend-dir", folder / data, *flags, config),
        cwd=folder,
    )


def one_line(done, code):
    assert (done.returncode, done.stdout) == (code, "")
    line = done.stderr.splitlines()[-1]
    assert line.startswith("playhead: ")
    assert "Traceback" not in done.stderr
    return line


# convert_indexes_to_idxpack -----------------------------------------------------------------------


def test_convert_says_what_the_guide_shows_and_writes_a_pack(folder):
    dry = convert(folder, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    first, *roles = dry.stdout.splitlines()
    assert first == "Discovered 3 collections with 5 ordered paths."
    line = r"  role=(\w+) kind=(\w+) paths=(\d) offsets=(True|False) key=[0-9a-f]+"
    assert [re.fullmatch(line, one).groups() for one in roles] == [
        ("manifest", "jsonl", "2", "True"),
        ("tar", "nemo_tar", "2", "True"),
        ("manifest", "jsonl", "1", "True"),
    ]
    assert not (folder / "packs").exists()

    done = convert(folder)
    assert done.returncode == 0, done.stderr
    discovered, wrote = done.stdout.splitlines()
    assert discovered == first
    said = r"Wrote packs/train\.idxpack: collections=3 segments=5 layout=[0-9a-f]{64}"
    assert re.fullmatch(said, wrote)
    assert (folder / "packs/train.idxpack").read_bytes().startswith(ARROW_MAGIC)
    again = convert(folder, output="again.idxpack")
    assert again.stdout.splitlines()[1].rpartition("=")[2] == wrote.rpartition("=")[2]


def test_a_pack_is_there_once_unless_it_may_be_overwritten(folder):
    assert convert(folder).returncode == 0
    assert "there is a file already" in one_line(convert(folder), 2).lower()
    assert convert(folder, "--overwrite").returncode == 0


def test_the_config_of_the_guide_trains_from_the_pack(folder, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(folder / "cache"))
    assert convert(folder).returncode == 0
    # Nested entries get both keys from the outer one.
    config = (
        f"data_blend_dir: {folder}/data\n"
        "input_cfg:\n"
        "- type: group\n"
        f"  index_pack_root: {folder}/packs\n"
        "  index_pack: train.idxpack\n"
        "  input_cfg: blend.yaml\n"
        "indexed: true\nuse_stateful_dataloader: true\n"
        "batch_size: 2\nsample_rate: 16000\nseed: 0\nforce_finite: true\n"
    )
    (folder / "train.yaml").write_text(config)
    (folder / "without.yaml").write_text(re.sub("  index_pack.*\n", "", config))
    loader = playhead.dataloader(str(folder / "train.yaml"), dataset=Ids(), num_workers=0)
    assert sum(len(batch["ids"]) for batch in loader) == 7
    # No index is beside the data: what was read is the pack.
    with pytest.raises(IndexMissingError):
        playhead.dataloader(str(folder / "without.yaml"), dataset=Ids(), num_workers=0)


def test_a_pack_without_offsets_says_so(folder):
    done = convert(folder, "--native-tar-paths-only", "--dry-run")
    assert re.findall(r"kind=(\w+) .*offsets=(\w+)", done.stdout) == [
        ("jsonl", "True"),
        ("nemo_tar", "False"),
        ("jsonl", "True"),
    ]
    done = convert(folder, "--native-tar-paths-only")
    assert done.returncode == 0, done.stderr
    assert "training needs USE_AIS_GET_BATCH=true" in done.stderr
    pack = open_pack(folder / "packs/train.idxpack")
    assert not all(entry.has_offsets for entry in pack.leaves)


def test_an_old_index_is_named_with_what_to_do_and_no_pack_is_written(folder):
    tar = folder / "data/tarred/audio_1.tar"
    tar.write_bytes(tar.read_bytes() + bytes(10240))
    done = convert(folder)
    assert done.returncode == 1
    assert done.stdout == "Discovered 3 collections with 5 ordered paths.\n"
    assert f"{tar}.idx" in done.stderr
    assert "--force" in done.stderr
    assert not (folder / "packs/train.idxpack").exists()


def test_the_workers_of_the_guide_are_ours_and_a_fallback_is_not_needed(folder):
    for path in (folder / "indexes").rglob("*.tar.idx"):
        path.unlink()
    flags = ("--record-validation-workers", 1, "--native-tar-route-workers", 1)
    done = convert(folder, *flags, "--fallback-native-tar-indexes-root", folder / "none")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(
        "note: --fallback-native-tar-indexes-root: archives without an .idx are read instead\n"
    )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--accept-trailing-zero-tar-padding",), "Run build_indexes.py --force."),
        (("--repair-stale-local-native-tar-sidecars-root", "x"), "Run build_indexes.py --force,"),
        (("--reuse-native-tar-routes-source-pack", "x"), "rebind_idxpack_collections.py"),
        (("--reuse-native-tar-routes-source-input-cfg", "x"), "rebind_idxpack_collections.py"),
        (("--reuse-native-tar-routes-source-pack-sha256", "x"), "rebind_idxpack_collections.py"),
        (("--output",), "--output has 0 values, and takes 1"),
    ],
)
def test_convert_refuses_what_is_not_to_be_had(folder, flags, said):
    done = run_script(CONVERT, "--output", "p.idxpack", "blend.yaml", *flags, cwd=folder)
    line = one_line(done, 2)
    assert said in line
    assert flags[0] in line
    assert not (folder / "p.idxpack").exists()


@pytest.mark.parametrize("fault", ["unknown", "empty", "kind", "unreadable", "half"])
def test_convert_names_a_config_that_cannot_be_used(tmp_path, fault):
    config = broken(tmp_path / "blend.yaml", fault)
    done = run_script(CONVERT, "--output", "p.idxpack", config, cwd=tmp_path)
    assert str(config) in one_line(done, 2)
    assert not (tmp_path / "p.idxpack").exists()


def test_convert_names_a_row_that_was_half_written(tmp_path):
    manifest = nemo_corpus(tmp_path, [0.2, 0.3])
    manifest.write_bytes(manifest.read_bytes()[:-30])
    (tmp_path / "blend.yaml").write_text("- {type: nemo, manifest_filepath: manifest.json}\n")
    done = run_script(CONVERT, "--output", "p.idxpack", "blend.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "manifest.json:2" in done.stderr.splitlines()[-1]
    assert done.stdout == "Discovered 1 collections with 1 ordered paths.\n"
    assert not (tmp_path / "p.idxpack").exists()


def broken(path, fault):
    if fault == "empty":
        path.write_text("")
    elif fault == "kind":
        path.write_text("just a text\n")
    elif fault == "unreadable":
        path.mkdir()
    elif fault == "half":
        path.write_text("- {type: nemo, manifest_filepath: [a.json,\n")
    return path


# rebind_idxpack_collections -----------------------------------------------------------------------


def test_rebind_gives_a_pack_of_moved_data_its_keys_and_tells_it_in_one_line(folder):
    assert convert(folder).returncode == 0
    (folder / "data").rename(folder / "moved")
    flags = ("--relocate-paths", "--trust-relocated-payloads", "--report", "report.json")
    done = rebind(folder, *flags, data="moved")
    assert done.returncode == 0, done.stderr
    assert "note: --trust-relocated-payloads: moved files are compared" in done.stderr
    [line] = done.stdout.splitlines()
    told = json.loads(line)
    content = (folder / "new.idxpack").read_bytes()
    layout = told.pop("layout_sha256")
    assert re.fullmatch("[0-9a-f]{64}", layout)
    assert told == {
        "source": "packs/train.idxpack",
        "output": "new.idxpack",
        "collections": 3,
        "keys_changed": 3,
        "segments": 5,
        "output_size": len(content),
        "output_sha256": hashlib.sha256(content).hexdigest(),
        "payloads_verified": True,
        "paths_changed": 5,
        "relocation_trusted": False,
    }
    report = (folder / "report.json").read_text()
    assert json.loads(report) == {**told, "layout_sha256": layout}
    assert report.startswith('{\n  "source"')
    assert all("/moved/" in uri for uri in open_pack(folder / "new.idxpack").shards.uris)


def test_rebind_counts_the_keys_that_another_spelling_changes(folder):
    assert convert(folder).returncode == 0
    text = (folder / "blend.yaml").read_text()
    (folder / "other.yaml").write_text(text.replace("_OP_0..1_CL_", "{0..1}"))
    done = rebind(folder, config="other.yaml")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["collections"], told["keys_changed"]) == (3, 2)
    assert "paths_changed" not in told


def test_rebind_notices_a_damaged_pack_unless_it_is_told_not_to_look(folder):
    assert convert(folder).returncode == 0
    path = folder / "packs/train.idxpack"
    content = bytearray(path.read_bytes())
    pack = open_pack(path)
    column = pack.column("duration_us").tobytes()
    place = bytes(content).index(column)
    del pack
    content[place] ^= 1
    path.write_bytes(content)
    assert str(path.name) in one_line(rebind(folder), 1)
    assert not (folder / "new.idxpack").exists()
    done = rebind(folder, "--skip-payload-verification")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["payloads_verified"] is False


def test_rebind_refuses_other_data_with_the_first_difference(folder):
    assert convert(folder).returncode == 0
    nemo_corpus(folder / "data" / "plain", [0.2, 0.3, 0.9])
    assert "manifest.json" in one_line(rebind(folder), 1)
    assert not (folder / "new.idxpack").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--relocate-paths", "--skip-payload-verification"), "does not go with"),
        (("--trust-relocated-payloads",), "--trust-relocated-payloads is for --relocate-paths"),
        (("--path-prefix-map", "/old", "/new"), "--path-prefix-map is not to be had here"),
        (("--output", "packs/train.idxpack"), "This file would be written, and is read"),
        (("--report", "blend.yaml"), "This file would be written, and is read"),
        (("--report", "new.idxpack"), "This file would be written, and is read"),
        (("--source-pack", "gone.idxpack"), "There is no such pack (gone.idxpack)"),
    ],
)
def test_rebind_refuses_what_makes_no_sense(folder, flags, said):
    assert convert(folder).returncode == 0
    before = (folder / "packs/train.idxpack").read_bytes()
    assert said in one_line(rebind(folder, *flags), 2)
    assert (folder / "packs/train.idxpack").read_bytes() == before
    assert not (folder / "new.idxpack").exists()


@pytest.mark.parametrize("content", [b"", b"no pack", b"half"], ids=["empty", "kind", "half"])
def test_rebind_names_a_file_that_is_no_pack(folder, content):
    assert convert(folder).returncode == 0
    pack = (folder / "packs/train.idxpack").read_bytes()
    (folder / "bad.idxpack").write_bytes(pack[: len(pack) // 2] if content == b"half" else content)
    assert "bad.idxpack" in one_line(rebind(folder, source="bad.idxpack"), 1)


def test_rebind_replaces_nothing(folder):
    assert convert(folder).returncode == 0
    (folder / "new.idxpack").write_bytes(b"mine")
    assert "there is a file already" in one_line(rebind(folder), 2).lower()
    assert (folder / "new.idxpack").read_bytes() == b"mine"
