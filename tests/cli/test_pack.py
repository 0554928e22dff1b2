from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

import playhead
from playhead.datasets import Ids
from playhead.errors import ConfigError
from playhead.index.pack import open_pack
from playhead.index.sidecars import Sidecar, build_sidecar
from support.command import run_command
from support.corpus import nemo_corpus, tarred_corpus, write_jsonl
from support.talk_base import tokenizer_json

if TYPE_CHECKING:
    from pathlib import Path

    from support.command import Ran

OPTIONS = {"batch_duration": 5, "sample_rate": 16000, "seed": 1, "indexed": True}


def run(*arguments: object, cwd: Path, command: str = "pack") -> Ran:
    return run_command(command, *arguments, cwd=cwd)


def write_config(path: Path, *entries: dict[str, object], **options: object) -> Path:
    path.write_text(json.dumps({"input_cfg": list(entries), **OPTIONS, **options}))
    return path


@pytest.fixture
def blend(tmp_path: Path) -> list[dict[str, object]]:
    """A tarred input in two shards, and a plain one."""
    manifest, tar = tarred_corpus(tmp_path / "tarred", [0.3] * 6, 2)
    plain = nemo_corpus(tmp_path / "plain", [0.2] * 4)
    tarred = {"type": "nemo_tarred", "name": "tarred", "manifest_filepath": manifest}
    return [
        {**tarred, "tarred_audio_filepaths": tar, "weight": 1},
        {"type": "nemo", "name": "plain", "manifest_filepath": str(plain), "weight": 1},
    ]


