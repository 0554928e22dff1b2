"""The command says what differs, where and why, and ends with what scripts look at."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import count

import pytest

from playhead.cli import main
from support.corpus import nemo_corpus

GOOD = """
import random

class Sound:
    reads_audio = True

    def __init__(self):
        self.rng = random.Random()

    def collate(self, examples, *, sample_rate, sample_keys):
        return {"ids": [example.id for example in examples], "drawn": self.rng.random()}

def factory():
    return Sound()

READY = Sound()
"""
COUNTS = """
class Counts:
    reads_audio = False
    calls = 0

    def collate(self, examples, *, sample_rate, sample_keys):
        self.calls += 1
        return {"texts": [f"{example.text} {self.calls}" for example in examples]}
"""
_numbers = count()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    manifest = nemo_corpus(tmp_path, [0.1 + 0.01 * n for n in range(8)])
    (tmp_path / "blend.yaml").write_text(
        f"train_ds: {{manifest_filepath: {manifest}, batch_size: 2, shuffle: true}}\n"
    )
    return tmp_path


@pytest.fixture
def playhead(folder, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["playhead", "check", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return ended.value.code, said.out, said.err

    return run


def module(folder, source):
    """The name of a new module of that source in the current folder."""
    name = f"my_data_{next(_numbers)}"
    (folder / f"{name}.py").write_text(source)
    return name


@pytest.mark.parametrize("made", ["Sound", "factory", "READY"])
def test_repeatable(folder, playhead, made):
    name = module(folder, GOOD)
    code, out, err = playhead(
        "blend.yaml", "--repeatable", "--dataset", f"{name}:{made}", "--workers", 0
    )
    assert (code, err) == (0, "")
    assert "dataset.rng  random.Random  seeded before each batch" in out
    assert out.startswith("blend.yaml, section train_ds: 1 source, ")
    assert "\nReady: 0 failures, " in out
    assert "\n3 batches were made twice here.\n" in out
    assert out.endswith("\nRepeatable.\n")


def test_not_repeatable(folder, playhead):
    name = module(folder, COUNTS)
    code, out, _ = playhead(
        "blend.yaml", "--repeatable", "--dataset", f"{name}:Counts", "--workers", 0
    )
    assert code == 1
    assert 'differs at batch["texts"][0]: ' in out
    assert "Look for what the dataset keeps from call to call" in out
    assert out.endswith("NOT repeatable.\n")


def test_as_json(folder, playhead):
    name = module(folder, COUNTS)
    code, out, _ = playhead(
        *("blend.yaml", "--repeatable", "--dataset", f"{name}:Counts"),
        *("--workers", 0, "--batches", 2, "--section", "train_ds", "--json"),
    )
    report = json.loads(out)
    facts = report["repeatability"]
    assert code == 1
    assert report["passed"] is True
    assert facts["repeatable"] is False
    assert facts["batches"] == 2
    assert [item["where"] for item in facts["differences"]] == ['batch["texts"][0]'] * 2
    assert "set_rng" in facts["advice"]


def test_in_a_process_of_its_own_and_a_fresh_one(folder):
    """The fresh process finds the module that the command found in the current folder."""
    name = module(folder, GOOD)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "playhead", "check", "blend.yaml", "--repeatable"),
            *("--dataset", f"{name}:Sound"),
        ],
        env=os.environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "made twice here and in 1 fresh process." in done.stdout
    assert "forked" not in done.stdout


WRONG = {
    "no_colon": ("my_data", r"'my_data' names no dataset \(--dataset\)"),
    "no_module": ("nobody_has_this:Name", "no module nobody_has_this"),
    "no_name": ("{ok}:Sond", r"has no Sond \(.*\.py\)\. It has Sound, factory"),
    "syntax": ("{syntax}:Name", r"cannot be imported: SyntaxError: .*\(.*\.py:3\)"),
    "missing": ("{missing}:Name", r"ModuleNotFoundError: No module named 'nobody'.*\.py:2\)"),
    "exit": ("{exits}:Name", r"SystemExit: 3 \(.*\.py:2\)"),
    "import": ("{raises}:Name", r"ValueError: what now \(.*\.py:3\)"),
    "arguments": ("{needs}:Needs", r"could not be made: TypeError: .*needs no arguments"),
    "constructor": ("{fails}:Fails", r"could not be made: KeyError: 'vocab' \(.*\.py:3\)"),
    "batch": ("{bad}:Bad", r"failed to make a batch: ZeroDivisionError: .* \(.*\.py:5\)"),
    "os": ("{lost}:Lost", r"failed to make a batch: FileNotFoundError: .*gone.* \(.*\.py:5\)"),
}
SOURCES = {
    "ok": GOOD,
    "syntax": "x = 1\n\ndef f(:\n",
    "missing": "\nimport nobody\n",
    "exits": "import sys\nsys.exit(3)\n",
    "raises": "\ndef f(): \n    raise ValueError('what now')\nf()\n",
    "needs": "class Needs:\n    def __init__(self, path): ...\n",
    "fails": "class Fails:\n    def __init__(self):\n        {}['vocab']\n",
    "bad": "class Bad:\n    reads_audio = False\n\n    def collate(self, examples, **kwargs):\n"
    "        return 1 / 0\n",
    "lost": "class Lost:\n    reads_audio = False\n\n    def collate(self, examples, **kwargs):\n"
    "        return open('gone')\n",
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_named_without_a_traceback(folder, playhead, case):
    dataset, message = WRONG[case]
    names = {name: module(folder, source) for name, source in SOURCES.items()}
    code, out, err = playhead(
        *("blend.yaml", "--repeatable", "--workers", 0),
        *("--dataset", dataset.format_map(names)),
    )
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1

    assert re.search(message, err), err


def test_wrong_configs_and_data(folder, playhead):
    code, _, err = playhead("gone.yaml", "--repeatable")
    assert code == 2
    assert "gone.yaml" in err
    (folder / "wav" / "utt00000.wav").write_bytes(b"")
    code, _, err = playhead("blend.yaml", "--repeatable", "--batches", 4, "--workers", 0)
    assert code == 2
    assert "utt00000.wav" in err


def test_what_the_config_says_besides_is_said(folder, playhead):
    text = (folder / "blend.yaml").read_text()
    (folder / "blend.yaml").write_text(
        text.replace("batch_size", "bucket_buffer_size: 7, batch_size")
    )
    code, _, err = playhead("blend.yaml", "--repeatable", "--workers", 0)
    assert code == 0
    assert err.startswith("note: ")
    assert "bucket_buffer_size" in err


def test_a_config_that_is_ready(folder, playhead):
    code, out, err = playhead("blend.yaml")
    assert (code, err) == (0, "")
    assert "\nReady: 0 failures, 1 warning, 2 notes.\n" in out
    assert out.endswith("Next: `playhead index blend.yaml`\n")
    # Where nobody looks at a terminal there are no colours.
    assert "\x1b" not in out


def test_a_config_that_is_not_ready_and_what_to_change(folder, playhead):
    text = (folder / "blend.yaml").read_text()
    (folder / "blend.yaml").write_text(text.replace("batch_size", "max_durration: 9, batch_size"))
    code, out, err = playhead("blend.yaml", "--section", "train_ds")
    assert (code, err) == (1, "")
    change = ["@@ blend.yaml: train_ds @@", "- max_durration: 9", "+ max_duration: 9"]
    assert "\n".join(f"      {line}" for line in change) in out
    assert "\nNOT ready: 1 failure, " in out
    assert out.endswith("then `playhead check blend.yaml --section train_ds`\n")
    # It is the user's file: nobody writes to it.
    assert "max_durration" in (folder / "blend.yaml").read_text()


def test_what_is_ignored_does_not_count_and_is_said(folder, playhead):
    text = (folder / "blend.yaml").read_text()
    (folder / "blend.yaml").write_text(
        text.replace("batch_size", "metadata_only: true, batch_size")
    )
    assert playhead("blend.yaml")[0] == 1
    code, out, _ = playhead("blend.yaml", "--ignore", "metadata-only", "--ignore", "no-workers")
    assert code == 0
    assert "\nReady: 0 failures, 0 warnings, " in out
    assert "\nignored: 2 findings of metadata-only, no-workers\n" in out
    code, _, err = playhead("blend.yaml", "--ignore", "metadata_only")
    assert code == 2
    assert "no rule 'metadata_only' (--ignore). Use metadata-only" in err


def test_a_failing_config_whose_batches_cannot_be_made(folder, playhead):
    text = (folder / "blend.yaml").read_text()
    (folder / "blend.yaml").write_text(text.replace("manifest.json", "gone.json"))
    code, out, err = playhead("blend.yaml", "--repeatable")
    assert code == 1
    assert "source-missing" in out
    assert err.startswith("no batches could be compared: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"no such config \(config.yaml\)"),
        (b"", "neither a list nor a mapping"),
        (b"[]", "no entries"),
        (b"{}", "no training section with data|no section with data"),
        (bytes(range(256)), "not valid YAML"),
        (b"train_ds: {a: [}", "not valid YAML"),
        (b"'text'", "neither a list nor a mapping"),
        (b"train_ds: {input_cfg: other.yaml}", r"no such config \(other.yaml"),
        ("folder", "cannot be read: Is a directory"),
    ],
)
def test_what_is_no_config_is_one_line(folder, playhead, content, message):
    path = folder / "config.yaml"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    code, out, err = playhead("config.yaml")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert re.search(message, err), err


def test_what_may_not_be_read_is_one_line(folder, playhead, monkeypatch):
    def forbidden(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.read_bytes", forbidden)
    code, out, err = playhead("blend.yaml")
    assert (code, out) == (2, "")
    assert "cannot be read: Permission denied (blend.yaml)" in err


def test_fetching_says_how_fast_and_how_many_workers(folder, playhead):
    code, out, err = playhead("blend.yaml", "--fetch", 8, "--hours-per-hour", 100)
    assert (code, err) == (0, "")
    assert "by byte ranges of local files: 8 of 8 samples" in out
    assert re.search(r"4 requests of 2: p50 [\d.]+ ms, p95 [\d.]+ ms; [\d,]+ samples/s", out)
    assert "keep a GPU busy that trains on 100 hours of audio an hour" in out
    assert out.endswith("Next: train\n")


def test_hours_of_a_gpu_need_samples_that_are_timed(folder, playhead):
    code, _, err = playhead("blend.yaml", "--hours-per-hour", 100)
    assert code == 2
    assert "--fetch" in err
