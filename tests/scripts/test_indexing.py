"""The scripts that index and copy, by the command lines of the guides on real data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.index.idx import read_idx
from support.command import SCRIPTS, run_script
from support.corpus import nemo_corpus, tarred_corpus, write_jsonl, write_tar

BUILD, PREFETCH = "dataloading/build_indexes.py", "dataloading/prefetch_indexes.py"


@pytest.fixture
def folder(tmp_path):
    """A blend of files and of archives, in two YAML files of which one names the other."""
    manifest = nemo_corpus(tmp_path / "plain", [0.2, 0.3, 0.4])
    manifests, tars = tarred_corpus(tmp_path / "tarred", [0.2] * 4, 2)
    (tmp_path / "nested.yaml").write_text(f"- {{type: nemo, manifest_filepath: {manifest}}}\n")
    (tmp_path / "blend.yaml").write_text(
        f"- type: nemo_tarred\n  manifest_filepath: {manifests}\n"
        f"  tarred_audio_filepaths: {tars}\n"
        "- {type: group, input_cfg: '${data_blend_dir}/nested.yaml'}\n"
    )
    return tmp_path


def build(folder, *arguments):
    return run_script(BUILD, "--data-blend-dir", folder, *arguments, "blend.yaml", cwd=folder)


# build_indexes ------------------------------------------------------------------------------------


def test_build_indexes_takes_the_line_of_the_guide_and_says_what_the_guide_shows(folder):
    root = folder / "indexes"
    flags = ("--workers", 2, "--executor", "process", "--indexes-root", root)
    dry = build(folder, *flags, "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, "")
    first, *pending = dry.stderr.splitlines()
    assert first == "Discovered 5 files (0 already indexed, 5 to build)."
    tar = f"{folder}/tarred/audio_0.tar"
    assert f"  [nemo_tar] {tar} -> {root}{tar}.idx" in pending
    assert len(pending) == 5
    assert not root.exists()

    done = build(folder, *flags)
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.splitlines()
    assert lines[0] == first
    assert lines[1] == "  built 1/5 (20.0%)  failures=0"
    assert "  built 5/5 (100.0%)  failures=0" in lines
    assert read_idx(f"{root}{tar}.idx")[-1] == Path(tar).stat().st_size

    again = build(folder, *flags)
    assert again.stderr.splitlines()[0] == "Discovered 5 files (5 already indexed, 0 to build)."
    forced = build(folder, *flags, "--force")
    assert forced.stderr.splitlines()[0] == first


def test_build_indexes_puts_indexes_beside_the_data_and_takes_only_the_kinds_asked_for(folder):
    done = build(folder, "--kind", "jsonl", "--kind", "wds_tar")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "Discovered 3 files (0 already indexed, 3 to build)."
    assert (folder / "plain" / "manifest.json.idx").stat().st_size == 4 * 8
    assert not list(folder.rglob("*.tar.idx"))


def test_build_indexes_names_a_bad_file_at_once_and_at_the_end_and_builds_the_others(folder):
    (folder / "tarred" / "audio_1.tar").write_bytes(b"no archive" * 100)
    done = build(folder, "--workers", 0)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    tar = folder / "tarred" / "audio_1.tar"
    assert sum(line.startswith(f"  [FAIL] nemo_tar {tar}: ") for line in lines) == 1
    end = lines.index("1 index build(s) failed:")
    assert lines[end - 1] == ""
    assert lines[end + 1].startswith(f"  {tar} (nemo_tar): ")
    assert (folder / "tarred" / "audio_0.tar.idx").exists()


@pytest.mark.parametrize(
    "text",
    [
        "- {type: nemo, manifest_filepath: m.json}\n",
        "input_cfg:\n- {type: nemo, manifest_filepath: m.json}\n",
        "data: {train_ds: {input_cfg: [{type: nemo, manifest_filepath: m.json}]}, other: 1}\n",
    ],
)
def test_build_indexes_takes_a_list_a_mapping_and_a_whole_training_config(tmp_path, text):
    nemo_corpus(tmp_path, [0.2]).rename(tmp_path / "m.json")
    (tmp_path / "config.yaml").write_text(text)
    done = run_script(BUILD, "config.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m.json.idx").exists()


def test_build_indexes_takes_several_configs_and_builds_a_file_that_both_name_once(tmp_path):
    nemo_corpus(tmp_path, [0.2])
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("- {type: nemo, manifest_filepath: manifest.json}\n")
    done = run_script(BUILD, "a.yaml", "b.yaml", cwd=tmp_path)
    assert done.stderr.startswith("Discovered 1 files (0 already indexed, 1 to build).\n")
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--kind", "wds_tar_v2"), "--kind wds_tar_v2 is not to be had here: members are looked"),
        (("--kind=sharegpt_route",), "--kind sharegpt_route is not to be had here: members"),
        (("--executor", "rocket"), "--executor is 'rocket'. Choose one of process, thread."),
        (("--executor",), "--executor has 0 values, and takes 1."),
    ],
)
def test_build_indexes_refuses_what_is_not_to_be_had_in_one_line(folder, flags, said):
    done = run_script(BUILD, "blend.yaml", *flags, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("playhead: ")
    assert said in line


def test_threads_are_said_to_be_processes_once(folder):
    done = build(folder, "--executor", "thread", "--executor=thread", "--dry-run")
    assert done.returncode == 0
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert notes == ["note: --executor thread: files are indexed in processes all the same"]


# prefetch_indexes ---------------------------------------------------------------------------------


def test_prefetch_copies_what_build_indexes_made_and_skips_what_is_there(folder):
    made, near = folder / "made", folder / "near"
    assert build(folder, "--indexes-root", made).returncode == 0
    flags = ("--indexes-root", near, "--source-indexes-root", made, "--workers", 8)
    asked = (PREFETCH, "--data-blend-dir", folder, *flags)

    dry = run_script(*asked, "--dry-run", "blend.yaml", cwd=folder)
    assert (dry.returncode, dry.stdout) == (0, "")
    first, *pairs = dry.stderr.splitlines()
    count = len(pairs)
    assert first == f"Discovered {count} sidecars (0 already present locally, {count} to copy)."
    idx = f"{folder}/plain/manifest.json.idx"
    assert f"  {made}{idx}  ->  {near}{idx}" in pairs
    assert not near.exists()

    done = run_script(*asked, "blend.yaml", cwd=folder)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == f"  copied {count}/{count} (100.0%)  failures=0"
    assert (near / idx[1:]).read_bytes() == (made / idx[1:]).read_bytes()

    again = run_script(*asked, "blend.yaml", cwd=folder)
    said = f"Discovered {count} sidecars ({count} already present locally, 0 to copy)."
    assert again.stderr.splitlines() == [said]
    forced = run_script(*asked, "--force", "blend.yaml", cwd=folder)
    assert forced.stderr.splitlines()[0] == first


def test_prefetch_names_what_it_cannot_copy_and_ends_with_1(folder):
    near = folder / "near"
    assert build(folder, "--kind", "jsonl").returncode == 0
    done = run_script(
        PREFETCH, "--indexes-root", near, "--data-blend-dir", folder, "blend.yaml", cwd=folder
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    tar = f"{folder}/tarred/audio_0.tar.idx"
    assert any(line.startswith(f"  [FAIL] {tar}  ->  {near}{tar}: ") for line in lines)
    assert "2 copy operation(s) failed:" in lines
    assert (near / f"{folder}/plain/manifest.json.idx"[1:]).exists()


def test_prefetch_needs_somewhere_to_copy_to(folder):
    done = run_script(PREFETCH, "blend.yaml", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "playhead: --indexes-root is missing. Give it; --help lists all.\n"


# Input that cannot be used ------------------------------------------------------------------------


@pytest.mark.parametrize("script", [BUILD, PREFETCH])
@pytest.mark.parametrize("fault", ["unknown", "empty", "kind", "unreadable", "half"])
def test_a_config_that_cannot_be_used_is_one_line_and_exit_code_2(tmp_path, script, fault):
    config = tmp_path / "blend.yaml"
    if fault == "empty":
        config.write_text("")
    elif fault == "kind":
        config.write_text("just a text\n")
    elif fault == "unreadable":
        config.mkdir()
    elif fault == "half":
        config.write_text("- {type: nemo, manifest_filepath: [a.json,\n")
    root = () if script == BUILD else ("--indexes-root", tmp_path / "near")
    done = run_script(script, *root, config, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("playhead: ")
    assert str(config) in line


def test_a_manifest_that_was_half_written_is_named_with_its_place(tmp_path):
    manifest = nemo_corpus(tmp_path, [0.2, 0.3])
    manifest.write_bytes(manifest.read_bytes()[:-30])
    (tmp_path / "blend.yaml").write_text("- {type: nemo, manifest_filepath: manifest.json}\n")
    done = run_script(BUILD, "blend.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "manifest.json" in done.stderr
    assert "1 index build(s) failed:" in done.stderr.splitlines()
    assert "Traceback" not in done.stderr


# As processes -------------------------------------------------------------------------------------


def test_a_script_works_from_any_folder_and_its_workers_find_their_way(tmp_path):
    for number in range(3):
        write_jsonl(tmp_path / f"m{number}.jsonl", [{"text": "a"}] * 5)
    write_tar(tmp_path / "a.tar", [("a.wav", b"1"), ("b.wav", b"2")])
    (tmp_path / "blend.yaml").write_text(
        "- {type: txt_jsonl, paths: m_OP_0..2_CL_.jsonl, language: en}\n"
    )
    done = subprocess.run(
        [sys.executable, SCRIPTS / BUILD, "blend.yaml", "a.tar"],
        cwd=tmp_path,
        env={**os.environ, "PLAYHEAD_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("Discovered 4 files (0 already indexed, 4 to build).\n")
    assert len(list(tmp_path.glob("*.idx"))) == 4
