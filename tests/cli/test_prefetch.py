from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

import playhead
from playhead.datasets import Ids
from playhead.index.idx import read_idx
from support.command import Ran, run_command
from support.corpus import nemo_corpus, tarred_corpus, write_jsonl
from support.talk_base import tokenizer_json

OPTIONS = {"batch_duration": 5, "sample_rate": 16000, "seed": 1}


def run(*arguments: object, cwd: Path, command: str = "prefetch") -> Ran:
    return run_command(command, *arguments, cwd=cwd)


def write_config(path: Path, *entries: dict[str, object], **options: object) -> Path:
    path.write_text(json.dumps({"input_cfg": list(entries), **OPTIONS, **options}))
    return path


def tarred(folder: Path, **more: object) -> dict[str, object]:
    manifest, tar = tarred_corpus(folder, [0.3] * 6, 2)
    paths = {"manifest_filepath": manifest, "tarred_audio_filepaths": tar}
    return {"type": "nemo_tarred", **paths, **more}


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    """A config whose indexes, packs and counts of tokens are below the folder `shared`."""
    config = write_config(tmp_path / "c.yaml", tarred(tmp_path / "data"))
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json())
    options = ("--indexes-root", tmp_path / "shared", "--tokenizer", tmp_path / "tokenizer.json")
    done = run(config, *options, cwd=tmp_path, command="index")
    assert done.returncode == 0, done.stderr
    return config


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_machine_gets_all_that_was_made_elsewhere_and_asks_for_nothing_else(
    tmp_path: Path, indexed: Path
):
    options = ("--indexes-root", tmp_path / "fast", "--source-indexes-root", tmp_path / "shared")
    dry = run(indexed, *options, "--dry-run", "--json", cwd=tmp_path)
    assert dry.returncode == 0, dry.stderr
    first, *lines = dry.stderr.splitlines()
    assert first == "Discovered 6 sidecars (0 already present locally, 6 to copy)."
    idx = f"{tmp_path}/data/audio_0.tar.idx"
    assert f"  {tmp_path}/shared{idx}  ->  {tmp_path}/fast{idx}" in lines
    assert json.loads(dry.stdout)["copied"] == 0
    assert not (tmp_path / "fast").exists()

    done = run(indexed, *options, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "  copied 6/6 (100.0%)  failures=0"
    assert json.loads(done.stdout)["copied"] == 6
    kept = {name for name in files_below(tmp_path / "shared") if not name.endswith(".lock")}
    assert files_below(tmp_path / "fast") == kept
    again = run(indexed, *options, cwd=tmp_path)
    assert again.stderr == "Discovered 6 sidecars (6 already present locally, 0 to copy).\n"

    shutil.rmtree(tmp_path / "shared")
    entry = json.loads(indexed.read_text())["input_cfg"][0]
    there = write_config(
        tmp_path / "there.yaml",
        entry,
        force_finite=True,
        indexed=True,
        indexes_root=str(tmp_path / "fast"),
    )
    before = {name: (tmp_path / "fast" / name).stat().st_mtime_ns for name in kept}
    loader = playhead.dataloader(str(there), dataset=Ids(), num_workers=0)
    assert len(next(iter(loader))["ids"]) == 6
    assert before == {name: (tmp_path / "fast" / name).stat().st_mtime_ns for name in kept}


def test_an_index_that_was_made_again_is_copied_again(tmp_path: Path):
    path = write_jsonl(tmp_path / "m.json", [{"audio_filepath": "/a.wav", "duration": 1.0}])
    config = write_config(tmp_path / "c.yaml", {"type": "nemo", "manifest_filepath": str(path)})
    options = ("--indexes-root", "fast")
    run(path, cwd=tmp_path, command="index")
    assert run(config, *options, cwd=tmp_path).returncode == 0
    write_jsonl(path, [{"audio_filepath": "/longer.wav", "duration": 1.0}])
    run(path, "--force", cwd=tmp_path, command="index")
    done = run(config, *options, cwd=tmp_path)
    assert "(0 already present locally, 1 to copy)" in done.stderr
    assert read_idx(f"{tmp_path}/fast{path}.idx")[-1] == path.stat().st_size


def test_what_an_entry_says_of_its_indexes_holds(tmp_path: Path):
    own = str(tmp_path / "own")
    config = write_config(
        tmp_path / "c.yaml",
        tarred(tmp_path / "a", indexes_root=own, weight=1),
        tarred(tmp_path / "b", indexes_root=str(tmp_path / "fast"), weight=1),
    )
    run(config, cwd=tmp_path, command="index")
    shutil.rmtree(tmp_path / "fast")
    run(*sorted((tmp_path / "b").glob("*.*")), cwd=tmp_path, command="index")
    done = run(config, "--indexes-root", "fast", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    copied = files_below(tmp_path / "fast")
    inside = str(tmp_path)[1:]
    assert {f"{inside}/{folder}/audio_1.tar.idx" for folder in "ab"} <= copied
    assert len([name for name in copied if name.endswith(".idxpack")]) == 1


def test_declared_packs_come_along_and_need_no_idx(tmp_path: Path):
    entry = tarred(tmp_path / "data", indexed=True)
    config = write_config(tmp_path / "c.yaml", entry)
    assert run(config, "-o", "packs/a.idxpack", cwd=tmp_path, command="pack").returncode == 0
    named = {"index_pack": "a.idxpack", "index_pack_root": str(tmp_path / "packs")}
    config = write_config(tmp_path / "c.yaml", entry, **named)
    done = run(config, "--indexes-root", "fast", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    pack = f"{tmp_path}/packs/a.idxpack"
    assert files_below(tmp_path / "fast") == {pack[1:]}
    Path(pack).unlink()
    gone = run(config, "--indexes-root", "other", cwd=tmp_path)
    assert gone.returncode == 1
    assert f"  [FAIL] {pack}  ->  other{pack}: The file does not exist" in gone.stderr


def test_manifests_and_what_belongs_to_compressed_ones_are_copied_on_request(tmp_path: Path):
    folder = tmp_path / "data"
    plain = nemo_corpus(folder, [0.3] * 2)
    packed = Path(f"{folder}/z.jsonl.gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for name in ("z.jsonl.gz.idx", "z.jsonl.gz.gzidx"):
        (folder / name).write_bytes(b"of NeMo")
    run(plain, cwd=tmp_path, command="index")
    config = write_config(
        tmp_path / "c.yaml", {"type": "nemo", "manifest_filepath": [[str(plain)], [str(packed)]]}
    )
    done = run(config, "--indexes-root", "fast", "--manifests", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = ("manifest.json", "manifest.json.idx", "z.jsonl.gz", "z.jsonl.gz.idx")
    inside = str(folder)[1:]
    assert files_below(tmp_path / "fast") == {
        f"{inside}/{name}" for name in (*names, "z.jsonl.gz.gzidx")
    }
    assert Path(f"{tmp_path}/fast{packed}").read_bytes() == packed.read_bytes()


def test_a_missing_index_is_a_failure_and_the_others_are_copied(tmp_path: Path, indexed: Path):
    lost = f"{tmp_path}/shared{tmp_path}/data/audio_0.tar.idx"
    shutil.rmtree(tmp_path / "shared/playhead")
    Path(lost).unlink()
    options = ("--indexes-root", "fast", "--source-indexes-root", tmp_path / "shared")
    done = run(indexed, *options, "--json", cwd=tmp_path)
    assert done.returncode == 1
    to = f"fast{tmp_path}/data/audio_0.tar.idx"
    said = "The index does not exist. Make it with `playhead index`"
    assert any(
        line.startswith(f"  [FAIL] {lost}  ->  {to}: {said}") for line in done.stderr.splitlines()
    )
    assert "  copied 4/4 (100.0%)  failures=1" in done.stderr
    assert "\n1 copy operation(s) failed:\n" in done.stderr
    summary = json.loads(done.stdout)
    assert (summary["copied"], [one["source"] for one in summary["failures"]]) == (3, [lost])


def test_what_is_missing_everywhere_is_not_listed_file_by_file_at_the_end(tmp_path: Path):
    paths = [tmp_path / f"m_{number}.jsonl" for number in range(5)]
    for path in paths:
        write_jsonl(path, [{"audio_filepath": "/a.wav", "duration": 1.0}])
    config = write_config(
        tmp_path / "c.yaml",
        {"type": "nemo", "manifest_filepath": [[str(path)] for path in paths]},
    )
    done = run(config, "--indexes-root", "fast", "--json", cwd=tmp_path)
    assert done.returncode == 1
    end = done.stderr.partition("\n5 copy operation(s) failed:\n")[2].splitlines()
    assert len(end) == 4, end
    assert end[-1] == "  … and 2 more, for the same reason"
    assert len(json.loads(done.stdout)["failures"]) == 5


def test_two_files_with_one_place_are_refused(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = [{"audio_filepath": "/a.wav", "duration": 1.0}]
    relative = str(tmp_path)[1:] + "/m.json"
    for path in (tmp_path / "m.json", tmp_path / relative):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_jsonl(path, row)
    entries = [
        {"type": "nemo", "manifest_filepath": path, "weight": 1}
        for path in (str(tmp_path / "m.json"), relative)
    ]
    config = write_config(tmp_path / "c.yaml", *entries)
    done = run(config, "--indexes-root", "fast", cwd=tmp_path)
    assert done.returncode == 2
    assert "would have the same copy" in done.stderr
    assert not (tmp_path / "fast").exists()


@pytest.mark.parametrize(
    ("config", "root", "said"),
    [
        ("nowhere.yaml", "fast", "nowhere.yaml"),
        ("empty.yaml", "fast", "empty.yaml"),
        ("m.jsonl", "fast", "This is no config"),
        ("c.yaml", "s3://bucket/fast", "indexes are copied to a disk"),
        ("c.yaml", "m.jsonl", "This is not a folder (m.jsonl)"),
        ("gone.yaml", "fast", "no_folder"),
    ],
)
def test_wrong_input_is_said_in_one_line(tmp_path: Path, config: str, root: str, said: str):
    write_jsonl(tmp_path / "m.jsonl", [{"a": 1}])
    (tmp_path / "empty.yaml").write_text("")
    write_config(tmp_path / "c.yaml", {"type": "txt_jsonl", "paths": "m.jsonl", "language": "en"})
    write_config(tmp_path / "gone.yaml", {"type": "lhotse_shar", "shar_path": "no_folder"})
    done = run(config, "--indexes-root", root, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("playhead: ")
    assert said.lower() in last.lower()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_a_failure(tmp_path: Path, indexed: Path):
    (tmp_path / "fast").mkdir(mode=0o500)
    options = ("--indexes-root", "fast", "--source-indexes-root", tmp_path / "shared")
    done = run(indexed, *options, cwd=tmp_path)
    assert done.returncode == 1
    assert "Permission denied" in done.stderr
