import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from playhead.cli.progress import Heartbeat
from playhead.index.idx import read_idx
from support.corpus import nemo_corpus, tarred_corpus, write_jsonl, write_tar


def playhead(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PLAYHEAD_CACHE": str(cwd / "cache"), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "playhead", "index", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_files_from_nothing_to_up_to_date(tmp_path):
    for i in range(3):
        write_jsonl(tmp_path / f"m{i}.jsonl", [{"a": 1}] * (i + 1))
    write_tar(tmp_path / "nemo.tar", [("a.wav", b"1"), ("b.wav", b"22")])
    names = [tmp_path / "m_OP_0..2_CL_.jsonl", tmp_path / "nemo.tar"]
    root = tmp_path / "root"

    dry = playhead(*names, "--indexes-root", root, "--dry-run", cwd=tmp_path)
    assert (dry.returncode, dry.stdout) == (0, "")
    first, *pending = dry.stderr.splitlines()
    assert first == "Discovered 4 files (0 already indexed, 4 to build)."
    assert pending[0] == f"  [jsonl] {tmp_path}/m0.jsonl -> {root}{tmp_path}/m0.jsonl.idx"
    assert len(pending) == 4
    assert not root.exists()

    done = playhead(*names, "--indexes-root", root, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        first,
        "  built 1/4 (25.0%)  failures=0",
        "  built 2/4 (50.0%)  failures=0",
        "  built 3/4 (75.0%)  failures=0",
        "  built 4/4 (100.0%)  failures=0",
    ]
    summary = json.loads(done.stdout)
    assert (summary["built"], summary["samples"], summary["failures"]) == (4, 8, [])
    assert read_idx(f"{root}{tmp_path}/nemo.tar.idx").tolist() == [0, 1024, 10240]

    again = playhead(*names, "--indexes-root", root, cwd=tmp_path)
    assert again.stderr == "Discovered 4 files (4 already indexed, 0 to build).\n"
    assert again.returncode == 0
    forced = playhead(
        *names, "--indexes-root", root, "--force", "--kind", "jsonl", "--part", "1/2", cwd=tmp_path
    )
    assert forced.stderr.splitlines() == [
        "Discovered 1 files (0 already indexed, 1 to build).",
        "  built 1/1 (100.0%)  failures=0",
    ]


def test_failures_are_named_and_the_others_built(tmp_path):
    write_jsonl(tmp_path / "good.jsonl", [{"a": 1}])
    (tmp_path / "bad.tar").write_bytes(b"x" * 1024)
    (tmp_path / "blend.yaml").write_text(
        "- {type: share_gpt, manifest_filepath: good.jsonl, tarred_audio_filepaths: bad.tar}\n"
        "- {type: txt_jsonl, paths: gone.jsonl}\n"
        "- {type: lhotse_shar, shar_path: no_folder}\n"
        "- {type: mystery, manifest_filepath: other.jsonl}\n"
    )
    done = playhead("blend.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Note: an entry of the unknown type 'mystery'")
    assert "Discovered 3 files (0 already indexed, 3 to build)." in lines
    assert lines.count("  built 3/3 (100.0%)  failures=2") == 1
    bad = "The header is damaged: its checksum is wrong (bad.tar, byte 0). Write the archive again."
    assert f"  [FAIL] nemo_tar bad.tar: {bad}" in lines
    assert any(
        line.startswith("  [FAIL] jsonl gone.jsonl: The file does not exist") for line in lines
    )
    assert any(line.startswith("  [FAIL] wds_tar no_folder: ") for line in lines)
    start = lines.index("4 index build(s) failed:")
    assert lines[start - 1] == ""
    assert f"  bad.tar (nemo_tar): {bad}" in lines[start:]
    assert (tmp_path / "good.jsonl.idx").exists()
    assert not (tmp_path / "bad.tar.idx").exists()


def test_what_fails_for_one_reason_is_not_listed_file_by_file_at_the_end(tmp_path):
    names = [f"gone_{number}.jsonl" for number in range(6)]
    (tmp_path / "bad.tar").write_bytes(b"x" * 1024)
    entries = [f"- {{type: txt_jsonl, paths: {name}}}" for name in names]
    (tmp_path / "blend.yaml").write_text("\n".join(entries) + "\n")
    done = playhead("blend.yaml", "bad.tar", "--json", cwd=tmp_path)
    lines = done.stderr.splitlines()
    listed = lines[lines.index("7 index build(s) failed:") + 1 :]
    assert len(listed) == 5, listed
    assert sum("(jsonl): The file does not exist (gone_" in line for line in listed) == 3
    assert sum("bad.tar (" in line for line in listed) == 1
    assert listed.count("  … and 3 more, for the same reason") == 1
    # Nothing is lost: each is named when it fails, and in the summary.
    assert all(any(f"[FAIL] jsonl {name}: " in line for line in lines) for name in names)
    failed = {one["path"] for one in json.loads(done.stdout)["failures"]}
    assert failed == {*names, "bad.tar"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.yaml"], "no such config (nowhere.yaml)"),
        (["bad.yaml"], "not valid YAML"),
        (["empty.yaml"], "Nothing here names data (empty.yaml)"),
        (["bad.yaml", "--part", "0/3"], "0/3"),
        (["bad.yaml", "--part", "\u00b2/3"], "\u00b2/3"),
        (["bad.yaml", "--part", "1/"], "1/"),
        (["hdfs://x/y.tar"], "hdfs:// here (hdfs://x/y.tar)"),
        (["x" * 300 + ".jsonl"], "no such file or folder"),
        (["--workers", "many", "bad.yaml"], "--workers"),
        ([], "Missing argument"),
    ],
)
def test_bad_calls_end_with_2_and_no_traceback(tmp_path, arguments, message):
    (tmp_path / "bad.yaml").write_text("a: [")
    (tmp_path / "empty.yaml").write_text("input_cfg: []")
    write_jsonl(tmp_path / "ok.jsonl", [{"a": 1}])
    done = playhead(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_config_of_misspelt_types_alone_is_refused_by_name(tmp_path):
    (tmp_path / "a.json").write_text("")
    (tmp_path / "blend.yaml").write_text(
        "train_ds: {input_cfg: [{type: nemmo, manifest_filepath: a.json}]}\n"
    )
    done = playhead("blend.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "the input type 'nemmo' is not known" in done.stderr.lower()
    assert "Write `nemo`" in done.stderr


def test_configs_get_packs(tmp_path):
    nemo_corpus(tmp_path / "plain", [1.0, 2.0, 3.0])
    manifests, tars = tarred_corpus(tmp_path / "tarred", [0.5] * 10, shards=2)
    (tmp_path / "blend.yaml").write_text(
        f"- {{type: nemo, manifest_filepath: {tmp_path}/plain/manifest.json}}\n"
        f"- {{type: nemo_tarred, manifest_filepath: {manifests}, tarred_audio_filepaths: {tars}}}\n"
    )
    root = tmp_path / "root"
    done = playhead("blend.yaml", "--indexes-root", root, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Packs: 2 built, 0 up to date, 0 failed; 13 rows, in " in done.stderr
    summary = json.loads(done.stdout)
    assert sorted(pack["rows"] for pack in summary["packs"]) == [3, 10]
    assert all(Path(pack["path"]).is_relative_to(root) for pack in summary["packs"])
    again = playhead("blend.yaml", "--indexes-root", root, cwd=tmp_path)
    assert "Packs: 0 built, 2 up to date, 0 failed; 13 rows, in " in again.stderr


def test_files_that_do_not_pair_keep_no_other_input_from_its_pack(tmp_path):
    plain = nemo_corpus(tmp_path / "plain", [0.1, 0.2])
    manifests, tars = tarred_corpus(tmp_path / "tarred", [0.1] * 4, 2)
    unpaired = {
        "type": "nemo_tarred",
        "manifest_filepath": manifests,
        "tarred_audio_filepaths": tars.replace("_OP_0..1_CL_", "0"),
    }
    paired = {"type": "nemo", "manifest_filepath": str(plain)}
    (tmp_path / "c.yaml").write_text(json.dumps({"input_cfg": [unpaired, paired]}))
    done = playhead("c.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 1
    summary = json.loads(done.stdout)
    assert [(pack["status"], pack["rows"]) for pack in summary["packs"]] == [
        ("failed", 0),
        ("built", 2),
    ]
    [failure] = summary["failures"]
    assert "1 of 2 manifests and 1 tars have no partner" in failure["error"]
    assert failure["path"] == manifests


def test_sigkill_at_any_moment_leaves_whole_files(tmp_path):
    """The parent is killed while its workers write; nothing half is ever under the final name."""
    for i in range(120):
        (tmp_path / f"{i}.jsonl").write_bytes(b"{}\n" * 20_000)
    names = [str(tmp_path / "_OP_0..119_CL_.jsonl")]
    command = [sys.executable, "-m", "playhead", "index", *names, "--force"]
    for goal in (1, 60, 119):
        with subprocess.Popen(
            command, stderr=subprocess.DEVNULL, start_new_session=True
        ) as process:
            deadline = time.monotonic() + 60
            while len(list(tmp_path.glob("*.idx"))) < goal and time.monotonic() < deadline:
                time.sleep(0.001)
            os.killpg(process.pid, signal.SIGKILL)
        found = list(tmp_path.glob("*.idx"))
        assert len(found) >= goal
        for path in found:
            assert len(read_idx(path)) == 20_001
            path.unlink()
    done = playhead(*names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*.idx"))) == 120


def test_a_closing_heartbeat_always_comes(capsys):
    with Heartbeat(50) as heartbeat:
        for i in range(47):
            heartbeat.advance(failure="  [FAIL] x" if i == 46 else None)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "  built 2/50 (4.0%)  failures=0"
    assert lines[-2:] == ["  [FAIL] x", "  built 47/50 (94.0%)  failures=1"]
    with Heartbeat(0):
        pass
    assert capsys.readouterr().err == ""


def test_help_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['playhead', '--help']\n"
        "from playhead.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pyarrow', 'torch', 'lhotse', 'omegaconf', 'yaml'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "index" in done.stdout
