"""Paths that no file can have are said in one line, by every command that reads configs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.command import run_command
from support.corpus import nemo_corpus

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "check": (),
    "index": (),
    "pack": ("-o", "new.idxpack"),
    "prefetch": ("--indexes-root", "copies", "--manifests"),
}


def written(folder: Path, **keys: Any) -> Path:
    path = folder / "c.yaml"
    path.write_text(json.dumps({"train_ds": {"batch_size": 2, **keys}}))
    return path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["a\0b.json", "x" * 300, "x/" * 3000, "loop", "file/inside.json"])
def test_a_manifest(tmp_path: Path, command: str, name: str):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    config = written(tmp_path, manifest_filepath=f"{tmp_path}/{name}")
    done = run_command(command, config, *COMMANDS[command], cwd=tmp_path)
    assert done.returncode in (1, 2), done
    assert name.partition("\0")[0] in (done.stderr + done.stdout).replace("\n", "")
    assert "Errno" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_an_indexes_root_that_is_a_number(tmp_path: Path, command: str):
    manifest = nemo_corpus(tmp_path, [0.1])
    config = written(tmp_path, manifest_filepath=str(manifest), indexes_root=3)
    done = run_command(command, config, *COMMANDS[command], cwd=tmp_path)
    assert done.returncode == (1 if command == "check" else 2)
    assert "indexes_root" in done.stderr + done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_an_indexes_root_that_is_a_file(tmp_path: Path, command: str):
    manifest = nemo_corpus(tmp_path, [0.1])
    config = written(tmp_path, manifest_filepath=str(manifest), indexes_root=str(manifest))
    done = run_command(command, config, *COMMANDS[command], cwd=tmp_path)
    assert "Errno" not in done.stderr
    assert done.returncode == (0 if command == "pack" else 1), done


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pack_that_is_a_pipe_is_waited_for_by_nobody(tmp_path: Path, command: str):
    manifest = nemo_corpus(tmp_path, [0.1])
    os.mkfifo(tmp_path / "a.idxpack")
    config = written(
        tmp_path,
        manifest_filepath=str(manifest),
        indexed=True,
        index_pack=str(tmp_path / "a.idxpack"),
    )
    done = subprocess.run(
        [sys.executable, "-m", "playhead", command, config, *COMMANDS[command]],
        cwd=tmp_path,
        env={**os.environ, "PLAYHEAD_CACHE": str(tmp_path / "cache")},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    # Others replace the pack that a config names, or do not look at it.
    assert done.returncode == (1 if command in ("check", "prefetch") else 0), done


@pytest.mark.parametrize("command", COMMANDS)
def test_a_config_whose_name_has_two_lines(tmp_path: Path, command: str):
    done = run_command(command, "no\nwhere.yaml", *COMMANDS[command], cwd=tmp_path)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("playhead: ")
    assert r"no\nwhere.yaml" in line
