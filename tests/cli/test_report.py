"""The command plans a config, says a few lines and writes a page; wrong inputs are one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support.command import run_command
from support.corpus import nemo_corpus
from support.parsed_page import parsed


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with a config of forty samples, whose indexes are there after the first use."""
    folder = tmp_path_factory.mktemp("report")
    manifest = nemo_corpus(folder, [0.1 + 0.01 * n for n in range(40)])
    entry = {"type": "nemo", "manifest_filepath": str(manifest), "corpus": "digits | <b>tones</b>"}
    options = {"batch_duration": 2.0, "micro_batches_per_step": 4, "seed": 5, "num_buckets": 3}
    section = {"input_cfg": [entry], "sample_rate": 16000, **options}
    # YAML reads JSON.
    (folder / "train.yaml").write_text(json.dumps({"model": {"train_ds": section}}))
    return folder


@pytest.fixture
def playhead(corpus, monkeypatch, tmp_path):
    def run(*arguments, cwd=tmp_path, **environment):
        return run_command(
            *("report", *arguments), cwd=cwd, PLAYHEAD_CACHE=str(corpus / "cache"), **environment
        )

    return run


def test_a_few_lines_and_a_page(corpus, playhead, tmp_path):
    config = str(corpus / "train.yaml")
    ran = playhead(config, "--world-size", 2, "--hours-per-hour", 100, "--windows", 1)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.endswith("Wrote report.html.\n")
    lines = ran.stdout.splitlines()
    assert lines[0] == f"{config}: 1 source, 40 rows"
    assert lines[1].startswith("  a pass: 40 samples, ")
    assert lines[2].startswith("  a step: 4 micro-batches on 2 ranks, ")
    assert lines[3].startswith("  batch_duration 2 s: padding ")
    assert "hours of audio an hour" in ran.stdout
    assert len(lines) < 10
    root = parsed((tmp_path / "report.html").read_text())
    assert "digits | <b>tones</b>" in root.one("section", id="sources").text
    assert not root.all("b")
    # And what is there now is a report, which may be replaced.
    again = playhead(config, "--section", "model.train_ds", "-o", "report.html", "--windows", 1)
    assert again.returncode == 0
    assert ", section model.train_ds: 1 source" in again.stdout


def test_json_alone_needs_no_matplotlib_and_writes_no_page(corpus, playhead, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    ran = playhead(corpus / "train.yaml", "--json", "--windows", 1, "--seed", 9)
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)
    assert figures["seed"] == 9
    assert figures["world_size"] == 1
    assert figures["parts"][0]["leaves"][0]["rows"] == 40
    assert not list(tmp_path.glob("*.html"))
    ran = playhead(corpus / "train.yaml", "--windows", 1)
    assert ran.returncode == 2
    assert "playhead[report]" in ran.stderr
    assert ran.stdout == ""


def test_json_and_a_page_in_one_go(corpus, playhead, tmp_path):
    ran = playhead(corpus / "train.yaml", "--json", "--windows", 1, "--output", "page.html")
    assert ran.returncode == 0, ran.stderr
    padding = json.loads(ran.stdout)["parts"][0]["padding"]
    summary = parsed((tmp_path / "page.html").read_text()).one("section", id="summary")
    assert repr(padding) in [one.attributes.get("data-value") for one in summary.all("dd")]


def test_a_page_on_stdout_is_all_there_is(corpus, playhead):
    ran = playhead(corpus / "train.yaml", "--windows", 1, "-o", "-")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("<!doctype html>")
    parsed(ran.stdout)
    assert "Wrote" not in ran.stderr


