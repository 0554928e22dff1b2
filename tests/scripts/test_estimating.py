"""The scripts that make bins, by the command lines of the guides."""

from __future__ import annotations

import json

import pytest
import yaml

from support.command import run_script
from support.corpus import write_jsonl
from support.token_models import sentencepiece_bytes, write

BINS = "speech_recognition/estimate_duration_bins.py"
BINS_2D = "speech_recognition/estimate_duration_bins_2d.py"
TOKEN_BINS = "speechlm2/estimate_token_bins.py"
HEADING = "Use the following options in your config:"
LENGTHS = [round(0.5 + 0.037 * number, 3) for number in range(400)]


@pytest.fixture
def folder(tmp_path):
    rows = [
        {
            "audio_filepath": f"{number}.wav",
            "duration": seconds,
            "text": "the quick dog " * (1 + int(seconds * (1 + number % 3) / 3)),
            "answer": "the dog",
            "lang": "en" if number % 2 else "de",
            "target_lang": "de" if number % 2 else "en",
        }
        for number, seconds in enumerate(LENGTHS)
    ]
    write_jsonl(tmp_path / "train.json", rows)
    write_jsonl(tmp_path / "other.json", rows[:100])
    for language in ("en", "de"):
        write(tmp_path / f"{language}.model", sentencepiece_bytes(language))
    (tmp_path / "blend.yaml").write_text("- {type: nemo, manifest_filepath: train.json}\n")
    (tmp_path / "salm.yaml").write_text(
        "model: {name: salm}\ndata:\n  train_ds:\n    sample_rate: 16000\n"
        "    input_cfg: [{type: nemo, manifest_filepath: train.json}]\n"
        "    bucket_batch_size: [2, 1]\n"
    )
    return tmp_path


def options_in(stdout):
    """What stands below the heading."""
    below = stdout.partition(f"{HEADING}\n")[2]
    return {
        key: json.loads(value)
        for key, value in (line.strip().split("=", 1) for line in below.splitlines())
    }


def ran(script, *arguments, folder):
    done = run_script(script, *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done


# Of seconds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        ("train.json",),
        ("[[train.json]]",),
        ("[[train.json],[other.json]]",),
        ("[[train.json,0.5],[other.json,0.5]]",),
        ("blend.yaml",),
        ("manifest_filepath=train.json",),
    ],
    ids=lambda given: given[0],
)
def test_duration_bins_takes_every_form_of_input(folder, given):
    done = ran(BINS, "-b", 5, *given, folder=folder)
    first, heading, *_ = done.stdout.splitlines()
    assert first.startswith("Used ")
    assert first.endswith(" examples.")
    assert heading == HEADING
    options = options_in(done.stdout)
    assert options["num_buckets"] == len(options["bucket_duration_bins"]) == 5
    assert options["bucket_duration_bins"][-1] == options["max_duration"] == max(LENGTHS)


def test_duration_bins_makes_30_buckets_of_all_rows_unless_it_is_told_otherwise(folder):
    plain = ran(BINS, "train.json", folder=folder)
    assert plain.stdout == ran(BINS, "train.json", "-b", 30, folder=folder).stdout
    flags = ("--buckets", 4, "--num_examples", 100, "--min_duration", 1, "--max_duration", 9.5)
    options = options_in(ran(BINS, "train.json", *flags, folder=folder).stdout)
    assert options["num_buckets"] == 4
    assert options["max_duration"] <= 9.5
    short = ("-b4", "-n", -1, "-l", 1, "-u", 9.5)
    assert options_in(ran(BINS, "train.json", *short, folder=folder).stdout)["num_buckets"] == 4


@pytest.mark.parametrize("word", ["true", "1", "True"])
def test_quiet_takes_a_word_as_in_the_guides(folder, word):
    quiet = ran(BINS, "-q", word, "train.json", folder=folder)
    assert quiet.stdout.splitlines()[0] == HEADING
    assert ran(BINS, "--quiet", "False", "train.json", folder=folder).stdout.startswith("Used 400")


# Of seconds and tokens ----------------------------------------------------------------------------


def test_duration_bins_2d_takes_every_option_of_the_guide(folder):
    flags = [
        *("-t", "en.model", "de.model", "-a", "en", "de", "-b", 4, "-s", 3, "-n", -1),
        *("-l", 0.6, "-u", 12, "--text-field", "text", "--lang-field", "target_lang"),
        *("--token_outlier_threshold", 4.0, "-q", "False"),
    ]
    done = ran(BINS_2D, *flags, "train.json", folder=folder)
    options = options_in(done.stdout)
    assert options["use_bucketing"] == 1
    bins = options["bucket_duration_bins"]
    assert len({seconds for seconds, _ in bins}) == 4
    assert len(bins) == options["num_buckets"] <= 12
    assert len(options["max_tps"]) == len(bins)


