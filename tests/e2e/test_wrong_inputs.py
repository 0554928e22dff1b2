"""What people get wrong first gives one line that says what, where and what to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from support.corpus import nemo_corpus, tarred_corpus

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.e2e

BASE = {"batch_duration": 5, "sample_rate": 8000, "seed": 1}


def missing_config(folder: Path) -> tuple[Any, str]:
    return str(folder / "nowhere.yaml"), "nowhere.yaml"


def broken_yaml(folder: Path) -> tuple[Any, str]:
    path = folder / "broken.yaml"
    path.write_text("input_cfg: [{type: nemo\n  manifest_filepath: :")
    return str(path), "broken.yaml"


def missing_manifest(folder: Path) -> tuple[Any, str]:
    path = folder / "config.yaml"
    entry = {"type": "nemo", "manifest_filepath": str(folder / "gone.json")}
    path.write_text(json.dumps({"input_cfg": [entry], **BASE}))
    return str(path), "gone.json"


def misspelt_option(folder: Path) -> tuple[Any, str]:
    manifest = nemo_corpus(folder, [0.5], rate=8000)
    path = folder / "config.yaml"
    path.write_text(json.dumps({"manifest_filepath": str(manifest), **BASE, "batch_duratoin": 3}))
    return str(path), "batch_duratoin.*batch_duration"


def bad_row(folder: Path) -> tuple[Any, str]:
    manifest = nemo_corpus(folder, [0.5] * 4, rate=8000)
    rows = manifest.read_text().splitlines(keepends=True)
    rows[2] = rows[2][:-10] + "\n"
    manifest.write_text("".join(rows))
    path = folder / "config.yaml"
    path.write_text(json.dumps({"manifest_filepath": str(manifest), **BASE}))
    return str(path), r"manifest\.json:3.*byte"


def fewer_tars(folder: Path) -> tuple[Any, str]:
    manifest, tar = tarred_corpus(folder, [0.5] * 6, shards=3, rate=8000)
    entry = {
        "type": "nemo_tarred",
        "manifest_filepath": manifest,
        "tarred_audio_filepaths": tar.replace("0..2", "0..1"),
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps({"input_cfg": [entry], **BASE}))
    return str(path), "3.*2|2.*3"


def unknown_type(folder: Path) -> tuple[Any, str]:
    manifest = nemo_corpus(folder, [0.5], rate=8000)
    path = folder / "config.yaml"
    entry = {"type": "nemoo", "manifest_filepath": str(manifest)}
    path.write_text(json.dumps({"input_cfg": [entry], **BASE}))
    return str(path), "nemoo"


WRONG = [
    missing_config,
    broken_yaml,
    missing_manifest,
    misspelt_option,
    bad_row,
    fewer_tars,
    unknown_type,
]


@pytest.mark.parametrize("wrong", WRONG)
def test_the_library_raises_one_line(tmp_path: Path, wrong: Any) -> None:
    config, said = wrong(tmp_path)
    with pytest.raises(playhead.PlayheadError, match=said) as caught:
        next(iter(playhead.dataloader(config, rank=0, world_size=1)))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("wrong", WRONG)
def test_the_command_says_it_without_a_traceback(tmp_path: Path, wrong: Any) -> None:
    config, said = wrong(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "playhead", "index", config],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "COLUMNS": "400"},
    )
    assert done.returncode in {1, 2}, done
    assert "Traceback" not in done.stderr + done.stdout
    named = [line for line in done.stderr.splitlines() if re.search(said, line)]
    assert named, done.stderr


def test_no_data_is_said(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text("")
    with pytest.raises(playhead.PlayheadError, match=r"manifest\.json|no "):
        next(iter(playhead.dataloader({"manifest_filepath": str(manifest), **BASE})))