def test_one_pack_holds_a_whole_blend_and_a_config_can_name_it(tmp_path: Path, blend):
    config = write_config(tmp_path / "c.yaml", *blend, force_finite=True)
    dry = run("-o", "a.idxpack", config, "--dry-run", "--json", cwd=tmp_path)
    assert dry.returncode == 0, dry.stderr
    assert "Discovered 2 inputs with 5 files." in dry.stderr
    assert "  [nemo_tarred] tarred: rows unknown, 4 files  key=tarred" in dry.stderr
    assert json.loads(dry.stdout)["written"] is False
    assert not (tmp_path / "a.idxpack").exists()

    done = run("-o", "packs/a.idxpack", config, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "packs/a.idxpack"
    assert f"Wrote {path}: 2 inputs, 10 rows, 5 files" in done.stderr
    assert f"  indexed: true\n  index_pack: {path}" in done.stderr
    summary = json.loads(done.stdout)
    assert [one["rows"] for one in summary["inputs"]] == [6, 4]
    assert summary["bytes"] == path.stat().st_size
    assert [leaf.key for leaf in open_pack(path).leaves] == ["tarred", "plain"]

    named = write_config(
        tmp_path / "named.yaml",
        *blend,
        force_finite=True,
        index_pack="a.idxpack",
        index_pack_root=str(tmp_path / "packs"),
    )
    for manifest in (tmp_path / "tarred").glob("*.json"):
        os.utime(manifest, (1, 1))
    loader = playhead.dataloader(str(named), dataset=Ids(), num_workers=0)
    assert sum(len(batch["ids"]) for batch in loader) == 10
    assert not (tmp_path / "cache").exists()


def test_an_index_of_another_size_is_an_error_that_names_force(tmp_path: Path, blend):
    config = write_config(tmp_path / "c.yaml", *blend)
    manifest, tar = tmp_path / "plain/manifest.json", tmp_path / "tarred/audio_1.tar"
    root = tmp_path / "idx"
    build_sidecar(Sidecar(path=str(manifest), kind="jsonl", idx=f"{root}{manifest}.idx"))
    build_sidecar(Sidecar(path=str(tar), kind="nemo_tar", idx=f"{root}{tar}.idx"))
    size = tar.stat().st_size
    tar.write_bytes(tar.read_bytes() + bytes(512))
    done = run("-o", "a.idxpack", "--indexes-root", root, config, cwd=tmp_path)
    assert done.returncode == 1
    assert (
        f"The index was made for {size:,} bytes of {tar}, which has {size + 512:,}" in done.stderr
    )
    assert "`playhead index --force`" in done.stderr
    assert not (tmp_path / "a.idxpack").exists()


def test_a_pack_is_replaced_only_on_request_and_nothing_else_ever(tmp_path: Path, blend):
    config = write_config(tmp_path / "c.yaml", *blend[1:])
    assert run("-o", "a.idxpack", config, cwd=tmp_path).returncode == 0
    before = (tmp_path / "a.idxpack").stat().st_ino
    again = run("-o", "a.idxpack", config, cwd=tmp_path)
    assert again.returncode == 2
    assert "There is a file already (a.idxpack). Give another path, or --overwrite" in again.stderr
    assert (tmp_path / "a.idxpack").stat().st_ino == before
    (tmp_path / "a.idxpack").write_bytes(b"ARROW1 and then nothing")
    over = run("-o", "a.idxpack", config, "--overwrite", "--embed-rows", cwd=tmp_path)
    assert over.returncode == 0, over.stderr
    assert all(entry.embedded for entry in open_pack(tmp_path / "a.idxpack").leaves)
    text = config.read_text()
    other = run("-o", config, config, "--overwrite", cwd=tmp_path)
    assert other.returncode == 2
    assert "not a pack, and is not replaced" in other.stderr
    assert config.read_text() == text


def test_without_offsets_tars_are_not_opened_and_training_says_what_it_needs(
    tmp_path: Path, blend, monkeypatch
):
    config = write_config(tmp_path / "c.yaml", *blend)
    for tar in (tmp_path / "tarred").glob("*.tar"):
        tar.write_bytes(b"never looked at")
    done = run("-o", "a.idxpack", config, "--native-tar-paths-only", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "training needs USE_AIS_GET_BATCH=true" in done.stderr
    offsets = [one["member_offsets"] for one in json.loads(done.stdout)["inputs"]]
    assert offsets == [False, True]
    monkeypatch.delenv("USE_AIS_GET_BATCH", raising=False)
    named = write_config(tmp_path / "named.yaml", *blend, index_pack=str(tmp_path / "a.idxpack"))
    with pytest.raises(ConfigError, match=r"no member offsets.*USE_AIS_GET_BATCH.*playhead pack"):
        playhead.dataloader(str(named), dataset=Ids(), num_workers=0)


def half_written_manifest(folder: Path) -> Path:
    path = write_jsonl(folder / "m.json", [{"audio_filepath": "/a.wav", "duration": 1.0}] * 2)
    path.write_text(path.read_text()[:-20])
    return write_config(folder / "c.yaml", {"type": "nemo", "manifest_filepath": str(path)})


def no_entries(folder: Path) -> Path:
    return write_config(folder / "c.yaml")


def empty_config(folder: Path) -> Path:
    (folder / "c.yaml").write_text("")
    return folder / "c.yaml"


def no_config(folder: Path) -> Path:
    return folder / "nowhere.yaml"


def data(folder: Path) -> Path:
    return write_jsonl(folder / "m.jsonl", [{"a": 1}])


def missing_manifest(folder: Path) -> Path:
    return write_config(folder / "c.yaml", {"type": "nemo", "manifest_filepath": "gone.json"})


@pytest.mark.parametrize(
    ("config", "output", "code", "said"),
    [
        (no_config, "a.idxpack", 2, "nowhere.yaml"),
        (empty_config, "a.idxpack", 2, "c.yaml"),
        (no_entries, "a.idxpack", 2, "c.yaml"),
        (data, "a.idxpack", 2, "This is no config"),
        (missing_manifest, "a.idxpack", 2, "gone.json"),
        (half_written_manifest, "a.idxpack", 1, "m.json:2"),
        (missing_manifest, ".", 2, "This is a folder"),
        (missing_manifest, "s3://bucket/a.idxpack", 2, "Give the path of a disk"),
        (half_written_manifest, "c.yaml/a.idxpack", 1, "Correct the path: a folder is wanted"),
    ],
)
def test_wrong_input_is_said_in_one_line(tmp_path: Path, config, output, code, said):
    done = run("-o", output, config(tmp_path), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    last = done.stderr.splitlines()[-1]
    assert said in last
    assert last.startswith("playhead: ")
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.idxpack"))


def test_what_could_not_be_built_is_in_the_summary(tmp_path: Path):
    config = half_written_manifest(tmp_path)
    done = run("-o", "a.idxpack", config, "--json", cwd=tmp_path)
    assert done.returncode == 1
    summary = json.loads(done.stdout)
    assert summary["written"] is False
    [failure] = summary["failures"]
    assert "m.json:2" in failure


def test_moved_data_take_their_old_pack_along_with_counts_of_tokens(tmp_path: Path, blend):
    config = write_config(tmp_path / "c.yaml", *blend)
    assert run("-o", "old.idxpack", config, cwd=tmp_path).returncode == 0
    named = write_config(tmp_path / "named.yaml", *blend, index_pack=str(tmp_path / "old.idxpack"))
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_bytes(tokenizer_json())
    counted = run(named, "--tokenizer", tokenizer, cwd=tmp_path, command="index")
    assert counted.returncode == 0, counted.stderr
    assert len(list(tmp_path.glob("old.idxpack.tokens-*.arrow"))) == 2

    (tmp_path / "elsewhere").mkdir()
    for name in ("plain", "tarred"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    text = config.read_text().replace(f"{tmp_path}/", f"{tmp_path}/elsewhere/")
    config.write_text(text)
    new = tmp_path / "new.idxpack"
    done = run("-o", new, config, "--rebind", "old.idxpack", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 files with counts of tokens were copied along." in done.stderr
    assert [one["rows"] for one in json.loads(done.stdout)["inputs"]] == [6, 4]
    named.write_text(json.dumps({**json.loads(text), "index_pack": str(new)}))
    again = run(named, "--tokenizer", tokenizer, "--json", cwd=tmp_path, command="index")
    assert [one["status"] for one in json.loads(again.stdout)["tokens"]] == ["fresh"] * 2

    wrong = run("-o", new, config, "--rebind", "gone", "--overwrite", cwd=tmp_path)
    assert (wrong.returncode, "no such pack (gone)" in wrong.stderr) == (2, True)
    with (tmp_path / "elsewhere/plain/manifest.json").open("a") as file:
        file.write("\n")
    (tmp_path / "elsewhere/plain/manifest.json.idx").unlink()
    other = run("-o", "b.idxpack", config, "--rebind", "old.idxpack", cwd=tmp_path)
    assert other.returncode == 1
    assert "not the data of the pack" in other.stderr.splitlines()[-1]
    both = run("-o", new, config, "--rebind", "old.idxpack", "--embed-rows", cwd=tmp_path)
    assert both.returncode == 2
