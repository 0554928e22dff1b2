"""`playhead index --part`: real processes, one of which is killed, make what one machine makes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from playhead.cli import main
from support.corpus import tarred_corpus, write_jsonl
from support.token_models import sentencepiece_bytes, write

if TYPE_CHECKING:
    from collections.abc import Mapping


def environment(folder: Path, **variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    return {**kept, "PLAYHEAD_CACHE": str(folder / "cache"), "COLUMNS": "200", **variables}


def playhead(
    folder: Path, *arguments: object, command: str = "index", **variables: str
) -> SimpleNamespace:
    """Run the command in this process, as its own program would."""
    argv = ["playhead", command, "--workers", "1", *map(str, arguments)]
    out, err, code = StringIO(), StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", argv)
        patch.chdir(folder)
        for name in set(os.environ) - set(environment(folder)):
            patch.delenv(name)
        for name, value in environment(folder, **variables).items():
            patch.setenv(name, value)
        try:
            main()
        except SystemExit as end:
            code = end.code
    return SimpleNamespace(returncode=code or 0, stdout=out.getvalue(), stderr=err.getvalue())


def corpus(folder: Path, manifests: int = 8, rows: int = 20) -> Path:
    """A config of two inputs, one of them of archives."""
    for i in range(manifests):
        names = [f"/{i}_{row}.wav" for row in range(rows * (i + 1))]
        rows_of = [{"audio_filepath": name, "duration": 1.5, "text": name} for name in names]
        write_jsonl(folder / f"m_{i}.json", rows_of)
    tarred = tarred_corpus(folder / "tarred", [0.5] * 12, shards=4)
    (folder / "blend.yaml").write_text(
        f"- {{type: nemo, manifest_filepath: {folder}/m__OP_0..{manifests - 1}_CL_.json}}\n"
        f"- {{type: nemo_tarred, manifest_filepath: {tarred[0]}, "
        f"tarred_audio_filepaths: {tarred[1]}}}\n"
    )
    return folder / "blend.yaml"


def made(root: Path) -> Mapping[str, bytes]:
    """All that indexing leaves for good."""
    wanted = (".idx", ".idxpack", ".arrow")
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.suffix in wanted
    }


def test_parts_from_the_first_to_the_last(tmp_path):
    blend = corpus(tmp_path)
    assert playhead(tmp_path, blend, "--indexes-root", "whole").returncode == 0
    told = []
    for number in (2, 3, 1):
        done = playhead(
            tmp_path, blend, "--indexes-root", "root", "--part", f"{number}/3", "--json"
        )
        assert done.returncode == 0, done.stderr
        told.append((json.loads(done.stdout), done.stderr))
    summary, said = told[0]
    assert summary["part"] == "2/3"
    assert summary["missing_parts"] == [1, 3]
    assert {pack["status"] for pack in summary["packs"]} == {"waiting"}
    command = f"playhead index --workers 1 {blend} --indexes-root root --json --part 1/3"
    assert f"2 of 3 parts are missing (1, 3): wait until they are done, or run `{command}`" in said
    assert "Packs: 0 built, 0 up to date, 2 waiting for other parts, 0 failed; 0 rows" in said
    assert "1 of 3 part is missing (1)" in told[1][1]
    summary, said = told[2]
    assert summary["missing_parts"] == []
    assert "Packs: 2 built, 0 up to date, 0 failed; 732 rows" in said
    assert sum(summary["discovered"] for summary, _ in told) == 16
    assert made(tmp_path / "root") == made(tmp_path / "whole")
    # What a part says to run is what does it.
    again = playhead(tmp_path, *shlex.split(command)[2:])
    assert again.returncode == 0
    assert "0 built, 2 up to date" in again.stderr


def test_a_part_of_one_is_everything(tmp_path):
    blend = corpus(tmp_path, manifests=2)
    done = playhead(tmp_path, blend, "--indexes-root", "root", "--part", "1/1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["part"] is None
    assert len(made(tmp_path / "root")) == 2 + 8 + 2


def test_tokens_are_counted_in_parts_once_the_packs_are_there(tmp_path):
    blend = corpus(tmp_path, manifests=3)
    write(tmp_path / "en.model", sentencepiece_bytes())
    shared = (blend, "--tokenizer", "en.model", "--json", "--indexes-root")
    whole = playhead(tmp_path, *shared, "whole")
    assert whole.returncode == 0, whole.stderr
    runs = [playhead(tmp_path, *shared, "root", "--part", f"{i}/2") for i in (1, 2, 1)]
    assert [done.returncode for done in runs] == [0, 0, 0], runs
    assert "the tokens of 2 packs cannot be counted before all parts" in runs[0].stderr
    first, second, third = (json.loads(done.stdout) for done in runs)
    assert first["tokens"] == []
    # Leaves of few rows are not divided, so the part that makes the packs may have both.
    assert second["missing_parts"] in ([], [1])
    assert third["missing_parts"] == []
    assert [one["tokens"] for one in third["tokens"]] == [
        one["tokens"] for one in json.loads(whole.stdout)["tokens"]
    ]
    assert made(tmp_path / "root") == made(tmp_path / "whole")
    assert not list((tmp_path / "root").rglob("*.parts"))


@pytest.mark.e2e
def test_parts_side_by_side_one_of_which_is_killed_and_run_again(tmp_path):
    blend = corpus(tmp_path, rows=2000)
    assert playhead(tmp_path, blend, "--indexes-root", "whole").returncode == 0
    folder = tmp_path / "root/playhead"
    command = [sys.executable, "-m", "playhead", "index", str(blend), "--indexes-root", "root"]

    def start(number: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, "--part", f"{number}/4", "--workers", "1"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    victim = start(3)
    deadline = time.monotonic() + 60
    while not list(folder.rglob("*.tmp")) and victim.poll() is None:
        assert time.monotonic() < deadline
    os.killpg(victim.pid, signal.SIGKILL)
    victim.communicate(timeout=60)
    parts = {number: start(number) for number in (1, 2, 4)}
    said = {number: part.communicate(timeout=120)[1] for number, part in parts.items()}
    assert [part.returncode for part in parts.values()] == [0, 0, 0], said
    assert made(tmp_path / "root") != made(tmp_path / "whole")
    last = [text for text in said.values() if "1 of 4 part is missing (3)" in text]
    assert len(last) >= 1, said
    twins = [start(3), start(3)]
    texts = [twin.communicate(timeout=120)[1] for twin in twins]
    assert [twin.returncode for twin in twins] == [0, 0], texts
    assert made(tmp_path / "root") == made(tmp_path / "whole")
    assert not list(folder.rglob("*.scan"))
    assert not list(folder.glob("*.parts"))


@pytest.mark.parametrize(
    ("arguments", "variables", "says"),
    [
        (["--part", "0/4"], {}, "no part 0/4"),
        (["--part", "5/4"], {}, "no part 5/4"),
        (["--part", "a/b"], {}, "'a/b' is no part"),
        (["--part", ""], {}, "'' is no part"),
        (["--part", "auto"], {}, "neither a task of a Slurm array"),
        (["--part", "auto"], {"SLURM_ARRAY_TASK_ID": "1"}, "here is no SLURM_ARRAY_TASK_COUNT"),
        (["--part", "1/2", "--exclude", "x.jsonl"], {}, "--exclude needs all packs"),
    ],
)
def test_wrong_parts_end_with_2_before_anything_is_done(tmp_path, arguments, variables, says):
    blend = corpus(tmp_path, manifests=1)
    done = playhead(tmp_path, blend, "--indexes-root", "root", *arguments, **variables)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "root").exists()


def test_a_part_with_bad_data_ends_with_1_and_the_others_with_0(tmp_path):
    blend = corpus(tmp_path, manifests=3)
    (tmp_path / "m_1.json").write_text("{\n")
    codes = []
    for number in (1, 2, 1):
        done = playhead(tmp_path, blend, "--indexes-root", "root", "--part", f"{number}/2")
        codes.append(done.returncode)
        assert ("m_1.json:1" in done.stderr) == (done.returncode == 1)
    assert sorted(codes[:2]) == [0, 1]
    assert codes[2] == codes[0]


def test_a_pack_of_a_blend_is_made_in_parts(tmp_path):
    blend = corpus(tmp_path, manifests=3)

    def pack(name: str, *arguments: object) -> SimpleNamespace:
        return playhead(tmp_path, blend, "-o", name, *arguments, command="pack")

    assert pack("whole.idxpack").returncode == 0
    first = pack("parts.idxpack", "--part", "2/2")
    assert first.returncode == 0, first.stderr
    assert "1 of 2 part is missing (1)" in first.stderr
    assert not (tmp_path / "parts.idxpack").exists()
    last = pack("parts.idxpack", "--part", "1/2")
    assert last.returncode == 0, last.stderr
    assert f"Wrote {tmp_path}/parts.idxpack: 2 inputs, 132 rows" in last.stderr
    assert (tmp_path / "parts.idxpack").read_bytes() == (tmp_path / "whole.idxpack").read_bytes()
    assert not list(tmp_path.glob("*.parts"))
    # Whoever comes late finds it made; another pack is in the way.
    assert pack("parts.idxpack", "--part", "2/2").returncode == 0
    other = pack("parts.idxpack", "--part", "2/2", "--embed-rows")
    assert other.returncode == 2
    assert "there is a file already" in other.stderr.lower()
    assert pack("x.idxpack", "--part", "1/2", "--rebind", "whole.idxpack").returncode == 2
    for number in (1, 2):
        both = ("--part", f"{number}/2", "--embed-rows", "--overwrite")
        assert pack("parts.idxpack", *both).returncode == 0
    assert pack("embedded.idxpack", "--embed-rows").returncode == 0
    assert (tmp_path / "parts.idxpack").stat().st_size == (
        tmp_path / "embedded.idxpack"
    ).stat().st_size


@pytest.mark.e2e
def test_the_script_of_the_documentation_is_a_whole_array(tmp_path):
    blend = corpus(tmp_path, manifests=2)
    blend.rename(tmp_path / "train.yaml")
    page = (Path(__file__).parents[2] / "docs/clusters.md").read_text()
    script = page[page.index("#!/bin/bash") :].partition("```")[0]
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "playhead").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m playhead "$@"\n')
    (bin_folder / "playhead").chmod(0o755)
    (tmp_path / "index.sbatch").write_text(script.replace("/shared/indexes", "root"))
    assert playhead(tmp_path, "train.yaml", "--indexes-root", "whole").returncode == 0
    for task in (1, 0):
        variables = environment(
            tmp_path,
            PATH=f"{bin_folder}:{os.environ['PATH']}",
            SLURM_CPUS_PER_TASK="1",
            SLURM_ARRAY_TASK_ID=str(task),
            SLURM_ARRAY_TASK_COUNT="2",
            SLURM_ARRAY_TASK_MIN="0",
            SLURM_ARRAY_TASK_MAX="1",
            SLURM_ARRAY_TASK_STEP="1",
        )
        subprocess.run(
            ["bash", "index.sbatch"], cwd=tmp_path, env=variables, check=True, timeout=120
        )
    assert made(tmp_path / "root") == made(tmp_path / "whole")
