"""`playhead bins`: what it prints and writes, and what it refuses in one line."""

from __future__ import annotations

import json

import pytest

from playhead.blend import read_blend
from support.command import run_command
from support.corpus import write_jsonl

LENGTHS = [round(0.5 + 0.037 * number, 3) for number in range(400)]


def rows(lengths, text="one two"):
    return [
        {"audio_filepath": f"{number}.wav", "duration": seconds, "text": text, "lang": "en"}
        for number, seconds in enumerate(lengths)
    ]


@pytest.fixture
def folder(tmp_path):
    write_jsonl(tmp_path / "train.json", rows(LENGTHS))
    return tmp_path


def options_in(stdout):
    """What stands below the heading."""
    _, _, below = stdout.partition("Use the following options in your config:\n")
    return dict(line.strip().split("=", 1) for line in below.splitlines())


def test_the_lines_of_the_guides_are_printed(folder):
    ran = run_command("bins", "train.json", "-b", 5, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Used 400 examples.\nUse the following options in your config:\n")
    options = options_in(ran.stdout)
    assert list(options) == [
        "use_bucketing",
        "num_buckets",
        "bucket_duration_bins",
        "max_duration",
    ]
    bins = json.loads(options["bucket_duration_bins"])
    assert options["num_buckets"] == "5"
    assert len(bins) == 5
    assert bins[-1] == max(LENGTHS) == float(options["max_duration"])


def test_what_is_written_is_what_a_config_takes(folder):
    ran = run_command("bins", "train.json", "-b", 4, "-o", "out/bins.yaml", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    text = (folder / "out" / "bins.yaml").read_text()
    assert text.startswith("# Made by playhead ")
    (folder / "blend.yaml").write_text(f"{text}manifest_filepath: train.json\nbatch_size: 2\n")
    options = read_blend(str(folder / "blend.yaml"), strict=True).options
    assert list(options.bucket_duration_bins) == json.loads(
        options_in(ran.stdout)["bucket_duration_bins"]
    )
    assert options.max_duration == max(LENGTHS)