def test_duration_bins_2d_splits_every_bucket_in_two_by_default(folder):
    done = ran(BINS_2D, "--tokenizer", "en.model", "--buckets", 4, "train.json", folder=folder)
    assert len(options_in(done.stdout)["bucket_duration_bins"]) == 8


def test_duration_bins_2d_counts_a_prompt(folder):
    prompt = "[{'role': 'user', 'slots': {'source_lang': 'en', 'target_lang': 'en', 'task': 'asr', 'pnc': 'yes'}}]"  # noqa: E501
    write(folder / "special.model", sentencepiece_bytes("en", special=True))
    flags = ("-t", "special.model", "-b", 2, "train.json")
    plain = options_in(ran(BINS_2D, *flags, folder=folder).stdout)["bucket_duration_bins"]
    asked = (*flags, "-f", "canary", "-p", prompt)
    longer = options_in(ran(BINS_2D, *asked, folder=folder).stdout)["bucket_duration_bins"]
    assert longer[-1][1] > plain[-1][1]


def test_max_tps_is_said_to_be_deprecated(folder):
    done = ran(BINS_2D, "-t", "en.model", "--max_tps", 100, "train.json", folder=folder)
    assert "--max_tps is deprecated" in done.stderr


# Of tokens ----------------------------------------------------------------------------------------


def test_token_bins_takes_every_option_of_the_guide(folder):
    flags = [
        *("-t", "en.model", "-b", 6, "-s", 2, "-n", -1, "-l", 4, "-u", 400, "--max_tpt", "inf"),
        *("--min_duration", 0.5, "--max_duration", 14, "--token_equivalent_duration", 0.08),
        *("--token_outlier_threshold", 6.0, "--text-field", "answer", "--lang-field", "lang"),
        *("--audio-locator-tag", "<audio>", "-f", "plain", "-m", "True"),
        *("--quantize-bins", "none", "-q", "False"),
        *("--source-config", "salm.yaml", "--output-config", "out.yaml"),
    ]
    done = ran(TOKEN_BINS, *flags, "salm.yaml", folder=folder)
    options = options_in(done.stdout)
    bins = options["bucket_duration_bins"]
    assert all(len(bound) == 2 for bound in bins)
    assert options["num_buckets"] == len(bins)
    assert options["measure_total_length"] == 1
    written = yaml.safe_load((folder / "out.yaml").read_text())["data"]["train_ds"]
    assert written["bucket_duration_bins"] == bins
    assert written["num_buckets"] == len(bins)
    assert "bucket_batch_size" not in written


@pytest.mark.parametrize("quantum", ["pow2", "pow2sum"])
def test_token_bins_are_of_one_length_and_quantized_as_asked(folder, quantum):
    flags = ("--tokenizer", "en.model", "--prompt-format", "plain", "--quantize-bins", quantum)
    done = ran(TOKEN_BINS, *flags, "--buckets", 6, "salm.yaml", folder=folder)
    bins = options_in(done.stdout)["bucket_duration_bins"]
    assert all(isinstance(bound, int) for bound in bins)
    assert all(bound.bit_count() <= (1 if quantum == "pow2" else 2) for bound in bins[:-1])


# What cannot be used ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        (BINS, ("gone.json",), "gone.json"),
        (BINS, ("empty.json",), "empty.json"),
        (BINS, ("blend.txt",), "blend.txt"),
        (BINS, ("half.json",), "half.json"),
        (BINS, ("half.yaml",), "half.yaml"),
        (BINS, ("train.json", "-b", "0"), "0"),
        (BINS_2D, ("train.json",), "-t or --tokenizer is missing"),
        (BINS_2D, ("-t", "gone.model", "--", "train.json"), "gone.model"),
        (BINS_2D, ("-t", "en.model", "-a", "en", "de", "--", "train.json"), "1 tokenizers for 2"),
        (TOKEN_BINS, ("salm.yaml",), "-t or --tokenizer is missing"),
        (TOKEN_BINS, ("-t", "en.model", "--output-config", "o.yaml", "salm.yaml"), "go together"),
        (TOKEN_BINS, ("-t", "en.model", "gone.yaml"), "gone.yaml"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_no_traceback(folder, script, arguments, said):
    (folder / "empty.json").write_text("")
    (folder / "blend.txt").write_text("a text\n")
    (folder / "half.json").write_bytes((folder / "train.json").read_bytes()[:-20])
    (folder / "half.yaml").write_text("- {type: nemo, manifest_filepath: [train.json\n")
    done = run_script(script, *arguments, cwd=folder)
    assert done.returncode in {1, 2}
    assert done.stdout == ""
    *_, line = done.stderr.splitlines()
    assert line.startswith("playhead: ")
    assert said in line
    assert "Traceback" not in done.stderr
