"""`playhead index --ray` on a real cluster of this machine: kills, Ctrl-C, and no cluster."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.corpus import tarred_corpus, write_jsonl
from support.token_models import sentencepiece_bytes, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="ray is not installed; `make test-ray` has it",
    ),
]

SECONDS = 180


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "playhead", "index", "blend.yaml", *map(str, arguments)]


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return {**kept, "PLAYHEAD_CACHE": str(folder / "cache"), "COLUMNS": "200"}


def playhead(folder: Path, *arguments: object) -> Any:
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(folder),
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def started(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=environment(folder),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for i in range(12):
        names = [f"/{i}_{row}.wav" for row in range(3000)]
        rows = [{"audio_filepath": name, "duration": 1.5, "text": name} for name in names]
        write_jsonl(tmp_path / f"m_{i}.json", rows)
    manifests, tars = tarred_corpus(tmp_path / "tarred", [0.5] * 12, shards=4)
    (tmp_path / "blend.yaml").write_text(
        f"- {{type: nemo, manifest_filepath: {tmp_path}/m__OP_0..11_CL_.json}}\n"
        f"- {{type: nemo_tarred, manifest_filepath: {manifests}, tarred_audio_filepaths: {tars}}}\n"
    )
    write(tmp_path / "en.model", sentencepiece_bytes())
    return tmp_path


def made(root: Path) -> dict[str, bytes]:
    wanted = (".idx", ".idxpack", ".arrow")
    found = sorted(path for path in root.rglob("*") if path.suffix in wanted)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def processes_below(pid: int) -> dict[int, str]:
    """Command lines of a process's children, and of theirs."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
            names[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    found: dict[int, str] = {}
    family = {pid}
    while family:
        family = {child for child, parent in parents.items() if parent in family}
        found.update((child, names.get(child, "")) for child in family)
    return found


def busy_worker(driver: subprocess.Popen[str]) -> int:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and driver.poll() is None:
        for pid, name in processes_below(driver.pid).items():
            if name.startswith("ray::_serve"):
                return pid
        time.sleep(0.002)
    raise AssertionError("no worker was seen at work")


def test_a_cluster_makes_what_processes_make_and_says_the_same(corpus: Path):
    shared = ("--tokenizer", "en.model", "--json", "--indexes-root")
    alone = playhead(corpus, *shared, "whole")
    there = playhead(corpus, *shared, "root", "--ray", "local", "--workers", "3")
    assert (alone.returncode, there.returncode) == (0, 0), there.stderr
    assert made(corpus / "root") == made(corpus / "whole")
    assert len(made(corpus / "root")) == 12 + 8 + 2 + 2
    one, other = json.loads(alone.stdout), json.loads(there.stdout)
    assert one.keys() == other.keys()
    for name in ("built", "samples", "failures", "discovered", "notes"):
        assert one[name] == other[name]
    assert alone.stderr.replace("whole", "root") == there.stderr


def test_a_worker_that_is_killed_changes_nothing_but_a_line(corpus: Path):
    assert playhead(corpus, "--indexes-root", "whole").returncode == 0
    driver = started(corpus, "--indexes-root", "root", "--ray", "local", "--workers", "2")
    os.kill(busy_worker(driver), signal.SIGKILL)
    said = driver.communicate(timeout=SECONDS)[1]
    assert driver.returncode == 0, said
    assert "its Ray worker was lost" in said
    assert made(corpus / "root") == made(corpus / "whole")


def test_bad_data_end_with_1_and_the_rest_is_done(corpus: Path):
    (corpus / "m_3.json").write_text("{\n")
    done = playhead(corpus, "--indexes-root", "root", "--ray", "local", "--workers", "2")
    assert done.returncode == 1
    assert "m_3.json:1" in done.stderr
    assert "Packs: 1 built, 0 up to date, 1 failed" in done.stderr


def test_ctrl_c_ends_the_command_and_its_cluster(corpus: Path):
    driver = started(corpus, "--indexes-root", "root", "--ray", "local", "--workers", "2")
    busy_worker(driver)
    family = processes_below(driver.pid)
    driver.send_signal(signal.SIGINT)
    said = driver.communicate(timeout=SECONDS)[1]
    assert driver.returncode not in (0, None)
    assert "Traceback" not in said
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in family) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [name for pid, name in family.items() if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("address", ["auto", "127.0.0.1:9", "ray://127.0.0.1:9", "nonsense"])
def test_no_cluster_ends_with_2_and_says_so(corpus: Path, address: str):
    done = playhead(corpus, "--indexes-root", "root", "--ray", address)
    assert done.returncode == 2, done.stderr
    assert f"(--ray {address})" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (corpus / "root").exists()