def test_a_step_is_printed_sample_by_sample_as_text_and_as_json(corpus, playhead, tmp_path):
    options = (corpus / "train.yaml", "--world-size", 2, "--step", 1)
    ran = playhead(*options, "--seed", 9, "--json")
    assert ran.returncode == 0, ran.stderr
    whole = json.loads(ran.stdout)
    assert (whole["step"], whole["seed"], whole["rank"]) == (1, 9, None)
    assert [batch["slot"] for batch in whole["batches"]] == [0, 1, 2, 3]
    ran = playhead(*options, "--rank", 1, "--ids")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("step 1 of seed 5, ")
    assert "digits | <b>tones</b>" in ran.stdout
    assert "slot 1, rank 1: " in ran.stdout
    assert "slot 0, rank 0: " not in ran.stdout
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--json", "-o", "-"), "both be written to stdout"),
        (("--rank", 0), "only steps have --rank"),
        (("--ids",), "only steps have --ids"),
        (("--from", "last.ckpt"), "only steps have --from"),
        (("--step", 0, "--from", "last.ckpt"), "last.ckpt"),
        (("--step", 0, "-o", "report.html"), "only pages have --output"),
        (("--step", 0, "--windows", 3), "only pages have --windows"),
        (("--step", 0, "--rank", 1), "rank 1 does not exist"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, said, corpus, playhead):
    ran = playhead(corpus / "train.yaml", *options)
    assert ran.returncode == 2
    assert said in ran.stderr.lower()
    assert ran.stdout == ""


def wrong(name, folder, corpus):
    """A command line that cannot be, and what is said of it."""
    config = str(corpus / "train.yaml")
    (folder / "empty.yaml").write_text("")
    (folder / "list.yaml").write_text("[]")
    (folder / "binary.yaml").write_bytes(bytes(range(256)))
    (folder / "words.yaml").write_text("just some words")
    (folder / "half.yaml").write_text("model: {train_ds: {input_cfg: [")
    (folder / "notes.html").write_text("<html>mine</html>")
    return {
        "unknown_file": (["gone.yaml"], "gone.yaml"),
        "empty_file": (["empty.yaml"], "empty.yaml"),
        "empty_list": (["list.yaml"], ""),
        "binary": (["binary.yaml"], "binary.yaml"),
        "words": (["words.yaml"], "words.yaml"),
        "half_written": (["half.yaml"], "half.yaml"),
        "folder": (["."], "."),
        "manifest": ([str(next(corpus.glob("*.json")))], ""),
        "section": ([config, "--section", "nobody"], "nobody"),
        "output_folder": ([config, "-o", "none/report.html"], "none/report.html"),
        "output_of_others": ([config, "-o", "notes.html"], "notes.html"),
        "output_is_the_config": ([config, "-o", config], "train.yaml"),
        "output_is_a_folder": ([config, "-o", "."], "a folder"),
        "output_is_a_device": ([config, "-o", "/dev/full"], "/dev/full"),
        "tokenizer": ([config, "--tokenizer", "gone.model"], "gone.model"),
        "import": ([config, "--import", "nobody_has_this"], "nobody_has_this"),
        "world_size": ([config, "--world-size", "3"], "3"),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        *("unknown_file", "empty_file", "empty_list", "binary", "words", "half_written"),
        *("folder", "manifest", "section", "output_folder", "output_of_others"),
        *("output_is_the_config", "output_is_a_folder", "output_is_a_device", "tokenizer"),
        *("import", "world_size"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(name, corpus, playhead, tmp_path):
    before = (corpus / "train.yaml").read_bytes()
    arguments, said = wrong(name, tmp_path, corpus)
    ran = playhead(*arguments)
    problem = [line for line in ran.stderr.splitlines() if not line.startswith("note: ")]
    assert len(problem) == 1, ran.stderr
    assert problem[0].startswith("playhead: ")
    assert said in problem[0]
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert not (tmp_path / "report.html").exists()
    assert (tmp_path / "notes.html").read_text() == "<html>mine</html>"
    assert (corpus / "train.yaml").read_bytes() == before


@pytest.mark.parametrize(
    "option",
    [
        ("--world-size", 0),
        ("--windows", 0),
        ("--hours-per-hour", -1),
        ("--hours-per-hour", "inf"),
        ("--hours-per-hour", "nan"),
        ("--seed", -1),
    ],
)
def test_numbers_that_cannot_be_are_refused(option, corpus, playhead):
    ran = playhead(corpus / "train.yaml", *option)
    assert ran.returncode == 2
    assert option[0] in ran.stderr


def test_a_disk_that_is_full_is_one_line(corpus):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [
                *(sys.executable, "-m", "playhead", "report", str(corpus / "train.yaml")),
                *("--windows", "1", "-o", "-"),
            ],
            env={**os.environ, "PLAYHEAD_CACHE": str(corpus / "cache")},
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
